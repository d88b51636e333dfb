"""Turn a recording into the moments at which everything in it began and ended.

One walk over the events; afterwards the frame at any step is a look-up, so going back costs what
going forward costs and no checkpoints are needed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
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

from .pass_history import PassHistory, histories_of_passes

__all__ = ["History", "Moment", "SavedAlive"]


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


class History:
    """When everything in a recording began and ended."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.passes = histories_of_passes(recording)
        self._saved = _saved_spans(recording, self.passes)
        self._grads = _grad_changes(recording, self.passes)
        self.moments = _moments(recording, self._saved)

    def saved_alive(self, index: int) -> tuple[SavedAlive, ...]:
        """Saved tensors alive at step `index`."""
        born = self._saved[: bisect_right(self._saved, index, key=lambda span: span.first)]
        return tuple(saved for span in born if index < span.last for saved in span.slots)

    def lifetimes(self) -> dict[NodeId, tuple[int, int]]:
        """By node the steps from which and before which its saved tensors are alive."""
        return {span.slots[0].node: (span.first, span.last) for span in self._saved}

    def grads(self, index: int) -> dict[TensorId, Snapshot]:
        """`.grad` of the leaves that have one at step `index`, as far as the recording shows."""
        grads: dict[TensorId, Snapshot] = {}
        for leaf, changes in self._grads.items():
            change = changes[bisect_right(changes, index, key=lambda change: change.step) - 1]
            if change.grad is not None:
                grads[leaf] = change.grad
        return grads


class _Span(NamedTuple):
    """The saved tensors of one node are alive from step `first` up to, not including, `last`."""

    first: int
    last: int
    slots: tuple[SavedAlive, ...]


class _Change(NamedTuple):
    """From `step` on a leaf's `.grad` is `grad`; None where it is None."""

    step: int
    grad: Snapshot | None


def _saved_spans(recording: Recording, passes: Mapping[PassId, PassHistory]) -> list[_Span]:
    """When saved tensors live: from the call that made their node to the first freeing run of it.

    A node that no call is known for counts from the end of the node that made it (create_graph),
    else from the start of the first pass that ran it. A graph that Python drops without a backward
    is not seen: its saved tensors stay to the end.
    """
    called = {
        event.op: step
        for step, event in enumerate(recording.events, start=1)
        if isinstance(event, OpCalled)
    }
    finished = {
        (pass_id, node): step for pass_id, one in passes.items() for step, node in one.finished
    }
    first: dict[NodeId, int] = {}
    last: dict[NodeId, int] = {}
    for one in passes.values():
        for node in one.started:
            first.setdefault(node, one.step)
        for step, node in one.finished if one.frees else ():
            last.setdefault(node, step)
    never = len(recording.events) + 1
    spans: list[_Span] = []
    for node in recording.nodes:
        slots = tuple(
            SavedAlive(node=node.id, slot=slot.name, nbytes=slot.nbytes, storage=slot.storage)
            for slot in node.saved
        )
        born = called.get(node.made_by) if node.made_by is not None else None
        if born is None and node.made_in_pass is not None and node.made_in_node is not None:
            born = finished.get((node.made_in_pass, node.made_in_node))
        if born is None:
            born = first.get(node.id)
        if slots and born is not None:
            spans.append(_Span(born, last.get(node.id, never), slots))
    return sorted(spans, key=lambda span: span.first)


def _grad_changes(
    recording: Recording, passes: Mapping[PassId, PassHistory]
) -> dict[TensorId, list[_Change]]:
    """When each leaf's `.grad` changed.

    What cleared or scaled it between two passes was not seen, so what a pass finds there (`before`)
    counts from the start of that pass, and for the first one from the beginning. After the last
    pass that met a leaf its `.grad` is taken to stay.
    """
    changes: dict[TensorId, list[_Change]] = {}
    met: set[tuple[PassId, TensorId]] = set()
    for step, event in enumerate(recording.events, start=1):
        if not isinstance(event, GradAccumulated):
            continue
        of_leaf = changes.setdefault(event.leaf, [])
        if (event.pass_id, event.leaf) not in met:
            met.add((event.pass_id, event.leaf))
            start = passes[event.pass_id].step if event.pass_id in passes else step
            since = max(start, of_leaf[-1].step) if of_leaf else 0
            of_leaf.append(_Change(since, event.before))
        of_leaf.append(_Change(step, event.after))
    return changes


def _moments(recording: Recording, spans: list[_Span]) -> list[Moment]:
    nbytes = _saved_nbytes(spans, len(recording.events) + 1)
    open_passes: list[PassId] = []
    open_nodes: list[tuple[PassId, NodeId]] = []
    outside, pass_id, ops_done = "between", None, 0
    moments = [Moment(outside, pass_id, None, ops_done, nbytes[0])]
    for step, event in enumerate(recording.events, start=1):
        match event:
            case OpCalled():
                ops_done += 1
                outside = "forward"
            case OptimizerStepped():
                outside = "optimizer"
            case BackwardStarted():
                open_passes.append(event.pass_id)
            case BackwardFinished():
                open_passes = [one for one in open_passes if one != event.pass_id]
                open_nodes = [item for item in open_nodes if item[0] != event.pass_id]
                outside = "between"
            case NodeStarted():
                open_nodes.append((event.pass_id, event.node))
            case NodeFinished():
                open_nodes = [item for item in open_nodes if item != (event.pass_id, event.node)]
            case _:
                pass
        named = getattr(event, "pass_id", None)
        if open_passes:
            pass_id = named if named in open_passes else open_passes[-1]
        elif isinstance(event, BackwardFinished):
            pass_id = event.pass_id
        phase = f"backward {pass_id}" if open_passes else outside
        running = open_nodes[-1][1] if open_nodes else None
        moments.append(Moment(phase, pass_id, running, ops_done, nbytes[step]))
    return moments


def _saved_nbytes(spans: list[_Span], count: int) -> list[int]:
    """Bytes alive at each step, a storage counted once and as large as the largest slot in it.

    A storage is known by its address, which torch gives out again once it is free: only slots that
    are alive at the same time share one.
    """
    turns: list[list[tuple[object, int, int]]] = [[] for _ in range(count + 1)]
    for span in spans:
        for slot in span.slots:
            key = (slot.node, slot.slot) if slot.storage is None else slot.storage
            turns[span.first].append((key, slot.nbytes, 1))
            turns[span.last].append((key, slot.nbytes, -1))
    alive: defaultdict[object, Counter[int]] = defaultdict(Counter)  # how many slots of each size
    nbytes: list[int] = []
    total = 0
    for turn in turns[:count]:
        for key, size, change in turn:
            sizes = alive[key]
            total -= max(sizes, default=0)
            sizes[size] += change
            if not sizes[size]:
                del sizes[size]
            total += max(sizes, default=0)
        nbytes.append(total)
    return nbytes
