"""Let a second derivative raise where it would silently leave out a saved intermediate.

What a save function computed has no graph. Used in backward under create_graph, it would count as a
constant: the second derivative comes out too small, and nothing says so (pytorch#58509, #76185,
#104040).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from autograd_lab.errors import DoubleBackwardError

__all__ = ["anchors_of", "guarded", "intermediates_among"]


def intermediates_among(
    saved: Sequence[Any], values: Sequence[Any], output: object
) -> tuple[int, ...]:
    """Which saved tensors are none of the inputs and outputs, and could have a derivative."""
    found: list[int] = []
    for at, one in enumerate(saved):
        if one is output or one is None:
            continue
        for value in values:
            if value is one:
                break
        else:
            if (one.is_floating_point() or one.is_complex()) and not (
                _holds(values, one) or _holds(output, one)
            ):
                found.append(at)
    return tuple(found)


def anchors_of(values: Iterable[Any]) -> tuple[Tensor, ...]:
    """Empty tensors that lead back to where the inputs came from, and keep none of their memory."""
    return tuple(
        one.flatten()[:0].clone() for one in values if isinstance(one, Tensor) and one.requires_grad
    )


def guarded(tensor: Tensor, anchors: Sequence[Tensor], op: str, path: str) -> Tensor:
    """The same values, from which no derivative goes on: it raises DoubleBackwardError."""
    return _Guard.apply(op, path, tensor, *anchors)


def _holds(values: object, tensor: Tensor) -> bool:
    if isinstance(values, (list, tuple)):
        return any(_holds(one, tensor) for one in values)
    return values is tensor


class _Guard(torch.autograd.Function):
    """An identity that refuses its backward."""

    generate_vmap_rule = True

    @staticmethod
    def forward(op: str, path: str, tensor: Tensor, *anchors: Tensor) -> Tensor:
        return tensor.view_as(tensor)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # noqa: ANN401
        ctx.named = inputs[:2]

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:  # noqa: ANN401
        op, path = ctx.named
        message = (
            f"A second derivative of '{op}' goes through {path}, which is neither an input nor an "
            "output of the op.\n"
            "It has no graph, so torch would treat it as a constant and give a wrong second "
            "derivative without a word.\n"
            "Compute it again from the inputs in backward, or make it an output of the op; if it "
            "does not depend on any input, name it in impl_save_for_backward(constants=[...])."
        )
        raise DoubleBackwardError(message, op=op, path=path)
