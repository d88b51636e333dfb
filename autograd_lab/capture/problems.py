"""Turn a list of events into the same list with ProblemSeen where something went wrong.

That is the first NaN or Inf of forward and of each backward, at its birth and not where it was only
carried on, and saved tensors that were written over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autograd_lab.recording import (
    BackwardStarted,
    Event,
    GradNode,
    NodeFinished,
    NodeId,
    NodeStarted,
    Op,
    OpCalled,
    OpId,
    PassId,
    ProblemSeen,
    Snapshot,
    TensorId,
    TensorRef,
)

from .tape import MASKING

__all__ = ["with_problems"]


def with_problems(
    events: Sequence[Event],
    nodes: Sequence[GradNode],
    ops: Sequence[Op],
    tensors: Sequence[TensorRef],
    writes: Sequence[tuple[int, OpId]],
    parameters: Iterable[Snapshot],
) -> list[Event]:
    """Insert a ProblemSeen after each event that shows a problem for the first time.

    writes      (storage number, op) of the in-place calls
    parameters  snapshots of parameters that no event has
    """
    finder = _Finder(nodes, ops, tensors, writes)
    finder.look_at(parameters)
    found: list[Event] = []
    for event in events:
        found.append(event)
        match event:
            case OpCalled():
                found.extend(finder.after_op(event))
            case BackwardStarted():
                found.extend(finder.after_backward_started(event))
            case NodeStarted():
                finder.received[event.node] = event.grad_outputs
            case NodeFinished():
                found.extend(finder.after_node(event))
            case _:
                pass
    return found


class _Finder:
    def __init__(
        self,
        nodes: Sequence[GradNode],
        ops: Sequence[Op],
        tensors: Sequence[TensorRef],
        writes: Sequence[tuple[int, OpId]],
    ) -> None:
        self.nodes, self.ops, self.tensors, self.writes = nodes, ops, tensors, writes
        self.received: dict[NodeId, tuple[Snapshot | None, ...]] = {}
        self.is_bad: dict[TensorId, bool | None] = {}
        self.bad_forward = False
        self.bad_passes: set[PassId] = set()
        self.reported: set[tuple[NodeId, str]] = set()

    def look_at(self, shots: Iterable[Snapshot]) -> None:
        """Remember which tensors are finite."""
        for shot in shots:
            self.is_bad[shot.tensor] = None if shot.finite is None else not shot.finite

    def after_op(self, event: OpCalled) -> list[ProblemSeen]:
        op = self.ops[event.op]
        self.look_at(event.inputs)
        bad_inputs = [tensor for tensor in op.inputs if self.is_bad.get(tensor)]
        self.look_at(event.outputs)
        bad = [shot for shot in event.outputs if shot.finite is False]
        is_on_purpose = _what(bad) == "Inf" and (op.name in MASKING or not op.inputs)
        if not bad or self.bad_forward or is_on_purpose:
            return []
        self.bad_forward = True
        inputs = (
            ", ".join(
                f"{self._call(tensor)} {_shape(self.tensors[tensor].shape)}" for tensor in op.inputs
            )
            or "no tensors"
        )
        unknown = [tensor for tensor in op.inputs if self.is_bad.get(tensor) is None]
        if bad_inputs:
            blame = f"; {_join(map(self._call, bad_inputs))} already held it"
        elif unknown:
            unread = _join(map(self._call, unknown))
            blame = f"; {unread} could not be looked at, its other inputs were finite"
        else:
            blame = "; all its inputs were finite"
        text = (
            f"First {_what(bad)} in forward: {op.name}{_at(op)} returned it from {inputs}{blame}."
        )
        return [
            ProblemSeen(
                kind="non-finite forward",
                text=text,
                op=op.id,
                source=op.source,
                thread=event.thread,
            )
        ]

    def after_node(self, event: NodeFinished) -> list[ProblemSeen]:
        bad = [shot for shot in event.grad_inputs if shot is not None and shot.finite is False]
        received = [shot for shot in self.received.get(event.node, ()) if shot is not None]
        if event.pass_id in self.bad_passes:
            return []
        bad_received = [shot for shot in received if shot.finite is False]
        if not bad and not bad_received:
            return []
        self.bad_passes.add(event.pass_id)
        node = self.nodes[event.node]
        if bad_received:
            text = (
                f"First {_what(bad_received)} in backward {event.pass_id}: it came into {node.name}"
                f"{self._made(node)} from outside the recorded nodes: the gradient that backward "
                "was given, or a hook."
            )
        else:
            numbers = _join(
                str(k)
                for k, shot in enumerate(event.grad_inputs)
                if shot is not None and shot.finite is False
            )
            shapes = ", ".join(_shape(self.tensors[shot.tensor].shape) for shot in received)
            forward = "" if self.bad_forward else " The forward was finite."
            text = (
                f"First {_what(bad)} in backward {event.pass_id}: {node.name}{self._made(node)} "
                f"returned it in grad_input {numbers}, from finite grad_outputs {shapes}.{forward}"
            )
        return [
            ProblemSeen(
                kind="non-finite backward",
                text=text,
                node=node.id,
                op=node.made_by,
                pass_id=event.pass_id,
                source=node.source,
                thread=event.thread,
                inside=event.inside,
            )
        ]

    def after_backward_started(self, event: BackwardStarted) -> list[ProblemSeen]:
        found = []
        stack, seen = list(event.roots), set(event.roots)
        while stack:
            node = self.nodes[stack.pop()]
            for edge in node.edges:
                if edge is not None and edge.node not in seen:
                    seen.add(edge.node)
                    stack.append(edge.node)
        for number in sorted(seen):
            node = self.nodes[number]
            for slot in node.saved:
                if slot.problem is None or (number, slot.name) in self.reported:
                    continue
                self.reported.add((number, slot.name))
                writer = self._writer(slot.storage, node.made_by)
                by = f", by {writer.name}{_at(writer)}" if writer else ""
                text = (
                    f"{node.name}{self._made(node)} needs its saved {slot.name}, "
                    f"which was {slot.problem}{by}."
                )
                found.append(
                    ProblemSeen(
                        kind="saved tensor modified"
                        if writer or "modified" in slot.problem
                        else "saved tensor freed",
                        text=text,
                        node=node.id,
                        op=None if writer is None else writer.id,
                        pass_id=event.pass_id,
                        source=node.source if writer is None else writer.source,
                        thread=event.thread,
                    )
                )
        return found

    def _writer(self, storage: int | None, after: OpId | None) -> Op | None:
        """The last in-place call on a storage since the node was made."""
        found = [
            op
            for written, op in self.writes
            if written == storage and (after is None or op > after)
        ]
        return self.ops[found[-1]] if found and storage is not None else None

    def _made(self, node: GradNode) -> str:
        if node.made_by is not None:
            return f" (made by {self.ops[node.made_by].name}{_at(self.ops[node.made_by])})"
        return f" ({node.source.place})" if node.source else ""

    def _call(self, tensor: TensorId) -> str:
        return self.tensors[tensor].name or "an unnamed tensor"


def _what(shots: Iterable[Snapshot]) -> str:
    """The norm is NaN where any element is one, else Inf."""
    return "NaN" if any(shot.norm is None or shot.norm != shot.norm for shot in shots) else "Inf"


def _at(op: Op) -> str:
    module = f" in {op.module}" if op.module else ""
    return f"{module} at {op.source.place}" if op.source else module


def _shape(shape: tuple[int, ...]) -> str:
    return str(list(shape))


def _join(names: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(names))
