"""The errors of trees that are saved for backward."""

from __future__ import annotations

from .base import AutogradLabError

__all__ = [
    "EndlessTreeError",
    "HiddenTensorError",
    "PytreeError",
]


class PytreeError(AutogradLabError):
    """A tree can't be saved on this ctx, or can't be rebuilt from what is there."""

    code = "AL600"


class HiddenTensorError(PytreeError):
    """An object that is no container holds tensors; `facts` has its `path` and their `names`."""

    code = "AL601"


class EndlessTreeError(PytreeError):
    """A container holds itself, or a tree has too many entries."""

    code = "AL602"
