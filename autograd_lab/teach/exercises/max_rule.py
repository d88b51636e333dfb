"""The exercise of lesson 01 in which the tape learns `max`: torch's own rule, ties and all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from autograd_lab.teach.exercise import Exercise

__all__ = ["max_rule"]

Pairs = Sequence[tuple[float, float]]


def _three_pairs(generator: torch.Generator) -> dict[str, Any]:
    """One pair with the first number larger, one with the second, one tie."""
    low, high, tie = torch.randint(1, 10, (3,), generator=generator).double().tolist()
    high += low
    return {"pairs": [(high, low), (low, high), (tie, tie)]}


def _torch_max(pairs: Pairs) -> list[tuple[float, float]]:
    """Gradients of torch's own maximum: a tie is shared in halves."""
    table = torch.tensor(list(pairs), dtype=torch.float64, requires_grad=True)
    torch.maximum(table[:, 0], table[:, 1]).sum().backward()
    assert table.grad is not None
    return [tuple(row) for row in table.grad.tolist()]


max_rule = Exercise(
    "max_rule",
    make=_three_pairs,
    oracle=_torch_max,
    wrong=[
        (
            "both inputs get the whole gradient; the smaller one doesn't move the result at all",
            lambda pairs: [(1.0, 1.0) for _ in pairs],
        ),
        (
            "right except for ties: there all goes to the first input; torch shares it in halves",
            lambda pairs: [(float(x >= y), float(x < y)) for x, y in pairs],
        ),
        (
            "right except for ties: there all goes to the second input; torch shares it in halves",
            lambda pairs: [(float(x > y), float(x <= y)) for x, y in pairs],
        ),
        (
            "right except for ties: there both get the whole gradient; torch shares it in halves",
            lambda pairs: [(float(x >= y), float(x <= y)) for x, y in pairs],
        ),
        (
            "right except for ties: there nobody gets a gradient; torch shares it in halves",
            lambda pairs: [(float(x > y), float(x < y)) for x, y in pairs],
        ),
        (
            "the smaller input gets the gradient: it is the larger one that moves the result",
            lambda pairs: [slopes[::-1] for slopes in _torch_max(pairs)],
        ),
        (
            "those are the slopes of a product; the larger input moves the result one to one",
            lambda pairs: [(y, x) for x, y in pairs],
        ),
        (
            "those are the inputs themselves; a slope says how fast the result moves with each",
            lambda pairs: list(pairs),
        ),
        (
            "that is the maximum itself at the larger input; its slope there is 1",
            lambda pairs: [(x * (x >= y), y * (y >= x)) for x, y in pairs],
        ),
        (
            "only a tie is shared in halves; elsewhere the larger input gets all",
            lambda pairs: [(0.5, 0.5) for _ in pairs],
        ),
        (
            "all goes to the first input, even where the second one is larger",
            lambda pairs: [(1.0, 0.0) for _ in pairs],
        ),
        (
            "all goes to the second input, even where the first one is larger",
            lambda pairs: [(0.0, 1.0) for _ in pairs],
        ),
        (
            "the smaller input gets 0, not -1: it doesn't move the result at all",
            lambda pairs: [tuple(2 * g - 1 for g in slopes) for slopes in _torch_max(pairs)],
        ),
    ],
    hints=[
        "Move the larger input by a little: how far does the result move? And the smaller one?",
        "There are three cases: x larger, y larger, a tie.",
        "torch's maximum gives half to each input of a tie.",
    ],
    names=lambda pairs: [
        (f"the slope towards x at ({x:g}, {y:g})", f"the slope towards y at ({x:g}, {y:g})")
        for x, y in pairs
    ],
)
