"""Turn a list of events into the same list with ProblemSeen where something went wrong.

That is the first NaN or Inf of forward and of each backward, at its birth and not where it was only
carried on, and saved tensors that were written over or freed. Calls made while a backward runs, in
a hook or in a backward of the user's own, are part of that backward; those that checkpointing makes
again are forward. This is the one judge of whether a forward was finite: other rooms read its
ProblemSeen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from autograd_lab.recording import (
    BackwardFinished,
    BackwardStarted,
    Event,
    GradAccumulated,
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

    What the block ended with is left out where it is the error of the last backward that raised.

    writes      (storage number, op) of the in-place calls
    parameters  snapshots of parameters that no event has
    """
    finder = _Finder(nodes, ops, tensors, writes)
    finder.look_at(parameters)
    found: list[Event] = []
    for event in events:
        match event:
            case ProblemSeen() if finder.is_told(event):
                continue
            case OpCalled():
                found += [event, *finder.after_op(event)]
            case BackwardStarted():
                found += [event, *finder.after_backward_started(event)]
            case BackwardFinished():
                finder.after_backward_finished(event)
                found.append(event)
            case NodeStarted():
                finder.after_node_started(event)
                found.append(event)
            case NodeFinished():
                found += [event, *finder.after_node(event)]
            case GradAccumulated():
                found += [event, *finder.after_accumulation(event)]
            case _:
                found.append(event)
    return found


