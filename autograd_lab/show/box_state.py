"""Turn a laid-out recording and a step into what is known of each box then."""

from __future__ import annotations

from enum import Enum

from autograd_lab.recording import (
    BackwardFinished,
    BackwardStarted,
    GradAccumulated,
    NodeFinished,
    NodeId,
    NodeStarted,
    OpCalled,
    OpId,
    PassId,
    ProblemSeen,
    Recording,
    Snapshot,
    TensorId,
)
from autograd_lab.replay import GraphLayout, PlacedEdge, PlacedNode, frame_at

from .bad_steps import BadSteps
from .passes import NodeRun, backward_passes

__all__ = ["BoxState", "Status"]


class Status(Enum):
    """Where a box stands in time."""

    DONE = "done"
    NOW = "now"
    WAITING = "waiting"
    READY = "ready"
    FAILED = "failed"
    LATER = "later"


class BoxState:
    """The status and the numbers of the boxes of one drawing.

    step    None: what happened in the end; else what is known right after that step
    values  what tensors held; grads: `.grad` of leaves; op_events: calls that have returned
    errors  "RuntimeError: first line" by pass and node in which backward raised
    """

    def __init__(self, recording: Recording, layout: GraphLayout, step: int | None) -> None:
        self.recording = recording
        self.layout = layout
        self._lane_passes = {lane.index: lane.pass_id for lane in layout.lanes}
        self._boxes = {box.key: box for box in layout.nodes}
        self.passes = backward_passes(recording)
        self.at_step = step is not None
        self.step = len(recording.events) if step is None else step
        self._frame = frame_at(recording, step) if step is not None else None
        self.values: dict[TensorId, Snapshot] = {}
        self.grads: dict[TensorId, Snapshot | None] = {}
        self.op_events: dict[OpId, OpCalled] = {}
        self._runs: dict[tuple[PassId, NodeId], NodeRun] = {}
        self._open: set[tuple[PassId | None, NodeId]] = set()
        self._finished: set[tuple[PassId, NodeId]] = set()
        self.errors: dict[tuple[PassId | None, NodeId], str] = {}
        self._bad_steps = BadSteps(recording, self.passes)
        self.started_passes: set[PassId] = set()
        for passed in self.passes:
            for run in passed.runs:
                self._runs[passed.started.pass_id, run.node] = run
        for event in recording.events[: self.step]:
            self._follow(event)
        if self._frame is not None:
            self.grads = dict(self._frame.grads)

    def _follow(self, event: object) -> None:
        match event:
            case OpCalled():
                self._follow_call(event)
            case BackwardStarted():
                self.started_passes.add(event.pass_id)
            case NodeStarted():
                self._open.add((event.pass_id, event.node))
            case NodeFinished():
                self._open.discard((event.pass_id, event.node))
                self._finished.add((event.pass_id, event.node))
            case GradAccumulated():
                self.grads[event.leaf] = event.after
            case ProblemSeen(kind="exception", pass_id=int(pass_id), node=int(node)):
                error = next((p.error for p in self.passes if p.started.pass_id == pass_id), None)
                self.errors[pass_id, node] = error or "an exception"
            case BackwardFinished(error=str(error)):
                for pass_id, node in self._runs:
                    if pass_id == event.pass_id and (pass_id, node) not in self._finished:
                        self.errors[pass_id, node] = error
            case _:
                pass

    def _follow_call(self, event: OpCalled) -> None:
        self.op_events[event.op] = event
        for snapshot in (*event.inputs, *event.outputs):
            self.values.setdefault(snapshot.tensor, snapshot)

    def status(self, box: PlacedNode) -> Status:
        """Done, running now, raised, or not run yet; without a step all that ran is done."""
        if self.error(box) is not None:
            return Status.FAILED
        now = self.recording.events[self.step - 1] if self.at_step and self.step else None
        match now:
            case OpCalled() if now.op in box.ops and box.kind in ("op", "fold") and box.lane == 0:
                return Status.NOW
            case NodeStarted() | NodeFinished() | GradAccumulated():
                if now.node in box.nodes and self.pass_of(box) == now.pass_id:
                    return Status.NOW
            case _:
                pass
        if self._has_run(box):
            return Status.DONE
        if self.at_step and any((self.pass_of(box), node) in self._open for node in box.nodes):
            return Status.NOW
        if self.waiting(box) is not None:
            return Status.WAITING
        return Status.READY if self._is_ready(box) else Status.LATER

    def edge_status(self, edge: PlacedEdge) -> Status:
        """An edge is done when a call has taken the tensor, when a node has sent the gradient."""
        if edge.kind == "forward":
            is_done = self.status(self._boxes[edge.target]) in (Status.DONE, Status.NOW)
        else:
            is_done = self._has_run(self._boxes[edge.source])
        return Status.DONE if is_done else Status.LATER

    def error(self, box: PlacedNode) -> str | None:
        """What a node of this box raised, in the pass of its lane."""
        pass_id = self.pass_of(box)
        return next(
            (self.errors[pass_id, node] for node in box.nodes if (pass_id, node) in self.errors),
            None,
        )

    def is_bad(self, box: PlacedNode) -> bool:
        """Something that this box holds or made is NaN or Inf, as far as it has run."""
        step = self._bad_steps.bad_step(self.pass_of(box), box.ops, box.nodes, box.tensors)
        return step is not None and step <= self.step

    def is_birth(self, box: PlacedNode) -> bool:
        """NaN or Inf began here: what came in was finite, or it came with the data."""
        step = self._bad_steps.birth_step(self.pass_of(box), box.ops, box.nodes, box.tensors)
        return step is not None and step <= self.step

    def waiting(self, box: PlacedNode) -> tuple[int, int] | None:
        """(received, expected) gradients of a node that has got some but not all."""
        if self._frame is None or len(box.nodes) != 1 or self._frame.pass_id != self.pass_of(box):
            return None
        return self._frame.waiting.get(box.nodes[0])

    def _is_ready(self, box: PlacedNode) -> bool:
        """It has all its gradients and has not started."""
        if self._frame is None or self._frame.pass_id != self.pass_of(box):
            return False
        return len(box.nodes) == 1 and box.nodes[0] in self._frame.ready

    def pass_of(self, box: PlacedNode) -> PassId | None:
        """The pass in whose lane a box stands."""
        return self._lane_passes.get(box.lane)

    def runs_of(self, box: PlacedNode) -> list[NodeRun]:
        """The runs of the nodes of a box, in the pass of its lane."""
        pass_id = self.pass_of(box)
        if pass_id is None:
            return []
        found = (self._runs.get((pass_id, node)) for node in box.nodes)
        return [run for run in found if run is not None]

    def _has_run(self, box: PlacedNode) -> bool:
        if box.kind in ("leaf", "input"):
            return True
        if box.lane == 0:
            return not self.at_step or all(op in self.op_events for op in box.ops)
        pass_id = self.pass_of(box)
        if pass_id is None:
            return False
        return all((pass_id, node) in self._finished for node in box.nodes)
