"""Check what an impl_jvp function returned: one tangent for each output, or None."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from autograd_lab.errors import ForwardModeError

from .registrations import Registration

__all__ = ["checked_tangents", "require_jvp"]


def require_jvp(registration: Registration | None, op: str) -> Registration:
    """Return it, or raise ForwardModeError: a tangent is never lost without a word."""
    if registration is not None:
        return registration
    message = (
        f"Forward-mode differentiation reached '{op}', which has no impl_jvp.\n"
        "Its tangent would be lost, or zero, without a word.\n"
        "Register it with @op.impl_jvp(), or use reverse mode: torch.func.vjp, jacrev."
    )
    raise ForwardModeError(message, op=op)


def checked_tangents(
    returned: object, layout: tuple[int | None, ...] | None, op: str, place: str
) -> tuple[Any, ...]:
    """One tangent for each output, lists in their place; `layout` None stands for one output."""
    if layout is None:
        tangents: tuple[Any, ...] = (returned,)
    elif isinstance(returned, tuple):
        tangents = returned
    else:
        tangents = (returned,)
    sizes = (None,) if layout is None else layout
    if len(tangents) != len(sizes):
        _refuse(f"returned {len(tangents)} tangents, the op has {len(sizes)} outputs", op, place)
    for at, (size, one) in enumerate(zip(sizes, tangents, strict=True)):
        if size is not None and (not isinstance(one, list) or len(one) != size):
            _refuse(f"the tangent of output[{at}] has to be a list of {size}", op, place)
        for inner in one if isinstance(one, list) else [one]:
            if inner is not None and not isinstance(inner, Tensor):
                told = f"the tangent of output[{at}] is an object of type {type(inner).__name__}"
                _refuse(told, op, place)
    return tangents


def _refuse(what: str, op: str, place: str) -> None:
    message = (
        f"In the jvp of '{op}' at {place}: {what}.\n"
        "Return a tensor of the output's shape for each output, in a tuple if there are several; "
        "None for one without a derivative."
    )
    raise ForwardModeError(message, op=op, place=place)
