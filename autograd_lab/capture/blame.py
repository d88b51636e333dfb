"""Turn what a call was given into words: which input is to blame for its NaN or Inf, and the cure.

In all of them `what` is "NaN" or "Inf", and `before` what the inputs held before the call.
"""

from __future__ import annotations

from collections.abc import Mapping

from autograd_lab.recording import Op, OpCalled, TensorId

from .cures import cure_of_call
from .held_values import HeldValues
from .wording import Wording, joined, shape_words

__all__ = ["inputs_in_words", "what_to_do"]

Before = Mapping[TensorId, str | None]


def inputs_in_words(op: Op, what: str, before: Before, values: HeldValues, wording: Wording) -> str:
    """What a call was given, and which of it was not finite."""
    if not op.inputs:
        return "no tensors"
    tensors, call = wording.tensors, wording.tensor
    inputs = ", ".join(
        f"{call(tensor)} {shape_words(tensors[tensor].shape)}" for tensor in op.inputs
    )
    other = [tensor for tensor, held in before.items() if held]
    unknown = [tensor for tensor, held in before.items() if held is None]
    if same := values.to_blame(what, before):
        blame = f"{joined(map(call, same))} already held it"
    elif other:
        blame = f"{joined(map(call, other))} held Inf"
    elif unknown:
        unread = joined(map(call, unknown))
        blame = f"{unread} could not be looked at, its other inputs were finite"
    else:
        blame = "all its inputs were finite"
    return f"{inputs}; {blame}"


def what_to_do(
    event: OpCalled, op: Op, what: str, before: Before, values: HeldValues, wording: Wording
) -> str:
    """The cure: of the formula, or of what gave it a bad input."""
    same = values.to_blame(what, before)
    left = [values.left[tensor] for tensor in same if tensor in values.left]
    if any(grad.finite is False for grad in left):
        return "A step wrote it from a .grad that was not finite: mend that backward first."
    if same:
        return "It came from outside the recorded calls: check the data and the parameters."
    if not op.inputs:
        return "Check the numbers that it was given."
    bad = next(shot for shot in event.outputs if shot.finite is False)
    return cure_of_call(op, what, wording.tensors[bad.tensor].dtype)
