"""Turn snapshots, one after the other, into which tensors are known to hold NaN or Inf, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from autograd_lab.recording import Op, Snapshot, TensorId, TensorRef

from .tape import MASKING
from .wording import kind_of_bad

__all__ = ["HeldValues"]


class HeldValues:
    """What is known so far.

    held        what each tensor held when it was last seen: "NaN", "Inf", "" for finite, None
                where it could not be looked at
    on_purpose  tensors that hold Inf because the user put it there (masks), and what came of them
    told        gradients whose NaN or Inf was reported already, and what came of them
    left        what backward passes left in the `.grad` of leaves
    """

    def __init__(self, tensors: Sequence[TensorRef]) -> None:
        self.tensors = tensors
        self.held: dict[TensorId, str | None] = {}
        self.on_purpose: set[TensorId] = set()
        self.told: set[TensorId] = set()
        self.left: dict[TensorId, Snapshot] = {}

    def look_at(self, shots: Iterable[Snapshot]) -> None:
        """Remember which tensors are finite."""
        for shot in shots:
            self.held[shot.tensor] = None if shot.finite is None else kind_of_bad([shot])

    def meet(self, inputs: Iterable[Snapshot]) -> None:
        """Look at tensors that a call was given and that no event had before."""
        for shot in inputs:
            self.look_at([shot])
            if _is_mask(shot):
                self.on_purpose.add(shot.tensor)
            elif shot.finite is False and self._is_left(shot):
                self.told.add(shot.tensor)

    def of(self, op: Op) -> dict[TensorId, str | None]:
        """What the inputs of a call hold now."""
        return {tensor: self.held.get(tensor) for tensor in op.inputs}

    def is_carried(
        self, op: Op, what: str, bad: set[TensorId], before: Mapping[TensorId, str | None]
    ) -> bool:
        """What a call returned comes of what was told before, or is an Inf on purpose.

        what    "NaN" or "Inf"
        bad     tensors that it returned so; an in-place call returns its input
        before  what its inputs held before it
        """
        bad_inputs = {tensor for tensor, held in before.items() if held}
        is_told = bool(bad_inputs) and bad_inputs <= self.told
        is_on_purpose = bool(bad_inputs) and bad_inputs <= self.on_purpose | self.told
        self.on_purpose -= bad
        self.told -= bad
        if is_told:
            self.told |= bad
        elif what == "Inf" and (is_on_purpose or op.name in MASKING or not op.inputs):
            self.on_purpose |= bad
        else:
            return False
        return True

    def to_blame(self, what: str, before: Mapping[TensorId, str | None]) -> list[TensorId]:
        """Inputs that already held what a call returned; an Inf on purpose is not to blame."""
        return [
            tensor
            for tensor, held in before.items()
            if held == "NaN" or (held and held == what and tensor not in self.on_purpose)
        ]

    def _is_left(self, shot: Snapshot) -> bool:
        """It is the `.grad` of a leaf, as far as is known: read by a program, that is a new tensor.

        Then a clip_grad_norm_ or a GradScaler only carries on what a backward left there.
        """
        ref = self.tensors[shot.tensor]
        if ref.is_leaf and ref.requires_grad:
            return False
        return any(
            self.tensors[grad.tensor].shape == ref.shape
            and kind_of_bad([grad]) == kind_of_bad([shot])
            and (shot.detail is None or grad.detail is None or shot.detail == grad.detail)
            for grad in self.left.values()
        )


def _is_mask(shot: Snapshot) -> bool:
    """Data of 0 and -Inf and nothing else, to be added to scores; known only where values are."""
    if kind_of_bad([shot]) != "Inf" or shot.values is None:
        return False
    array = shot.values.array
    return bool(np.isin(array, (0, -np.inf)).all() and np.isneginf(array).any())
