"""Turn a recording into boxes and lines: a forward lane, and one lane for each backward pass.

All lanes share rows and columns, so a backward node stands on the row of the call that made it.
Units are CSS px for text of 12 px.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from autograd_lab.recording import NodeId, OpId, PassId, Recording, TensorId

from .boxes import Box, boxes_of
from .cells import CellGraph, cells_of
from .folding import fold
from .placing import Placing, place
from .routes import BOX_HEIGHT, ROW_GAP, ROW_HEIGHT, SIDE, Place, Router

__all__ = ["GraphLayout", "Lane", "PlacedEdge", "PlacedNode", "layout_graph"]

MARGIN = 16.0  # of a lane, where the longest lines run
LANE_GAP = 32.0
TITLE_HEIGHT = 32.0
LEAST_LANE_WIDTH = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A column of the drawing: 0 is forward, then one for each pass; x is its left edge."""

    index: int
    title: str
    x: float
    width: float
    pass_id: PassId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedNode:
    """One box; x and y are its upper left corner.

    key                  unique: "op:3", "leaf:2", "input:0", "node:7@1", "fold:4@0" (@ the lane)
    kind                 "fold" for several; an op keeps its kind when only its leaves are folded in
    row                  equal rows have equal y, in all lanes
    label, sublabel      two lines of text that fit the box, cut with an ellipsis
    ops, nodes, tensors  what it stands for
    """

    key: str
    kind: Literal["op", "node", "leaf", "input", "fold"]
    lane: int
    row: int
    x: float
    y: float
    width: float
    height: float
    label: str
    sublabel: str = ""
    ops: tuple[OpId, ...] = ()
    nodes: tuple[NodeId, ...] = ()
    tensors: tuple[TensorId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedEdge:
    """A line through `points` from box to box, the way data ("forward") or gradient goes."""

    source: str
    target: str
    points: tuple[tuple[float, float], ...]
    kind: Literal["forward", "backward"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GraphLayout:
    """A drawing of `width` by `height` px; `hidden` calls, nodes and tensors have no own box."""

    width: float
    height: float
    nodes: tuple[PlacedNode, ...]
    edges: tuple[PlacedEdge, ...]
    lanes: tuple[Lane, ...]
    hidden: int = 0

    def __repr__(self) -> str:
        """Return its size in px, boxes and lines."""
        return (
            f"GraphLayout({self.width:g} x {self.height:g} px, {len(self.lanes)} lanes, "
            f"{len(self.nodes)} boxes, {len(self.edges)} lines, {self.hidden} hidden)"
        )


def layout_graph(recording: Recording, *, max_nodes: int | None = 300) -> GraphLayout:
    """Place calls, leaves, inputs and backward nodes of a recording.

    max_nodes  above so many boxes modules are folded, then repeats, then stretches; None folds
               nothing

    Calls that take no part in a graph (optimizer, metrics) are left out. Later training steps stand
    below earlier ones.
    """
    graph, passes = cells_of(recording)
    if max_nodes is not None:
        graph = fold(graph, recording, max_nodes)
    cells = boxes_of(graph, recording)
    rows = [max((box.offset for box in own), default=0) + 1 for own in cells]
    widths = [
        max((box.width for box in own), default=0.0) + (2 * SIDE if count > 1 else 0.0)
        for own, count in zip(cells, rows, strict=True)
    ]
    placing = place(widths, graph.links, [cell.epoch for cell in graph.cells])
    return _Drawing(recording, graph, cells, passes, placing, rows, widths).layout()


class _Drawing:
    """All that is known of a drawing once its cells have a place."""

    def __init__(
        self,
        recording: Recording,
        graph: CellGraph,
        cells: Sequence[Sequence[Box]],
        passes: Sequence[PassId],
        placing: Placing,
        rows: Sequence[int],
        widths: Sequence[float],
    ) -> None:
        self.recording = recording
        self.graph = graph
        self.cells = cells
        self.placing = placing
        self.lanes = _lanes(passes, max(math.ceil(placing.width) + 2 * MARGIN, LEAST_LANE_WIDTH))
        heights = [1] * (max(placing.layer, default=-1) + 1)
        for layer, count in zip(placing.layer, rows, strict=True):
            heights[layer] = max(heights[layer], count)
        self.first_rows = [0, *accumulate(heights)]
        self.tops = [TITLE_HEIGHT + row * ROW_HEIGHT for row in self.first_rows]
        self.bottoms = [top - ROW_GAP for top in self.tops[1:]]
        self.sides = [x - width / 2 + SIDE / 2 for x, width in zip(placing.x, widths, strict=True)]
        self.stack_sizes = {(box.cell, box.lane): box.offset for own in cells for box in own}
        self.place_of = {box.key: self._place(box) for own in cells for box in own}

    def layout(self) -> GraphLayout:
        nodes = tuple(self._node(box) for own in self.cells for box in own)
        members = sum(len(node.ops) + len(node.nodes) + len(node.tensors) for node in nodes)
        return GraphLayout(
            width=self.lanes[-1].x + self.lanes[-1].width,
            height=self.tops[-1] if nodes else TITLE_HEIGHT,
            nodes=nodes,
            edges=(*self._forward_edges(), *self._backward_edges()),
            lanes=self.lanes,
            hidden=members - sum(node.kind != "fold" for node in nodes),
        )

    def _place(self, box: Box) -> Place:
        layer = self.placing.layer[box.cell]
        left = self.lanes[box.lane].x + MARGIN
        return Place(
            cell=box.cell,
            layer=layer,
            x=round(left + self.placing.x[box.cell], 1),
            top=self.tops[layer] + box.offset * ROW_HEIGHT,
            side=round(left + self.sides[box.cell], 1),
            is_first=box.offset == 0,
            is_last=box.offset == self.stack_sizes[box.cell, box.lane],
        )

    def _node(self, box: Box) -> PlacedNode:
        at = self.place_of[box.key]
        return PlacedNode(
            key=box.key,
            kind=box.kind,
            lane=box.lane,
            row=self.first_rows[at.layer] + box.offset,
            x=at.x - box.width / 2,
            y=at.top,
            width=box.width,
            height=BOX_HEIGHT,
            label=box.label,
            sublabel=box.sublabel,
            ops=box.ops,
            nodes=box.nodes,
            tensors=box.tensors,
        )

    def _forward_edges(self) -> Iterator[PlacedEdge]:
        key_of = {box.cell: box.key for own in self.cells for box in own if box.lane == 0}
        pairs = (
            (key_of[before], key_of[after])
            for before, after in self.graph.links
            if (before, after) in self.graph.forward and before in key_of and after in key_of
        )
        return self._edges(pairs, 0, "forward")

    def _backward_edges(self) -> Iterator[PlacedEdge]:
        keys: list[dict[NodeId, str]] = [{} for _ in self.lanes]
        for own in self.cells:
            for box in own:
                keys[box.lane].update(dict.fromkeys(box.nodes, box.key))
        for lane, key_of in enumerate(keys):
            pairs = dict.fromkeys(
                (key, key_of[edge.node])
                for node, key in key_of.items()
                for edge in self.recording.nodes[node].edges
                if edge is not None and edge.node in key_of and key_of[edge.node] != key
            )
            yield from self._edges(pairs, lane, "backward")

    def _edges(
        self, pairs: Iterable[tuple[str, str]], lane: int, kind: Literal["forward", "backward"]
    ) -> Iterator[PlacedEdge]:
        router = Router(
            self.placing,
            tops=self.tops,
            bottoms=self.bottoms,
            left=self.lanes[lane].x + MARGIN,
            margin=self.lanes[lane].x + MARGIN / 2,
        )
        for source, target in pairs:
            points = router.route(self.place_of[source], self.place_of[target])
            yield PlacedEdge(source=source, target=target, points=points, kind=kind)


def _lanes(passes: Sequence[PassId], width: float) -> tuple[Lane, ...]:
    titles = ["forward", *(f"backward {pass_id}" for pass_id in passes)]
    return tuple(
        Lane(
            index=index,
            title=title,
            x=index * (width + LANE_GAP),
            width=width,
            pass_id=passes[index - 1] if index else None,
        )
        for index, title in enumerate(titles)
    )
