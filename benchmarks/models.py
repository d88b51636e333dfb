"""The models whose recording is measured: transformer, ResNet-18, a deep tiny MLP, a long chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (torch's own name for it)

__all__ = ["STEPS", "chain", "resnet18", "tiny_mlp", "transformer"]


class Step(NamedTuple):
    """A model, its input and what to do with its output: `loss()` is one forward."""

    model: nn.Module
    x: Tensor
    loss_of: Callable[[Tensor], Tensor]

    def loss(self) -> Tensor:
        """Run the forward."""
        return self.loss_of(self.model(self.x))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def forward(self, x: Tensor) -> Tensor:
        batch, time, width = x.shape
        q, k, v = (
            part.view(batch, time, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        future = torch.ones(time, time, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, float("-inf")).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, time, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(
        self,
        vocabulary: int = 256,
        width: int = 256,
        layers: int = 6,
        heads: int = 8,
        time: int = 128,
    ) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(time, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.blocks(x)))


class Residual(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace=True)
        self.skip = nn.Identity()
        if stride != 1 or inside != outside:
            self.skip = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
        return self.relu(y + self.skip(x))


class ResNet18(nn.Module):
    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )
        sizes = [
            (64, 64, 1),
            (64, 64, 1),
            (64, 128, 2),
            (128, 128, 1),
            (128, 256, 2),
            (256, 256, 1),
            (256, 512, 2),
        ]
        self.blocks = nn.Sequential(*(Residual(*size) for size in [*sizes, (512, 512, 1)]))
        self.head = nn.Linear(512, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def transformer() -> Step:
    """Width 256, 128 tokens, batch 2, tied head."""
    torch.manual_seed(0)
    tokens, targets = torch.randint(0, 256, (2, 128)), torch.randint(0, 256, (2, 128))
    return Step(
        Transformer(), tokens, lambda y: F.cross_entropy(y.flatten(0, 1), targets.flatten())
    )


def resnet18() -> Step:
    """Batch 4 of 3 x 64 x 64."""
    torch.manual_seed(0)
    images, targets = torch.randn(4, 3, 64, 64), torch.randint(0, 10, (4,))
    return Step(ResNet18(), images, lambda y: F.cross_entropy(y, targets))


def tiny_mlp() -> Step:
    """20 layers of width 32, batch 16: the fixed cost per node and nothing else."""
    torch.manual_seed(0)
    layers = [layer for _ in range(20) for layer in (nn.Linear(32, 32), nn.Tanh())]
    return Step(nn.Sequential(*layers), torch.randn(16, 32), lambda y: y.square().mean())


def chain(length: int = 5000) -> Tensor:
    """A chain of `length` calls on eight numbers."""
    x = torch.linspace(0, 1, 8, requires_grad=True)
    y = x
    for _ in range(length):
        y = y.sin()
    return y.sum()


STEPS: dict[str, Callable[[], Step]] = {
    "transformer": transformer,
    "resnet18": resnet18,
    "tiny mlp": tiny_mlp,
}
