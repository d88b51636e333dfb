"""Turn events, one after the other, into the first NaN or Inf of forward and of each backward.

It is named at its birth and not where it was only carried on. Calls made while a backward runs, in
a hook or in a backward of the user's own, are part of that backward; those that checkpointing makes
again are forward. This is the one judge of whether a forward was finite: other rooms read its
ProblemSeen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from autograd_lab.recording import (
    BackwardFinished,
    BackwardStarted,
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
    SourceLine,
    TensorId,
)

from .blame import inputs_in_words, what_to_do
from .cures import cure_of_node
from .held_values import HeldValues
from .wording import Wording, joined, kind_of_bad, shape_words

__all__ = ["NonFinite"]


class NonFinite:
    """Who made the first NaN or Inf, as far as events were seen.

    hooked  passes in which a call of the user's made it, with the node inside which it ran
    stale   leaves whose `.grad` is known not to be finite
    """

    def __init__(self, wording: Wording, parameters: Iterable[Snapshot]) -> None:
        self.wording = wording
        self.values = HeldValues(wording.tensors)
        self.values.look_at(parameters)
        self.received: dict[NodeId, tuple[Snapshot | None, ...]] = {}
        self.bad_forward = False
        self.bad_passes: set[PassId] = set()
        self.hooked: dict[PassId, NodeId | None] = {}
        self.stale: set[TensorId] = set()
        self.open_passes: list[tuple[int, PassId]] = []

    def after_op(self, event: OpCalled) -> list[ProblemSeen]:
        """Judge what a call returned."""
        op = self.wording.ops[event.op]
        self.values.meet(event.inputs)
        before = self.values.of(op)
        self.values.look_at(event.outputs)
        what = kind_of_bad(event.outputs)
        bad = {shot.tensor for shot in event.outputs if shot.finite is False}
        if not bad or self.values.is_carried(op, what, bad, before):
            return []
        pass_id = None if op.recomputed else self._open_pass(event)
        if pass_id is None:
            return self._in_forward(event, op, what, before)
        self.values.told |= bad
        if pass_id in self.bad_passes or pass_id in self.hooked:
            return []
        self.hooked[pass_id] = event.inside
        where = "in a hook"
        if event.inside is not None:
            where = f"inside {self.wording.nodes[event.inside].name}"
        given = (op, what, before, self.values, self.wording)
        text = (
            f"First {what} in backward {pass_id}: {self.wording.call(op)}, called {where} during "
            f"backward {pass_id}, returned it from {inputs_in_words(*given)}."
            f"{self._forward()} {what_to_do(event, *given)}"
        )
        return [
            _backward_problem(event, pass_id, text, node=event.inside, op=op.id, source=op.source)
        ]

    def after_node_started(self, event: NodeStarted) -> None:
        """Remember what a node received."""
        self.received[event.node] = event.grad_outputs
        self._look_at_gradients(event.grad_outputs, event.pass_id)

    def after_node(self, event: NodeFinished) -> list[ProblemSeen]:
        """Judge what a node returned."""
        problem = self._node_problem(event)
        self._look_at_gradients(event.grad_inputs, event.pass_id)
        self._look_at_gradients(self.received.get(event.node, ()), event.pass_id)
        return problem

    def after_accumulation(self, event: GradAccumulated) -> list[ProblemSeen]:
        """A `.grad` that was not finite before, though no recorded backward made it so."""
        before, added = event.before, event.added
        is_stale = before is not None and before.finite is False and event.leaf not in self.stale
        self._look_at_gradients((before, added, event.after), event.pass_id)
        if event.after is not None:
            self.values.left[event.leaf] = event.after
            if event.after.finite is False:
                self.stale.add(event.leaf)
        if before is None or not is_stale or (added is not None and added.finite is False):
            return []
        self.values.told.update(shot.tensor for shot in (before, event.after) if shot is not None)
        text = (
            f".grad of {self.wording.tensor(event.leaf)} already held {kind_of_bad([before])} "
            f"before this backward: what backward {event.pass_id} added is finite. Set it to None, "
            "or call zero_grad(), before each backward."
        )
        return [_backward_problem(event, event.pass_id, text, node=event.node)]

    def after_backward_started(self, event: BackwardStarted) -> None:
        """Remember which pass runs, and what it was given."""
        self.open_passes.append((event.thread, event.pass_id))
        self._look_at_gradients(event.grad_outputs, event.pass_id)

    def after_backward_finished(self, event: BackwardFinished) -> None:
        """Remember that the pass is over."""
        self.open_passes = [one for one in self.open_passes if one[1] != event.pass_id]

    def _in_forward(
        self, event: OpCalled, op: Op, what: str, before: Mapping[TensorId, str | None]
    ) -> list[ProblemSeen]:
        if self.bad_forward:
            return []
        self.bad_forward = True
        given = (op, what, before, self.values, self.wording)
        text = (
            f"First {what} in forward: {self.wording.call(op)} returned it from "
            f"{inputs_in_words(*given)}. {what_to_do(event, *given)}"
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

    def _look_at_gradients(self, shots: Iterable[Snapshot | None], pass_id: PassId) -> None:
        """Remember which gradients are finite, and that a pass has told of those that are not."""
        known = [shot for shot in shots if shot is not None]
        self.values.look_at(known)
        self.wording.gradients.update(shot.tensor for shot in known)
        if pass_id in self.bad_passes or pass_id in self.hooked:
            self.values.told.update(shot.tensor for shot in known if shot.finite is False)

    def _node_problem(self, event: NodeFinished) -> list[ProblemSeen]:
        bad = [shot for shot in event.grad_inputs if shot is not None and shot.finite is False]
        received = [shot for shot in self.received.get(event.node, ()) if shot is not None]
        bad_received = [shot for shot in received if shot.finite is False]
        if event.pass_id in self.bad_passes or not (bad or bad_received):
            return []
        self.bad_passes.add(event.pass_id)
        by_hook = event.pass_id in self.hooked
        if by_hook and (bad_received or self.hooked[event.pass_id] == event.node):
            return []
        node = self.wording.nodes[event.node]
        first = f"{'Also' if by_hook else 'First'} {kind_of_bad(bad_received or bad)}"
        text = f"{first} in backward {event.pass_id}: " + (
            f"it came into {self.wording.node(node)} from outside the recorded nodes: the "
            "gradient that backward was given, or a hook. Look at these."
            if bad_received
            else f"{self.wording.node(node)} returned it in {self._born(event, node, received)}"
        )
        return [
            _backward_problem(
                event, event.pass_id, text, node=node.id, op=node.made_by, source=node.source
            )
        ]

    def _born(self, event: NodeFinished, node: GradNode, received: list[Snapshot]) -> str:
        """Where a node returned NaN or Inf, from what, and what to do about it."""
        tensors = self.wording.tensors
        bad = {
            number: shot
            for number, shot in enumerate(event.grad_inputs)
            if shot is not None and shot.finite is False
        }
        shapes = ", ".join(shape_words(tensors[shot.tensor].shape) for shot in received)
        came = f"grad_input {joined(map(str, bad))}, from finite grad_outputs {shapes}"
        if self.bad_forward:
            return f"{came}. The forward was not finite before that: mend it first."
        cure = cure_of_node(
            node,
            kind_of_bad(bad.values()),
            tensors[next(iter(bad.values())).tensor].dtype,
            is_masked=any(map(_has_zeros, received)),
        )
        return f"{came}. The forward was finite. {cure}"

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


def _backward_problem(
    event: OpCalled | NodeFinished | GradAccumulated,
    pass_id: PassId,
    text: str,
    *,
    node: NodeId | None,
    op: OpId | None = None,
    source: SourceLine | None = None,
) -> ProblemSeen:
    return ProblemSeen(
        kind="non-finite backward",
        text=text,
        op=op,
        node=node,
        pass_id=pass_id,
        source=source,
        thread=event.thread,
        inside=event.inside,
    )


def _has_zeros(shot: Snapshot) -> bool:
    return shot.norm == 0 or bool(shot.detail and shot.detail.zeros)
