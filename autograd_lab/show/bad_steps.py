"""Turn a recording into the steps from which its calls, tensors and nodes hold NaN or Inf."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autograd_lab.recording import (
    Event,
    GradAccumulated,
    NodeFinished,
    NodeId,
    OpCalled,
    OpId,
    PassId,
    Recording,
    Snapshot,
    TensorId,
)

from .box_numbers import bad_amount
from .passes import BackwardPass
from .words import is_bad

__all__ = ["BadSteps", "has_fault"]


class BadSteps:
    """The first step of each at which something that it holds or made is NaN or Inf.

    ops, runs  calls by what they returned, node runs by what they received or returned
    tensors    leaves and inputs by their own value; grads: leaves by their `.grad`
    births     where it began: what came in was finite, or it came with the data; none where the
               recorder found no fault, as with the -Inf of a mask
    """

    def __init__(self, recording: Recording, passes: Iterable[BackwardPass]) -> None:
        self.ops: dict[OpId, int] = {}
        self.tensors: dict[TensorId, int] = {}
        self.grads: dict[TensorId, int] = {}
        self.runs: dict[tuple[PassId | None, NodeId], int] = {}
        self.op_births: dict[OpId, int] = {}
        self.run_births: dict[tuple[PassId | None, NodeId], int] = {}
        self._held: set[TensorId] = set()
        for step, event in enumerate(recording.events, 1):
            if isinstance(event, OpCalled):
                self._follow_call(recording, event, step)
            elif isinstance(event, GradAccumulated) and is_bad(event.after):
                self.grads.setdefault(event.leaf, step)
        for passed in passes:
            for run in passed.runs:
                key = passed.started.pass_id, run.node
                if any(map(is_bad, run.received)):
                    self.runs[key] = run.step
                elif run.bad:
                    self.runs[key] = self.run_births[key] = run.finish
        self.data_births = dict(self.tensors)
        if not has_fault(recording):
            for births in (self.op_births, self.run_births, self.data_births):
                births.clear()

    def _follow_call(self, recording: Recording, event: OpCalled, step: int) -> None:
        for one in event.inputs:
            if is_bad(one):
                self._held.add(one.tensor)
                self.tensors.setdefault(one.tensor, step)
        was_bad = not self._held.isdisjoint(recording.op(event.op).inputs)
        for one in event.outputs:
            if not is_bad(one):
                self._held.discard(one.tensor)
                continue
            self._held.add(one.tensor)
            self.ops.setdefault(event.op, step)
            if not was_bad:
                self.op_births.setdefault(event.op, step)

    def bad_step(
        self,
        pass_id: PassId | None,
        ops: Sequence[OpId],
        nodes: Sequence[NodeId],
        tensors: Sequence[TensorId],
    ) -> int | None:
        """From when some of these hold it; `pass_id` is that of the lane of the nodes."""
        found = [self.ops.get(op) for op in ops]
        found += [held.get(tensor) for held in (self.tensors, self.grads) for tensor in tensors]
        found += [self.runs.get((pass_id, node)) for node in nodes]
        return min((step for step in found if step is not None), default=None)

    def birth_step(
        self,
        pass_id: PassId | None,
        ops: Sequence[OpId],
        nodes: Sequence[NodeId],
        tensors: Sequence[TensorId],
    ) -> int | None:
        """When it began in one of these."""
        found = [self.op_births.get(op) for op in ops]
        found += [self.data_births.get(tensor) for tensor in tensors]
        found += [self.run_births.get((pass_id, node)) for node in nodes]
        return min((step for step in found if step is not None), default=None)


def has_fault(recording: Recording) -> bool:
    """Whether the recorder calls some NaN or Inf a problem, or there is a NaN.

    An Inf alone may be there on purpose: the -Inf of a mask is no fault.
    """
    if any(problem.kind.startswith("non-finite") for problem in recording.problems):
        return True
    shots = (shot for event in recording.events for shot in _made(event))
    return any(is_bad(shot) and bad_amount([shot]) == "NaN" for shot in shots)


def _made(event: Event) -> tuple[Snapshot | None, ...]:
    match event:
        case OpCalled():
            return (*event.inputs, *event.outputs)
        case NodeFinished():
            return event.grad_inputs
        case _:
            return ()
