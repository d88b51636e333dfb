"""Turn a generator into a two-layer net on four digits, and that into its values and gradients."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch.nn import functional as F  # noqa: N812 (torch's own name for it)

from autograd_lab.teach.digits import digits

__all__ = ["CLASSES", "HIDDEN", "IMAGES", "Pass", "draw_net", "picture", "run_net"]

IMAGES, HIDDEN, CLASSES = 4, 16, 10
INK = " .:oO@"

Pass = SimpleNamespace  # every value of a forward pass, and d: its gradients by name


def draw_net(generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Draw x, y, w1, b1, w2, b2: four images, their labels as one-hot rows, and weights."""
    data = digits()
    chosen = torch.randperm(len(data.train_labels), generator=generator)[:IMAGES]

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator) / 4

    return {
        "x": data.train_images[chosen].flatten(1),
        "y": F.one_hot(data.train_labels[chosen], CLASSES).float(),
        "w1": drawn(64, HIDDEN),
        "b1": drawn(HIDDEN),
        "w2": drawn(HIDDEN, CLASSES),
        "b2": drawn(CLASSES),
    }


def run_net(**data: torch.Tensor) -> Pass:
    """Run forward and torch's own backward; the gradients are in `.d`, by name."""
    run = Pass(**data)
    for name in ("x", "w1", "b1", "w2", "b2"):
        getattr(run, name).requires_grad_()
    run.z = run.x @ run.w1 + run.b1
    run.h = run.z.relu()
    run.logits = run.h @ run.w2 + run.b2
    run.p = run.logits.softmax(dim=1)
    names = ["logits", "w2", "b2", "h", "z", "w1", "b1", "x"]
    loss = F.cross_entropy(run.logits, run.y)
    grads = torch.autograd.grad(loss, [getattr(run, name) for name in names])
    run.d = Pass(**dict(zip(names, grads, strict=True)))
    return run


def picture(x: torch.Tensor) -> str:
    """Return rows of 64 pixels from 0 to 1 as pictures of text, side by side."""
    marks = (x.detach() * (len(INK) - 1)).round().int().reshape(-1, 8, 8)
    lines = marks.transpose(0, 1).tolist()  # a line of text has one line of each image
    return "\n".join(
        "   ".join("".join(INK[mark] for mark in row) for row in line).rstrip() for line in lines
    )
