"""Turn a recording into cells: what is drawn on common rows, in order, and what depends on what.

A cell is a forward call, a leaf or an input together with the backward nodes that belong to it,
lane by lane; a node that no call is known for is a cell of its own. Only what takes part in a graph
is a cell: what an optimizer or a metric computed is left out.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from autograd_lab.recording import (
    BackwardFinished,
    BackwardStarted,
    NodeId,
    NodeStarted,
    Op,
    OpCalled,
    OpId,
    PassId,
    Recording,
    TensorId,
)

from .match import module_of
from .pass_history import reachable_from

__all__ = ["Cell", "CellGraph", "cells_of"]

CellKind = Literal["op", "leaf", "input", "node", "fold"]


@dataclass(slots=True, kw_only=True)
class Cell:
    """What shares rows in all lanes.

    lanes   nodes by lane, 1 for the first pass
    epoch   backward passes begun before it: a later epoch is drawn below an earlier one
    title   name of a fold without the count; `times` repeats of the same
    """

    kind: CellKind
    ops: list[OpId] = field(default_factory=list[OpId])
    tensors: list[TensorId] = field(default_factory=list[TensorId])
    lanes: dict[int, list[NodeId]] = field(default_factory=dict[int, list[NodeId]])
    module: str | None = None
    epoch: int = 0
    title: str = ""
    times: int = 1


@dataclass(slots=True, kw_only=True)
class CellGraph:
    """Cells in an order in which each comes after what it depends on.

    links    (earlier, later) pairs that shape the drawing
    forward  those that a tensor went along: they are drawn in the forward lane
    """

    cells: list[Cell]
    links: list[tuple[int, int]]
    forward: set[tuple[int, int]]


def cells_of(recording: Recording) -> tuple[CellGraph, tuple[PassId, ...]]:
    """Return the cells of a recording and the pass of each backward lane."""
    passes = tuple(event.pass_id for event in recording.events_of(BackwardStarted))
    builder = _Builder(recording)
    for op in _drawn_ops(recording):
        builder.add_op(op)
    for lane, nodes in enumerate(_members(recording, passes).values(), start=1):
        for node in nodes:
            builder.add_node(node, lane)
    return _in_order(builder), passes


def _drawn_ops(recording: Recording) -> list[Op]:
    """Calls that made nodes, and those whose tensors went into them; all where there is no node.

    A leaf is where a graph begins: what made it is left out, and so is `torch.randn` and its like.
    """
    if not any(op.nodes for op in recording.ops):
        return list(recording.ops)
    wanted: set[TensorId] = set()
    drawn: list[Op] = []
    for op in reversed(recording.ops):
        feeds = op.inputs and not op.is_inplace and not wanted.isdisjoint(op.outputs)
        if op.nodes or feeds:
            drawn.append(op)
            wanted.update(tensor for tensor in op.inputs if not _is_leaf(recording, tensor))
    return drawn[::-1]


def _is_leaf(recording: Recording, tensor: TensorId) -> bool:
    ref = recording.tensors[tensor]
    return ref.is_leaf and ref.requires_grad


def _members(recording: Recording, passes: Iterable[PassId]) -> Mapping[PassId, dict[NodeId, None]]:
    """Nodes of each pass: those that ran, and in one that stopped also those it would have run."""
    members: dict[PassId, dict[NodeId, None]] = {pass_id: {} for pass_id in passes}
    roots: dict[PassId, tuple[NodeId, ...]] = {}
    for event in recording.events:
        match event:
            case BackwardStarted():
                roots[event.pass_id] = event.roots
            case NodeStarted() if event.pass_id in members:
                members[event.pass_id][event.node] = None
            case BackwardFinished() if event.error is None:
                roots.pop(event.pass_id, None)
            case _:
                pass
    for pass_id, stopped in roots.items():
        members[pass_id].update(dict.fromkeys(sorted(reachable_from(recording, stopped))))
    return members


class _Builder:
    """Cells under construction, by op, by leaf or input tensor, and by node."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.cells: list[Cell] = []
        self.times: list[float] = []
        self.links: dict[tuple[int, int], None] = {}
        self.forward: set[tuple[int, int]] = set()
        self._of_op: dict[OpId, int] = {}
        self._of_tensor: dict[TensorId, int] = {}
        self._of_node: dict[NodeId, int] = {}
        self._producer: dict[TensorId, int] = {}
        self._epoch_of_op = _epochs(recording)

    def add_op(self, op: Op) -> None:
        sources = [self._source(tensor, op) for tensor in op.inputs]
        epoch = self._epoch_of_op.get(op.id, 0)
        cell = self._add(Cell(kind="op", ops=[op.id], module=op.module, epoch=epoch), op.id)
        self._of_op[op.id] = cell
        for source in sources:
            if source is not None:
                self.links[source, cell] = None
                self.forward.add((source, cell))
        for tensor in op.outputs:
            self._producer[tensor] = cell

    def add_node(self, node: NodeId, lane: int) -> None:
        cell = self._home(node)
        self.cells[cell].lanes.setdefault(lane, []).append(node)
        record = self.recording.nodes[node]
        if record.made_in_pass is not None:
            return  # double-backward nodes flow against the forward order
        for edge in record.edges:
            if edge is not None:
                target = self._home(edge.node)
                if target != cell:
                    self.links[target, cell] = None

    def _add(self, cell: Cell, time: float) -> int:
        self.cells.append(cell)
        self.times.append(time)
        return len(self.cells) - 1

    def _source(self, tensor: TensorId, op: Op) -> int | None:
        """The cell a tensor comes from; None for one that some unseen call made."""
        is_leaf = _is_leaf(self.recording, tensor)
        if tensor in self._producer and not is_leaf:
            return self._producer[tensor]
        if self.recording.tensors[tensor].requires_grad and not is_leaf:
            return None
        return self._tensor_cell(tensor, self._epoch_of_op.get(op.id, 0))

    def _tensor_cell(self, tensor: TensorId, epoch: int = 0) -> int:
        if tensor not in self._of_tensor:
            kind: CellKind = "leaf" if self.recording.tensors[tensor].requires_grad else "input"
            self._of_tensor[tensor] = self._add(Cell(kind=kind, tensors=[tensor], epoch=epoch), -1)
        return self._of_tensor[tensor]

    def _home(self, node: NodeId) -> int:
        """The cell of a node: that of its call or leaf, or of the node whose backward made it."""
        if node in self._of_node:
            return self._of_node[node]
        record = self.recording.nodes[node]
        while record.made_in_node is not None and record.made_in_node != record.id:
            record = self.recording.nodes[record.made_in_node]
        if record.leaf is not None:
            cell = self._tensor_cell(record.leaf)
        elif record.made_by is not None and record.made_by in self._of_op:
            cell = self._of_op[record.made_by]
        elif record.id in self._of_node:
            cell = self._of_node[record.id]
        else:
            module = module_of(self.recording, record)
            cell = self._add(Cell(kind="node", module=module), -1)
            self._of_node[record.id] = cell
        self._of_node[node] = cell
        return cell


