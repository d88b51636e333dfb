"""Refuse an output that shares its memory with an input: autograd would not know of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from torch import Tensor

from autograd_lab.errors import AliasedOutputError
from autograd_lab.torch_private import base_of

__all__ = ["require_own_outputs"]


def require_own_outputs(
    op: str, names: Sequence[str], values: Sequence[Any], output: object
) -> None:
    """Raise AliasedOutputError where an output is an input, a view of one, or another output.

    A view is known by torch's own record; memory shared past it, by `detach` or numpy, is not seen.
    """
    if type(output) is Tensor and base_of(output) is None:  # the common case, without pairs
        for value in values:
            if value is output or type(value) is list:
                break
        else:
            return
    earlier = [
        pair
        for name, value in zip(names, values, strict=True)
        for pair in _named(f"input '{name}'", value)
    ]
    for what, one in _named("output", output):
        base = base_of(one)
        for name, other in earlier:
            if other is one:
                _refuse(op, what, "is", name)
            if base is not None and (other is base or base_of(other) is base):
                _refuse(op, what, "is a view of", name)
        earlier.append((what, one))


def _named(what: str, value: object) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a value, `output[1][0]` being what they are called."""
    if isinstance(value, Tensor):
        yield what, value
    elif isinstance(value, (list, tuple)):
        for at, one in enumerate(value):
            yield from _named(f"{what}[{at}]", one)


def _refuse(op: str, what: str, how: str, name: str) -> NoReturn:
    message = (
        f"In the kernel of '{op}': {what} {how} {name}.\n"
        "Autograd would take the two for separate tensors: a write into one would go unseen.\n"
        "Return a tensor of its own: .clone() makes one."
    )
    raise AliasedOutputError(message, op=op, output=what, other=name, how=how)
