"""Say what stands in and behind each box of a drawn graph, whole or at a step."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from autograd_lab.recording import (
    BackwardStarted,
    GradAccumulated,
    NodeFinished,
    NodeId,
    NodeStarted,
    OpCalled,
    OpId,
    PassId,
    Recording,
    Snapshot,
    TensorId,
)
from autograd_lab.replay import GraphLayout, PlacedEdge, PlacedNode, frame_at

from .numbers import format_number, format_shape
from .recording_tables import BackwardPass, NodeRun, backward_passes, first_grad, loss_words
from .text_width import fitted, sans_width
from .words import Words, amount, amounts, is_bad

__all__ = ["BoxWords", "Status", "Turn"]

MONO = 7.23
PADDING = 7.0


class Status(Enum):
    """Where a box stands in time."""

    DONE = "done"
    NOW = "now"
    WAITING = "waiting"
    LATER = "later"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Where one pass begins: its first node, and the call that made the loss if it is drawn."""

    root: PlacedNode
    loss: PlacedNode | None
    loss_words: str
    gradient: str
    later: bool


class BoxWords:
    """The words, numbers and status of the boxes of one drawing.

    step  None: what happened in the end; else what is known right after that step
    """

    def __init__(self, recording: Recording, layout: GraphLayout, step: int | None) -> None:
        self.recording = recording
        self.layout = layout
        self._lane_passes = {lane.index: lane.pass_id for lane in layout.lanes}
        self._boxes = {box.key: box for box in layout.nodes}
        self.words = Words(recording)
        self.passes = backward_passes(recording)
        self.at_step = step is not None
        self.step = len(recording.events) if step is None else step
        self._frame = frame_at(recording, step) if step is not None else None
        self._values: dict[TensorId, Snapshot] = {}
        self._grads: dict[TensorId, Snapshot | None] = {}
        self._op_events: dict[OpId, OpCalled] = {}
        self._runs: dict[tuple[PassId, NodeId], NodeRun] = {}
        self._finished: set[tuple[PassId, NodeId]] = set()
        self._started_passes: set[PassId] = set()
        for passed in self.passes:
            for run in passed.runs:
                self._runs[passed.started.pass_id, run.node] = run
        for event in recording.events[: self.step]:
            self._follow(event)
        if self._frame is not None:
            self._grads = dict(self._frame.grads)

    def _follow(self, event: object) -> None:
        match event:
            case OpCalled():
                self._op_events[event.op] = event
                for snapshot in (*event.inputs, *event.outputs):
                    self._values.setdefault(snapshot.tensor, snapshot)
            case BackwardStarted():
                self._started_passes.add(event.pass_id)
            case NodeFinished():
                self._finished.add((event.pass_id, event.node))
            case GradAccumulated():
                self._grads[event.leaf] = event.after
            case _:
                pass

    def status(self, box: PlacedNode) -> Status:
        """Done, running now, or not run yet; without a step everything that ran is done."""
        now = self.recording.events[self.step - 1] if self.at_step and self.step else None
        match now:
            case OpCalled() if now.op in box.ops and box.kind in ("op", "fold") and box.lane == 0:
                return Status.NOW
            case NodeStarted() | NodeFinished() | GradAccumulated():
                if now.node in box.nodes and self._pass_of(box) == now.pass_id:
                    return Status.NOW
            case _:
                pass
        if self._has_run(box):
            return Status.DONE
        return Status.LATER if self._waiting(box) is None else Status.WAITING

    def maker(self, box: PlacedNode) -> OpId | None:
        """The call that made the node of a box."""
        is_node = box.kind == "node" and len(box.nodes) == 1
        return self.recording.node(box.nodes[0]).made_by if is_node else None

    def _waiting(self, box: PlacedNode) -> tuple[int, int] | None:
        """(received, expected) gradients of a node that has got some but not all."""
        if self._frame is None or len(box.nodes) != 1 or self._frame.pass_id != self._pass_of(box):
            return None
        return self._frame.waiting.get(box.nodes[0])

    def edge_status(self, edge: PlacedEdge) -> Status:
        """An edge is drawn as done when what it comes from has run."""
        source = self._boxes.get(edge.source)
        if source is not None and self.status(source) in (Status.LATER, Status.WAITING):
            return Status.LATER
        return Status.DONE

    def is_bad(self, box: PlacedNode) -> bool:
        """Something that this box made is NaN or Inf, as far as it has run."""
        if box.lane == 0:
            events = (self._op_events.get(op) for op in box.ops)
            return any(is_bad(out) for event in events if event for out in event.outputs)
        runs = self._runs_of(box)
        return any(run.bad for run in runs if run.step <= self.step)

    def labels(self, box: PlacedNode) -> tuple[str, str]:
        """Two lines that fit a box: what it is, and the most telling number known so far."""
        room = box.width - PADDING
        label = next((name for name in self._names(box) if len(name) * MONO <= room), box.label)
        plain = box.sublabel.replace("()", "scalar")
        choices = [*self._numbers(box), plain, plain.rpartition(" ")[2]]
        sublabel = next((one for one in choices if sans_width(one) <= room), "")
        return label, sublabel or fitted(plain, room)

    def tip(self, box: PlacedNode) -> str:
        """The tooltip of a box: the whole of what is known, a line each."""
        lines = [self._tip_line(box)]
        if box.lane == 0 and len(box.ops) == 1 and box.kind == "op":
            lines += self._op_lines(box.ops[0])
        elif box.kind in ("leaf", "input") and box.tensors:
            lines += self._tensor_lines(box.tensors[0])
        elif box.kind == "node" and box.nodes:
            lines += self._node_lines(box)
        if self.at_step:
            lines.append(self._status_words(box))
        return "\n".join(line for line in lines if line)

    def turns(self) -> list[Turn]:
        """Where each pass starts from."""
        turns = (self._turn(passed) for passed in self.passes)
        return [turn for turn in turns if turn is not None]

    def _turn(self, passed: BackwardPass) -> Turn | None:
        root_ids = set(passed.started.roots)
        boxes = [box for box in self.layout.nodes if self._pass_of(box) == passed.started.pass_id]
        root = next((box for box in boxes if root_ids & set(box.nodes)), None)
        if root is None:
            return None
        makers = {self.recording.node(node).made_by for node in root_ids} - {None}
        loss = next((b for b in self.layout.nodes if b.lane == 0 and makers & set(b.ops)), None)
        later = passed.started.pass_id not in self._started_passes
        value = loss_words(self.recording, passed) if loss else None
        start = f"gradient starts at {first_grad(passed)}"
        return Turn(
            root=root,
            loss=loss,
            loss_words=f"{value} · " if value and passed.started.pass_id == 1 else "",
            gradient=start,
            later=later,
        )

    def _pass_of(self, box: PlacedNode) -> PassId | None:
        return self._lane_passes.get(box.lane)

    def _runs_of(self, box: PlacedNode) -> list[NodeRun]:
        pass_id = self._pass_of(box)
        if pass_id is None:
            return []
        found = (self._runs.get((pass_id, node)) for node in box.nodes)
        return [run for run in found if run is not None]

    def _has_run(self, box: PlacedNode) -> bool:
        if box.kind in ("leaf", "input"):
            return True
        if box.lane == 0:
            return not self.at_step or all(op in self._op_events for op in box.ops)
        pass_id = self._pass_of(box)
        if pass_id is None:
            return False
        return all((pass_id, node) in self._finished for node in box.nodes)

    def _names(self, box: PlacedNode) -> list[str]:
        """Choices for the first line, the most telling first."""
        if box.kind in ("leaf", "input") and len(box.tensors) == 1:
            value = amount(self._values.get(box.tensors[0]))
            return [f"{box.label} {value}"] if value.startswith("= ") else []
        if box.kind == "node" and len(box.nodes) == 1:
            leaf = self.recording.node(box.nodes[0]).leaf
            name = self.words.tensor(leaf) if leaf is not None else ""
            return [f"{part}.grad +=" for part in (name, name.rpartition(".")[2])] if name else []
        return []

    def _numbers(self, box: PlacedNode) -> list[str]:
        """Choices for the second line, the most telling first."""
        if box.kind in ("leaf", "input") and len(box.tensors) == 1:
            return self._tensor_choices(box.tensors[0])
        if box.kind == "op" and len(box.ops) == 1:
            event = self._op_events.get(box.ops[0])
            if event is not None and len(event.outputs) == 1:
                value = amount(event.outputs[0])
                return [f"value {value[2:]}", value, value[2:]] if value[:2] == "= " else []
        if box.kind == "node" and len(box.nodes) == 1:
            return self._node_choices(box)
        return []

    def _tensor_choices(self, tensor: TensorId) -> list[str]:
        ref = self.recording.tensor(tensor)
        shape = format_shape(ref.shape)
        if not (ref.is_leaf and ref.requires_grad):
            return [f"{shape} no grad wanted", f"{shape} no grad", shape]
        grad = self._grads.get(tensor)
        known = amount(grad).removeprefix("= ")
        choices = [f"{shape} · grad {known}", f"grad {known}"]
        if grad is not None and grad.norm is not None and grad.numel > 1:
            choices.append(f"grad {grad.norm:.2g}")  # two digits, where four don't fit
        return choices

    def _node_choices(self, box: PlacedNode) -> list[str]:
        waiting = self._waiting(box)
        if waiting is not None:
            return [f"{waiting[0]} of {waiting[1]} gradients", f"{waiting[0]} of {waiting[1]}"]
        runs = [run for run in self._runs_of(box) if run.step <= self.step]
        if not runs or not runs[0].received:
            return []
        received = amount(runs[0].received[0])
        if received.startswith("= "):
            return [f"grad {received[2:]}", received[2:]]
        return [f"grad norm {received}", f"norm {received}", received]

    def _tip_line(self, box: PlacedNode) -> str:
        if box.kind == "op" and len(box.ops) == 1:
            return self.words.call(self.recording.op(box.ops[0]))
        if box.kind == "node" and len(box.nodes) == 1:
            return self.recording.node(box.nodes[0]).name
        return box.label if not box.sublabel else f"{box.label}, {box.sublabel}"

    def _op_lines(self, op_id: OpId) -> list[str]:
        op = self.recording.op(op_id)
        event = self._op_events.get(op_id)
        shapes = ", ".join(format_shape(self.recording.tensor(out).shape) for out in op.outputs)
        norms = amounts(event.outputs) if event else ""
        module = f"module {self.words.module(op.module)}" if op.module is not None else ""
        where = f"{op.source.place}  {op.source.text.strip()}" if op.source else ""
        return [f"returns {shapes}{f', norm {norms}' if norms else ''}", module, where]

    def _tensor_lines(self, tensor: TensorId) -> list[str]:
        ref = self.recording.tensor(tensor)
        value = self._values.get(tensor)
        lines = [f"{format_shape(ref.shape)} {ref.dtype}"]
        if value is not None and value.norm is not None:
            lines.append(f"norm {format_number(value.norm)}")
        if not (ref.is_leaf and ref.requires_grad):
            return [*lines, "no gradient wanted"]
        return [*lines, f".grad {amount(self._grads.get(tensor))}"]

    def _node_lines(self, box: PlacedNode) -> list[str]:
        node = self.recording.node(box.nodes[0])
        lines = [f"rule: {line}" for line in (node.formula or "").splitlines()]
        for run in self._runs_of(box):
            if run.step <= self.step:
                lines.append(f"receives {amounts(run.received)}")
                if run.returned:
                    lines.append(f"returns {amounts(run.returned)}")
        if node.source is not None:
            lines.append(f"{node.source.place}  {node.source.text.strip()}")
        return lines

    def _status_words(self, box: PlacedNode) -> str:
        words = {
            Status.DONE: "",
            Status.NOW: "running now",
            Status.WAITING: "waits for more gradients",
            Status.LATER: "has not run yet",
        }
        return words[self.status(box)]