class _Finder:
    """What is known so far.

    held        what each tensor held when it was last seen: "NaN", "Inf", "" for finite, None
                where it could not be looked at
    on_purpose  tensors that hold Inf because the user put it there (masks), and what came of them
    told        gradients whose NaN or Inf was reported already, and what came of them
    hooked      passes in which a call of the user's made the first NaN or Inf, with the node inside
                which it ran
    """

    def __init__(
        self,
        nodes: Sequence[GradNode],
        ops: Sequence[Op],
        tensors: Sequence[TensorRef],
        writes: Sequence[tuple[int, OpId]],
    ) -> None:
        self.nodes, self.ops, self.tensors, self.writes = nodes, ops, tensors, writes
        self.received: dict[NodeId, tuple[Snapshot | None, ...]] = {}
        self.held: dict[TensorId, str | None] = {}
        self.on_purpose: set[TensorId] = set()
        self.told: set[TensorId] = set()
        self.gradients: set[TensorId] = set()
        self.bad_forward = False
        self.bad_passes: set[PassId] = set()
        self.hooked: dict[PassId, NodeId | None] = {}
        self.stale: set[TensorId] = set()
        self.open_passes: list[tuple[int, PassId]] = []
        self.last_error: str | None = None
        self.reported: set[tuple[NodeId, str]] = set()

    def look_at(self, shots: Iterable[Snapshot]) -> None:
        """Remember which tensors are finite."""
        for shot in shots:
            self.held[shot.tensor] = None if shot.finite is None else _what([shot])

    def look_at_gradients(self, shots: Iterable[Snapshot | None], pass_id: PassId) -> None:
        """Remember which gradients are finite, and that a pass has told of those that are not."""
        known = [shot for shot in shots if shot is not None]
        self.look_at(known)
        self.gradients.update(shot.tensor for shot in known)
        if pass_id in self.bad_passes or pass_id in self.hooked:
            self.told.update(shot.tensor for shot in known if shot.finite is False)

    def is_told(self, event: ProblemSeen) -> bool:
        """It is the end of the block by the error that a backward raised before."""
        error = self.last_error
        return event.pass_id is None and error is not None and event.text.endswith(f" {error}")

    def after_op(self, event: OpCalled) -> list[ProblemSeen]:
        op = self.ops[event.op]
        self.look_at(event.inputs)
        self.on_purpose.update(shot.tensor for shot in event.inputs if _is_mask(shot))
        before = {tensor: self.held.get(tensor) for tensor in op.inputs}
        self.look_at(event.outputs)
        what = _what(event.outputs)
        bad = {shot.tensor for shot in event.outputs if shot.finite is False}
        self.on_purpose -= bad
        self.told -= bad
        if not bad:
            return []
        bad_inputs = {tensor for tensor, held in before.items() if held}
        if what == "Inf" and (op.name in MASKING or not op.inputs):
            self.on_purpose |= bad
            return []
        if bad_inputs and bad_inputs <= self.told:
            self.told |= bad
            return []
        if bad_inputs and what == "Inf" and bad_inputs <= self.on_purpose | self.told:
            self.on_purpose |= bad
            return []
        pass_id = None if op.recomputed else self._open_pass(event)
        if pass_id is None:
            return self._in_forward(event, op, what, before)
        self.told |= bad
        if pass_id in self.bad_passes or pass_id in self.hooked:
            return []
        self.hooked[pass_id] = event.inside
        where = "in a hook" if event.inside is None else f"inside {self.nodes[event.inside].name}"
        text = (
            f"First {what} in backward {pass_id}: {op.name}{_at(op)}, called {where} during "
            f"backward {pass_id}, returned it from {self._inputs(op, what, before)}."
            f"{self._forward()}"
        )
        return [
            ProblemSeen(
                kind="non-finite backward",
                text=text,
                op=op.id,
                node=event.inside,
                pass_id=pass_id,
                source=op.source,
                thread=event.thread,
                inside=event.inside,
            )
        ]

    def _in_forward(
        self, event: OpCalled, op: Op, what: str, before: Mapping[TensorId, str | None]
    ) -> list[ProblemSeen]:
        if self.bad_forward:
            return []
        self.bad_forward = True
        text = (
            f"First {what} in forward: {op.name}{_at(op)} returned it from "
            f"{self._inputs(op, what, before)}."
        )
        return [
            ProblemSeen(
                kind="non-finite forward",
                text=text,
                op=op.id,
                source=op.source,
                thread=event.thread,
                inside=event.inside,
            )
        ]

    def _inputs(self, op: Op, what: str, before: Mapping[TensorId, str | None]) -> str:
        """What a call was given, and which of it was not finite."""
        inputs = ", ".join(
            f"{self._call(tensor)} {_shape(self.tensors[tensor].shape)}" for tensor in op.inputs
        )
        same = [
            tensor
            for tensor, held in before.items()
            if held == "NaN" or (held and held == what and tensor not in self.on_purpose)
        ]
        other = [tensor for tensor, held in before.items() if held]
        unknown = [tensor for tensor, held in before.items() if held is None]
        if same:
            blame = f"{_join(map(self._call, same))} already held it"
        elif other:
            blame = f"{_join(map(self._call, other))} held Inf"
        elif unknown:
            unread = _join(map(self._call, unknown))
            blame = f"{unread} could not be looked at, its other inputs were finite"
        else:
            blame = "all its inputs were finite"
        return f"{inputs or 'no tensors'}; {blame}"

    def after_node_started(self, event: NodeStarted) -> None:
        self.received[event.node] = event.grad_outputs
        self.look_at_gradients(event.grad_outputs, event.pass_id)

    def after_node(self, event: NodeFinished) -> list[ProblemSeen]:
        problem = self._node_problem(event)
        self.look_at_gradients(event.grad_inputs, event.pass_id)
        received = self.received.get(event.node, ())
        self.look_at_gradients(received, event.pass_id)
        return problem

    def _node_problem(self, event: NodeFinished) -> list[ProblemSeen]:
        bad = [shot for shot in event.grad_inputs if shot is not None and shot.finite is False]
        received = [shot for shot in self.received.get(event.node, ()) if shot is not None]
        bad_received = [shot for shot in received if shot.finite is False]
        if event.pass_id in self.bad_passes or not (bad or bad_received):
            return []
        self.bad_passes.add(event.pass_id)
        if event.pass_id in self.hooked and (
            bad_received or self.hooked[event.pass_id] == event.node
        ):
            return []
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
            first = "Also" if event.pass_id in self.hooked else "First"
            text = (
                f"{first} {_what(bad)} in backward {event.pass_id}: {node.name}{self._made(node)} "
                f"returned it in grad_input {numbers}, from finite grad_outputs {shapes}."
                f"{self._forward()}"
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

    def after_accumulation(self, event: GradAccumulated) -> list[ProblemSeen]:
        """A `.grad` that was not finite before, though no recorded backward made it so."""
        before, added = event.before, event.added
        is_stale = before is not None and before.finite is False and event.leaf not in self.stale
        self.look_at_gradients((before, added, event.after), event.pass_id)
        if event.after is not None and event.after.finite is False:
            self.stale.add(event.leaf)
        if before is None or not is_stale or (added is not None and added.finite is False):
            return []
        self.told.update(shot.tensor for shot in (before, event.after) if shot is not None)
        text = (
            f".grad of {self._call(event.leaf)} already held {_what([before])} before this "
            f"backward: what backward {event.pass_id} added is finite. Set it to None, or call "
            "zero_grad(), before each backward."
        )
        return [
            ProblemSeen(
                kind="non-finite backward",
                text=text,
                node=event.node,
                pass_id=event.pass_id,
                thread=event.thread,
                inside=event.inside,
            )
        ]

    def after_backward_finished(self, event: BackwardFinished) -> None:
        self.open_passes = [one for one in self.open_passes if one[1] != event.pass_id]
        self.last_error = event.error or self.last_error

    def after_backward_started(self, event: BackwardStarted) -> list[ProblemSeen]:
        self.open_passes.append((event.thread, event.pass_id))
        self.look_at_gradients(event.grad_outputs, event.pass_id)
        found: list[ProblemSeen] = []
        freed: list[tuple[GradNode, str]] = []
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
                if writer is None and "modified" not in slot.problem:
                    freed.append((node, f"its saved {slot.name}, which was {slot.problem}"))
                    continue
                by = f", by {writer.name}{_at(writer)}" if writer else ""
                text = (
                    f"{node.name}{self._made(node)} needs its saved {slot.name}, "
                    f"which was {slot.problem}{by}."
                )
                found.append(
                    ProblemSeen(
                        kind="saved tensor modified",
                        text=text,
                        node=node.id,
                        op=None if writer is None else writer.id,
                        pass_id=event.pass_id,
                        source=node.source if writer is None else writer.source,
                        thread=event.thread,
                    )
                )
        return [*found, *self._freed(freed, event)]

    def _freed(
        self, freed: Sequence[tuple[GradNode, str]], event: BackwardStarted
    ) -> list[ProblemSeen]:
        """One line for all that an earlier backward freed: the first node, and how many more."""
        if not freed:
            return []
        (node, needs), *others = freed
        count = len(others)
        more = f"; so {'was' if count == 1 else 'were'} {count} more" if others else ""
        text = f"{node.name}{self._made(node)} needs {needs}{more}."
        return [
            ProblemSeen(
                kind="saved tensor freed",
                text=text,
                node=node.id,
                pass_id=event.pass_id,
                source=node.source,
                thread=event.thread,
            )
        ]

    def _open_pass(self, event: OpCalled) -> PassId | None:
        """The pass during which a call was made: the innermost one of its thread.

        Nodes on a GPU run in threads of the engine, where no pass was started.
        """
        own = [pass_id for thread, pass_id in self.open_passes if thread == event.thread]
        if not own and event.inside is not None:
            own = [pass_id for _, pass_id in self.open_passes]
        return own[-1] if own else None

    def _forward(self) -> str:
        return "" if self.bad_forward else " The forward was finite."

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
        name = self.tensors[tensor].name
        return name or ("a gradient" if tensor in self.gradients else "an unnamed tensor")


def _what(shots: Iterable[Snapshot]) -> str:
    """What those that are not finite hold: the norm is NaN where any element is one, else Inf."""
    norms = [shot.norm for shot in shots if shot.finite is False]
    has_nan = any(norm is None or norm != norm for norm in norms)
    return "NaN" if has_nan else "Inf" if norms else ""


def _is_mask(shot: Snapshot) -> bool:
    """Data of 0 and -Inf and nothing else, to be added to scores; known only where values are."""
    if _what([shot]) != "Inf" or shot.values is None:
        return False
    array = shot.values.array
    return bool(np.isin(array, (0, -np.inf)).all() and np.isneginf(array).any())


def _at(op: Op) -> str:
    module = f" in {op.module}" if op.module else ""
    return f"{module} at {op.source.place}" if op.source else module


def _shape(shape: tuple[int, ...]) -> str:
    return str(list(shape))


def _join(names: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(names))
