"""Tell autograd which outputs have no derivative, as output_differentiability says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from autograd_lab.errors import RegistrationError

__all__ = ["mark_outputs", "read_differentiability"]


def read_differentiability(given: object, count: int, op: str) -> tuple[bool, ...] | None:
    """Check what impl_backward was given; raises RegistrationError."""
    if given is None:
        return None
    if not isinstance(given, list) or len(given) != count or {*map(type, given)} - {bool}:
        message = (
            f"impl_backward of '{op}' expected output_differentiability to be a list of bools with "
            f"length equal to the number of outputs, got {given!r}.\n"
            f"The op has {count} output{'s' * (count != 1)}; a list counts as one.\n"
            f"Write output_differentiability={[True] * count}, with False where there is no "
            "derivative."
        )
        raise RegistrationError(message, op=op, given=given, outputs=count)
    return tuple(given)


def mark_outputs(ctx: Any, output: object, differentiability: Sequence[bool], op: str) -> None:  # noqa: ANN401 (torch's ctx)
    """Mark those outputs of one call that are not differentiable."""
    outputs = output if isinstance(output, tuple) else (output,)
    without: list[Tensor] = []
    for at, (is_differentiable, one) in enumerate(zip(differentiability, outputs, strict=True)):
        if isinstance(one, (Tensor, list)):
            if not is_differentiable:
                without += one if isinstance(one, list) else [one]
        elif is_differentiable:
            message = (
                f"With output_differentiability={list(differentiability)} of '{op}': output[{at}] "
                f"is an object of type {type(one).__name__} that is not a Tensor.\n"
                "Only tensors and lists of them have derivatives.\n"
                f"Write False at place {at}."
            )
            raise RegistrationError(message, op=op, output=at, given=type(one))
    ctx.mark_non_differentiable(*without)
