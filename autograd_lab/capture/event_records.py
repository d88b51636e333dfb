"""Turn raw events into events: what happened, in order."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from autograd_lab.recording import (
    BackwardFinished,
    BackwardStarted,
    Event,
    GradAccumulated,
    NodeFinished,
    NodeId,
    NodeStarted,
    OpCalled,
    OpId,
    OptimizerStepped,
    PassId,
    ProblemSeen,
)

from .graph_records import GraphRecords
from .places import Place
from .tape import Rows
from .wording import Wording

__all__ = ["EventRecords"]


class EventRecords:
    """The events of a tape; they name the `.grad` of leaves on the way."""

    def __init__(self, graph: GraphRecords) -> None:
        self.graph = graph
        self.tape = graph.tape
        self._wording = Wording(graph.nodes, graph.ops, ())

    def all(self) -> list[Event]:
        """Every event, without the problems that are found by looking at all of them."""
        return [event for raw in self.tape.events for event in self._events(raw)]

    def _events(self, raw: tuple[Any, ...]) -> list[Event]:
        kind, thread, inside, *facts = raw
        when: dict[str, Any] = {"thread": thread, "inside": inside}
        match kind:
            case "op":
                op = self.graph.raw_ops[facts[0]]
                outputs = tuple(map(self.graph.snapshot, op.outputs))
                inputs = tuple(self.graph.snapshot(row) for row, _ in op.new_inputs)
                return [OpCalled(op=OpId(facts[0]), outputs=outputs, inputs=inputs, **when)]
            case "backward started":
                number, roots, grads, accumulates, retain, create, place = facts
                return [
                    BackwardStarted(
                        pass_id=number,
                        roots=tuple(roots),
                        grad_outputs=self.graph.snapshots(tuple(grads)),
                        accumulates=accumulates,
                        retain_graph=retain,
                        create_graph=create,
                        source=None if place is None else self.graph.line_of(place),
                        **when,
                    ),
                    *self._refusals(number, when),
                ]
            case "backward finished":
                number, error, failed_in, place = facts
                finished = BackwardFinished(pass_id=number, error=error, **when)
                if error is None:
                    return [finished]
                raised = self._exception(f"Backward {number} raised {error}", place, when)
                return [replace(raised, node=failed_in, pass_id=number), finished]
            case "node started":
                number, node, rows = facts
                return [
                    NodeStarted(
                        pass_id=number, node=node, grad_outputs=self.graph.snapshots(rows), **when
                    )
                ]
            case "node finished":
                number, node, rows, added, before, after = facts
                return self._finished(number, node, rows, (added, before, after), when)
            case "node ran":
                number, node, received, rows = facts
                started = NodeStarted(
                    pass_id=number, node=node, grad_outputs=self.graph.snapshots(received), **when
                )
                return [started, *self._finished(number, node, rows, None, when)]
            case "accumulated":
                number, node, added, after = facts
                started = NodeStarted(
                    pass_id=number, node=node, grad_outputs=self.graph.snapshots(added), **when
                )
                events = self._finished(number, node, (), (added, None, after), when)
                return [started, *map(_with_doubt, events)]
            case "optimizer":
                return [self._optimizer_step(*facts, when=when)]
            case "exception":
                text, place = facts
                return [self._exception(text, place, when)]
            case _:
                raise AssertionError(kind)

    def _refusals(self, number: PassId, when: dict[str, Any]) -> list[ProblemSeen]:
        """One line for all saved tensors that this pass will miss in nodes that ran before."""
        missed = [facts for facts in self.tape.refused if facts[0] == number]
        if not missed:
            return []
        _, number_of_node, slot, why = missed[0]
        node = self.graph.nodes[number_of_node]
        others = len(missed) - 1
        more = f"; so {'was' if others == 1 else 'were'} {others} more" if others else ""
        needs = f"{self._wording.node(node)} needs its saved {slot}, which was {why}{more}."
        return [
            ProblemSeen(
                kind="saved tensor freed",
                text=needs,
                node=node.id,
                pass_id=number,
                source=node.source,
                **when,
            )
        ]

    def _exception(self, text: str, place: Place | None, when: dict[str, Any]) -> ProblemSeen:
        source = None if place is None else self.graph.line_of(place)
        return ProblemSeen(kind="exception", text=text, source=source, **when)

    def _finished(
        self,
        number: PassId,
        node: NodeId,
        rows: Rows,
        grad: tuple[int | None, int | None, int | None] | None,
        when: dict[str, Any],
    ) -> list[Event]:
        """`grad` is what was added to the leaf's `.grad`, and what that was before and after."""
        finished = NodeFinished(
            pass_id=number, node=node, grad_inputs=self.graph.snapshots(rows), **when
        )
        leaf = self.tape.nodes[node].leaf
        if leaf is None or grad is None:
            return [finished]
        names = self.graph.names
        if leaf in names:
            for row in (grad[1], grad[2]):
                if row is not None:
                    names.setdefault(self.tape.shots.origin(row), f"{names[leaf]}.grad")
        added, before, after = self.graph.snapshots(grad)
        accumulated = GradAccumulated(
            pass_id=number,
            node=node,
            leaf=self.graph.id_of(leaf),
            before=before,
            added=added,
            after=after,
            **when,
        )
        return [accumulated, finished]

    def _optimizer_step(
        self, place: Place, calls: int, written: set[int], *, when: dict[str, Any]
    ) -> OptimizerStepped:
        return OptimizerStepped(
            optimizer=place.optimizer or "Optimizer",
            op_count=calls,
            parameters=self.graph.ids_of(sorted(written)),
            source=self.graph.line_of(place),
            **when,
        )


def _with_doubt(event: Event) -> Event:
    """Say that `before` was not seen where the sum is not what was added.

    `.grad` was None when the engine was called, but something set it before the node ran.
    """
    if not isinstance(event, GradAccumulated) or event.added is None or event.after is None:
        return event
    added, after = event.added.norm, event.after.norm
    if added is None or after is None or math.isclose(added, after, rel_tol=1e-5) or added != added:
        return event
    unseen = replace(event.after, norm=None, finite=None, detail=None, note="set during the pass")
    return replace(event, before=unseen)