def _epochs(recording: Recording) -> dict[OpId, int]:
    epochs: dict[OpId, int] = {}
    begun = 0
    for event in recording.events:
        if isinstance(event, OpCalled):
            epochs[event.op] = begun
        elif isinstance(event, BackwardStarted) and event.inside is None:
            begun += 1
    return epochs


def _in_order(built: _Builder) -> CellGraph:
    """Number the cells so that links lead from lower to higher numbers; drop those of a cycle."""
    if all(before < after for before, after in built.links):
        return CellGraph(cells=built.cells, links=list(built.links), forward=built.forward)
    number = _numbers_in_order(built.times, built.links)
    cells = list(built.cells)
    for old, new in enumerate(number):
        cells[new] = built.cells[old]
    moved = [(number[before], number[after]) for before, after in built.links]
    links = [(before, after) for before, after in moved if before < after]
    for before, after in sorted(links):
        if cells[after].kind == "node":
            cells[after].epoch = max(cells[after].epoch, cells[before].epoch)
    forward = {(number[before], number[after]) for before, after in built.forward}
    return CellGraph(cells=cells, links=links, forward=forward)


def _numbers_in_order(times: list[float], links: Iterable[tuple[int, int]]) -> list[int]:
    """A topological numbering that follows `times`; a cycle is cut before its earliest cell.

    A cell without a time of its own comes right after the last one that it depends on.
    """
    after: defaultdict[int, list[int]] = defaultdict(list)
    missing = [0] * len(times)
    for before, later in links:
        after[before].append(later)
        missing[later] += 1
    times = list(times)
    ready = [(times[cell], cell) for cell, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    waiting = iter(sorted(range(len(times)), key=lambda cell: (times[cell], cell)))
    number = [-1] * len(times)
    for place in range(len(times)):
        while ready and number[ready[0][1]] >= 0:
            heapq.heappop(ready)
        cell = ready[0][1] if ready else next(one for one in waiting if number[one] < 0)
        number[cell] = place
        for later in after[cell]:
            times[later] = max(times[later], times[cell])
            missing[later] -= 1
            if not missing[later]:
                heapq.heappush(ready, (times[later], later))
    return number
