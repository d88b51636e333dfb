"""Turn a seed into a small untrained model, and a model with digits into a trained one.

Two real architectures, small enough to read as a graph: a convolutional network (batch norm,
in-place ReLU, a residual sum) and a transformer written out at op level, because
`nn.TransformerEncoder` would hide its steps in fused kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 (torch's own name for it)

from autograd_lab.teach.digits import Digits

__all__ = ["Trained", "convnet", "train", "transformer"]

_CLASSES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What training did: the loss of each step, and the share of held-out images read (0..1)."""

    losses: tuple[float, ...]
    accuracy: float

    def __repr__(self) -> str:
        """One sentence with first loss, last loss and accuracy."""
        steps = len(self.losses)
        fall = f"loss {self.losses[0]:.2f} -> {self.losses[-1]:.2f}, " if steps else ""
        return f"Trained: {steps} steps, {fall}held-out accuracy {self.accuracy:.3f}"


def convnet(seed: int = 0) -> nn.Module:
    """Return a convolutional classifier: images (batch, 1, 8, 8) float32 -> logits (batch, 10).

    It has 3146 parameters. The same seed gives the same parameters; torch's global random state is
    as before.
    """
    with _seeded(seed):
        return _ConvNet(channels=16).float()


def transformer(seed: int = 0) -> nn.Module:
    """Return a transformer classifier: images (batch, 1, 8, 8) float32 -> logits (batch, 10).

    It has 18 154 parameters. The 16 patches of 2x2 pixels are its tokens. The same seed gives the
    same parameters; torch's global random state is as before.
    """
    with _seeded(seed):
        return _Transformer(width=32, heads=4, depth=2).float()


def train(
    model: nn.Module,
    digits: Digits,
    *,
    steps: int,
    on_step: Callable[[int, float], object] | None = None,
    device: str | torch.device = "cpu",
    seed: int = 0,
) -> Trained:
    """Train `model` in place with Adam on batches of 64, and read the held-out images afterwards.

    The model is moved to `device`; its train or eval mode is put back. Batches come from a
    generator of `seed`, on the CPU, so that they are the same on every device and torch's global
    random state is as before.

    steps    how many batches; 0 only measures the accuracy
    on_step  called after each step with its number (from 0) and its loss

    Returns the losses (nats) and the accuracy on the held-out images.
    """
    was_training = model.training
    model.to(device).train()
    images, labels = digits.train_images.to(device), digits.train_labels.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    losses = []
    for step, batch in zip(range(steps), _batches(len(labels), size=64, seed=seed), strict=False):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if on_step is not None:
            on_step(step, losses[-1])
    accuracy = _accuracy(model, digits.test_images.to(device), digits.test_labels.to(device))
    model.train(was_training)
    return Trained(losses=tuple(losses), accuracy=accuracy)


class _ConvNet(nn.Module):
    def __init__(self, *, channels: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, channels, kernel_size=3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.inner = nn.Conv2d(channels, channels, kernel_size=3, padding=1)
        self.head = nn.Linear(channels * 4, _CLASSES)
        self.act = nn.ReLU(inplace=True)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(batch, 1, 8, 8) -> (batch, 10)."""
        h = F.max_pool2d(self.act(self.norm(self.stem(images))), 2)
        h = self.act(h + self.inner(h))
        return self.head(F.max_pool2d(h, 2).flatten(1))


class _Block(nn.Module):
    def __init__(self, *, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, tokens, width) -> same shape: attention and a two-layer net, each added on."""
        x = x + self.proj(self.attend(self.norm1(x)))
        return x + self.down(F.gelu(self.up(self.norm2(x))))

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, tokens, width) -> same shape: each token takes a weighted mean of all."""
        batch, tokens, width = x.shape
        split = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4).unbind(0)  # (batch, heads, tokens, width / heads)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
        mixed = torch.matmul(torch.softmax(scores, dim=-1), v)
        return mixed.transpose(1, 2).reshape(batch, tokens, width)


class _Transformer(nn.Module):
    def __init__(self, *, width: int, heads: int, depth: int) -> None:
        super().__init__()
        self.embed = nn.Linear(4, width)
        self.position = nn.Parameter(0.1 * torch.randn(16, width))
        self.blocks = nn.ModuleList(_Block(width=width, heads=heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, _CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(batch, 1, 8, 8) -> (batch, 10)."""
        x = self.embed(F.pixel_unshuffle(images, 2).flatten(2).transpose(1, 2)) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(dim=1))


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Draw parameters on the CPU from `seed`; only the CPU's generator is touched, and put back."""
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(seed)
        yield


def _batches(count: int, *, size: int, seed: int) -> Iterator[torch.Tensor]:
    """Index tensors without end, each epoch in a new order."""
    generator = torch.Generator(device="cpu").manual_seed(seed)
    while True:
        order = torch.randperm(count, generator=generator, device="cpu")
        yield from order.split(size)[: max(1, count // size)]


@torch.no_grad()
def _accuracy(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """Share of images whose largest logit is the right class."""
    model.eval()
    return (model(images).argmax(dim=1) == labels).double().mean().item()
