"""Turn a list of events into the same list with ProblemSeen where something went wrong.

Three things are told: who made the first NaN or Inf (`non_finite`), which saved tensors a backward
can't have any more (`spent_graphs`), and where an exception came from (`raised`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from autograd_lab.recording import (
    BackwardFinished,
    BackwardStarted,
    Event,
    GradAccumulated,
    GradNode,
    NodeFinished,
    NodeStarted,
    Op,
    OpCalled,
    OpId,
    ProblemSeen,
    Snapshot,
    TensorRef,
)

from .cures import FREED
from .non_finite import NonFinite
from .raised import Raised
from .spent_graphs import SpentGraphs
from .wording import Wording

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
    wording = Wording(nodes, ops, tensors)
    non_finite = NonFinite(wording, parameters)
    spent = SpentGraphs(wording, writes)
    finished = [event for event in events if isinstance(event, BackwardFinished)]
    raised = Raised(wording, {event.pass_id: event.error for event in finished if event.error})
    found: list[Event] = []
    last_error: str | None = None
    for event in events:
        found.append(event)
        match event:
            case ProblemSeen():
                found.pop()
                if event.pass_id is not None or not last_error or last_error not in event.text:
                    found.append(_with_cure(event, raised))
            case OpCalled():
                raised.after_op(event)
                spent.after_op(event)
                found += non_finite.after_op(event)
            case BackwardStarted():
                raised.after_backward_started(event)
                non_finite.after_backward_started(event)
                found += spent.after_backward_started(event)
            case BackwardFinished():
                non_finite.after_backward_finished(event)
                last_error = event.error or last_error
            case NodeStarted():
                non_finite.after_node_started(event)
            case NodeFinished():
                found += non_finite.after_node(event)
            case GradAccumulated():
                found += non_finite.after_accumulation(event)
            case _:
                pass
    return found


def _with_cure(event: ProblemSeen, raised: Raised) -> ProblemSeen:
    """What the recorder noticed on the way, with what to do about it."""
    if event.kind == "exception":
        return raised.in_words(event)
    return replace(event, text=f"{event.text} {FREED}") if "freed" in event.kind else event
