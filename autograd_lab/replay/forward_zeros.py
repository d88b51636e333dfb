"""Turn a node that returned exact zeros into the forward call whose zeros are the reason."""

from __future__ import annotations

from dataclasses import dataclass

from autograd_lab.recording import NodeId, Op, OpCalled, OpId, Snapshot, TensorId

from .passes import PassRun

__all__ = ["ForwardZeros", "Zeros"]

# The inputs that are multiplied with each other, by call: the others are added.
FACTORS = {
    **dict.fromkeys(("linear", "conv1d", "conv2d", "conv3d"), slice(0, 2)),
    **dict.fromkeys(
        ("mul", "matmul", "__matmul__", "mm", "bmm", "mv", "dot", "einsum"), slice(None)
    ),
    **dict.fromkeys(("addmm", "baddbmm", "addmv"), slice(1, 3)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Zeros:
    """What was 0 in every element: what the call `op` returned, or where there is none `name`."""

    name: str
    op: Op | None


class ForwardZeros:
    """Which tensors the forward calls before a pass were given and returned as zeros."""

    def __init__(self, run: PassRun) -> None:
        self.recording = run.recording
        self._given: dict[OpId, list[tuple[TensorId, OpId | None]]] = {}
        self._returned: set[OpId] = set()
        zero: dict[TensorId, bool] = {}
        made_by: dict[TensorId, OpId] = {}
        for event in run.recording.events:
            if event is run.event:
                break
            if not isinstance(event, OpCalled):
                continue
            zero.update((shot.tensor, _is_zero(shot)) for shot in event.inputs)
            self._given[event.op] = [
                (tensor, made_by.get(tensor))
                for tensor in run.recording.ops[event.op].inputs
                if zero.get(tensor)
            ]
            zero.update((shot.tensor, _is_zero(shot)) for shot in event.outputs)
            made_by.update((shot.tensor, event.op) for shot in event.outputs)
            if event.outputs and all(map(_is_zero, event.outputs)):
                self._returned.add(event.op)

    def behind(self, node: NodeId) -> Zeros | None:
        """The zeros for which a node returned zeros; None where its forward call had none.

        A dead relu gives zeros to the layer after it, whose weight then has no gradient, and lets
        none through to the layer before it: both lead to the relu.
        """
        op = self.recording.nodes[node].made_by
        if op is None:
            return None
        given = self._carried(op)
        if given and all(maker is None for _, maker in given):
            return Zeros(name=self.recording.tensors[given[0][0]].name or "a tensor", op=None)
        if not given and op not in self._returned:
            return None
        while makers := [maker for _, maker in self._carried(op) if maker is not None]:
            op = makers[0]
        return Zeros(name="", op=self.recording.ops[op])

    def _carried(self, number: OpId) -> list[tuple[TensorId, OpId | None]]:
        """The zeros that a call only carries on: a factor, or all that it was given."""
        op, given = self.recording.ops[number], self._given.get(number, [])
        if op.name in FACTORS:
            return [
                (tensor, maker) for tensor, maker in given if tensor in op.inputs[FACTORS[op.name]]
            ]
        return given if {tensor for tensor, _ in given} == set(op.inputs) else []


def _is_zero(shot: Snapshot) -> bool:
    return shot.norm == 0 and shot.numel > 0
