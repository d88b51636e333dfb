"""The exercise of lesson 01 that builds an expression for an order of PyTorch's nodes."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import torch

from autograd_lab.teach.exercise import Exercise

__all__ = ["backward_order"]

_ORDERS = list(permutations(("AddBackward", "MulBackward", "PowBackward")))


def _an_order(generator: torch.Generator) -> dict[str, Any]:
    place = torch.randint(0, len(_ORDERS), (1,), generator=generator).item()
    return {"order": list(_ORDERS[int(place)])}


backward_order = Exercise(
    "backward_order",
    make=_an_order,
    oracle=lambda order: order,
    wrong=[
        (
            "that is the order of the forward pass; what you write last runs first backward",
            lambda order: order[::-1],
        ),
        (
            "the first node is right, the two others are swapped",
            lambda order: [order[0], order[2], order[1]],
        ),
        (
            "the last node is right, the two others are swapped",
            lambda order: [order[1], order[0], order[2]],
        ),
        (
            "the node that shall run first runs last: write its operation last",
            lambda order: order[1:] + order[:1],
        ),
        (
            "the node that shall run last runs first: write its operation first",
            lambda order: order[2:] + order[:2],
        ),
        ("there is one operation too few", lambda order: order[:2]),
    ],
    hints=[
        "The node that runs first backward belongs to the operation that runs last forward.",
        "Read the order from its end and write one operation around the other.",
        "((a + 1) * 2) ** 2 runs PowBackward, MulBackward, AddBackward.",
    ],
    names=lambda order: [f"the node that runs {place}" for place in ("first", "second", "third")],
)
