"""Turn what a call was given into its tensors, where they stand, and which it may write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from .call_kinds import OF_TENSOR

__all__ = ["Position", "positions_in", "tensors_in", "written_by"]

Position = tuple[int | str, ...]
"""Where a tensor stands among the arguments: (1,), (0, 2), ("weight",)."""


def positions_in(first: int | str, value: Any) -> Iterator[tuple[Position, torch.Tensor]]:  # noqa: ANN401
    """Tensors inside an argument, with where they stand: (0, 2), ("weight",)."""
    if isinstance(value, dict):
        for tensor in tensors_in(value):
            yield (first,), tensor
        return
    for number, item in enumerate(value):
        for tensor in tensors_in(item):
            yield (first, number), tensor


def tensors_in(value: Any) -> Iterator[torch.Tensor]:  # noqa: ANN401 (whatever a call takes)
    """All tensors in nested tuples, lists, dicts and dataclass-like results, in order."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, torch.Tensor):
            yield item
        elif isinstance(item, (tuple, list)):
            stack.extend(reversed(item))
        elif isinstance(item, dict):
            stack.extend(reversed(list(item.values())))


def written_by(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[torch.Tensor]:
    """What a call in place may write: a method its own tensor, a function any of its arguments."""
    yield from tensors_in(args[:1] if isinstance(func, OF_TENSOR) else args)
    yield from tensors_in(kwargs)
