"""Turn a recording and a step number into a Frame: the whole picture right after one event."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, SupportsIndex

from autograd_lab import views
from autograd_lab.errors import StepError
from autograd_lab.recording import Event, NodeId, PassId, Recording, Snapshot, TensorId

from .history import History, SavedAlive

__all__ = ["Frame", "SavedAlive", "frame_at", "frame_in", "whole_number"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Frame:
    """The picture at one step; frame 0 is before anything, frame i is right after event i - 1.

    event         the event that just happened; None at frame 0
    phase         "forward", "backward 1" (the number of the pass), "optimizer" or "between"
    pass_id       the innermost open pass, else the last one that was open; None before the first
    running       the innermost node that has started and not finished
    ops_done      forward calls so far
    saved_nbytes  bytes of the saved tensors alive, each storage counted once
    """

    recording: Recording = field(compare=False)
    index: int
    event: Event | None
    phase: str
    pass_id: PassId | None
    running: NodeId | None
    ops_done: int
    saved_nbytes: int
    history: History = field(compare=False)

    @property
    def done(self) -> frozenset[NodeId]:
        """Nodes finished in the pass `pass_id`."""
        if self.pass_id is None:
            return frozenset()
        return self.history.passes[self.pass_id].done(self.index)

    @property
    def waiting(self) -> Mapping[NodeId, tuple[int, int]]:
        """(received, expected) for the nodes of this pass that have some of their gradients."""
        if self.pass_id is None:
            return {}
        return self.history.passes[self.pass_id].waiting(self.index)

    @property
    def ready(self) -> frozenset[NodeId]:
        """Nodes of this pass that have all their gradients and have not started."""
        if self.pass_id is None:
            return frozenset()
        return self.history.passes[self.pass_id].ready(self.index)

    @property
    def saved_alive(self) -> tuple[SavedAlive, ...]:
        """Saved tensors that a backward may still need, in the order of saving."""
        return self.history.saved_alive(self.index)

    @property
    def grads(self) -> Mapping[TensorId, Snapshot]:
        """`.grad` of every leaf that has one now, as far as the recording shows.

        It shows what backward passes found and left. A `zero_grad` or an assignment is known from
        the start of the next pass that met the leaf; after the last such pass it stays unknown.
        """
        return self.history.grads(self.index)

    def __repr__(self) -> str:
        """Return the deterministic text."""
        return views.describe(self)

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        return views.mimebundle(self)


def frame_at(recording: Recording, index: int) -> Frame:
    """Return the frame at step `index`, 0 to len(recording.events).

    Walks the recording once; a Cursor does that once for all its frames.
    Raises StepError that names the range.
    """
    return frame_in(History(recording), whole_number(index, "frame_at"))


def whole_number(index: object, verb: str) -> int:
    """Return a step or a count as an int, also one of numpy; raises StepError for all else."""
    if isinstance(index, SupportsIndex) and not isinstance(index, bool):
        return operator.index(index)
    message = (
        f"{verb} takes a whole number, not {index!r}.\n"
        "Steps count from 0 (before anything); each event is one step.\n"
        f"Give a whole number: {verb}({'recording, ' if verb == 'frame_at' else ''}3)."
    )
    raise StepError(message, index=index)


def frame_in(history: History, index: int) -> Frame:
    """Return the frame at step `index` where the history is known; raises like frame_at."""
    recording = history.recording
    if not 0 <= index <= len(recording.events):
        message = (
            f"There is no step {index}.\n"
            f"The recording has steps 0 (before anything) to {len(recording.events)} (the end).\n"
            "Ask for one of these."
        )
        raise StepError(message, index=index, first=0, last=len(recording.events))
    return Frame(
        recording=recording,
        index=index,
        event=recording.events[index - 1] if index else None,
        history=history,
        **history.moments[index]._asdict(),
    )
