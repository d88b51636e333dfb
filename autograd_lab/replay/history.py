"""Turn a recording into the moments at which everything in it began and ended, so that any frame is a look-up.

One walk over the events; afterwards a frame at step i costs no replay, forwards or backwards, and needs no checkpoints.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from autograd_lab.recording import (
    BackwardFinished,
    BackwardStarted,
    GradAccumulated,
    NodeFinished,
    NodeId,
    NodeStarted,
    OpCalled,
    OptimizerStepped,
    PassId,
    Recording,
    Snapshot,
    TensorId,
)

__all__ = ["History", "Moment", "PassHistory", "SavedAlive", "reachable_from"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedAlive:
    """A saved tensor that backward still needs: slot `slot` of a node keeps `nbytes` bytes.

    storage  equal numbers share memory; None where the recorder could not tell
    """

    node: NodeId
    slot: str
    nbytes: int
    storage: int | None = None


class Moment(NamedTuple):
    """What is true right after one event, as far as it is a single value."""

    phase: str
    pass_id: PassId | None
    running: NodeId | None
    ops_done: int
    saved_nbytes: int


@dataclass(slots=True, kw_only=True)
class PassHistory:
    """One call of the engine; all numbers are step numbers, the first frame that shows it.

    order     nodes in order of execution
    started   step at which a node received its gradients
    finished  (step, node) in order
    arrivals  steps at which a node got a gradient: only nodes that get more than one
    failed    it raised, or the recording ended inside it
    """

    event: BackwardStarted
    step: int
    order: list[NodeId] = field(default_factory=list[NodeId])
    started: dict[NodeId, int] = field(default_factory=dict[NodeId, int])
    finished: list[tuple[int, NodeId]] = field(default_factory=list[tuple[int, NodeId]])
    arrivals: dict[NodeId, list[int]] = field(default_factory=dict[NodeId, list[int]])
    expected: dict[NodeId, int] = field(default_factory=dict[NodeId, int])
    failed: bool = True

    @property
    def frees(self) -> bool:
        """Its nodes let go of their saved tensors."""
        return not (self.event.retain_graph or self.event.create_graph)

    def done(self, index: int) -> frozenset[NodeId]:
        """Nodes finished by step `index`."""
        return frozenset(node for _, node in self.finished[: bisect_left(self.finished, (index + 1, -1))])

    def waiting(self, index: int) -> dict[NodeId, tuple[int, int]]:
        """Nodes that have got some but not all gradients at step `index`: (received, expected)."""
        waits: dict[NodeId, tuple[int, int]] = {}
        for node, steps in self.arrivals.items():
            received = bisect_left(steps, index + 1)
            if 0 < received < self.expected[node] and self.started.get(node, index + 1) > index:
                waits[node] = (received, self.expected[node])
        return waits


class History:
    """When everything in a recording began and ended."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.passes: dict[PassId, PassHistory] = {}
        self._saved: list[tuple[int, int, tuple[SavedAlive, ...]]] = []
        self._grads: dict[TensorId, list[tuple[int, Snapshot | None, bool]]] = {}
        self._walk_passes()
        self._walk_saved()
        self._walk_grads()
        self.moments = self._walk_moments()
