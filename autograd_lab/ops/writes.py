"""Notice a backward function that writes into the gradients it received.

They may be the caller's own tensors, or be read by other nodes after it (pytorch#81417).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from autograd_lab.errors import GradientMutatedError

from .gradient_faults import GradientSite

__all__ = ["require_unwritten", "versions_of"]


def versions_of(grads: Sequence[Any]) -> list[Any]:
    """How often each gradient was written; of a list a list, of anything else None."""
    return [
        (None if one.is_inference() else one._version)
        if isinstance(one, Tensor)
        else versions_of(one)
        if type(one) is list
        else None
        for one in grads
    ]


def require_unwritten(before: list[Any], grads: Sequence[Any], site: GradientSite) -> None:
    """Raise GradientMutatedError where one was written since."""
    if versions_of(grads) == before:
        return
    outputs = [
        at
        for at, (was, one) in enumerate(zip(before, grads, strict=True))
        if versions_of([one]) != [was]
    ]
    message = (
        f"The backward of '{site.op}' at {site.place} wrote into the gradient of output "
        f"{', '.join(map(str, outputs))}.\n"
        "That tensor may be the caller's own, or be read by other nodes after this one.\n"
        "Compute without writing (grad * 2 in place of grad.mul_(2)), or clone it first."
    )
    raise GradientMutatedError(message, op=site.op, place=site.place, outputs=outputs)
