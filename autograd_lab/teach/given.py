"""Turn an exercise's data into a learner's own copy, which says itself in words: `your x is 10`."""

from __future__ import annotations

import copy
from numbers import Number
from typing import Any

import numpy as np
import torch

from autograd_lab.teach import kinds

__all__ = ["Given", "copied"]


class Given(dict[str, Any]):
    """A learner's data by name. A plain dict in all but how it is shown."""

    def __repr__(self) -> str:
        """`your a is 4, b is 9`; numbers with four digits, tensors as their shape."""
        return "your " + ", ".join(map(_said, self, self.values())) if self else "no data"


def copied(tree: Any) -> Any:  # noqa: ANN401 (data of an exercise are anything)
    """A deep copy that keeps `requires_grad`, and drops the graph that deepcopy refuses."""
    if isinstance(tree, torch.Tensor):
        return tree.detach().clone().requires_grad_(tree.requires_grad)
    if type(tree) is dict:
        return {key: copied(value) for key, value in tree.items()}
    if type(tree) in (list, tuple):
        return type(tree)(copied(value) for value in tree)
    return tree.copy() if isinstance(tree, np.ndarray) else copy.deepcopy(tree)


def _said(name: str, value: object) -> str:
    is_number = isinstance(value, Number) and not isinstance(value, bool)
    if is_number and len(name) > 1 and name.endswith("s"):  # a count: `factors`
        return f"number of {name} is {kinds.kind(value)}"
    if isinstance(value, (list, tuple)) and value:
        are = "are" if name.endswith("s") else "is"
        return f"{name} {are} {', '.join(map(_part, value))}"
    shape = tuple(getattr(value, "shape", ()))
    return f"{name} has shape {shape}" if shape else f"{name} is {_part(value)}"


def _part(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(_part, value))})"
    return kinds.kind(value)
