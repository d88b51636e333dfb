"""Turn a recording into boxes and lines: a forward lane, and one lane for each backward pass.

All lanes share rows and columns: a backward node stands on the row of the call that made it, and
where one call made several, they stand on the rows around it. The forward lane is mirrored, so that
a call and its node are neighbours across the gap, with the leaves on the outer sides.
Units are CSS px for text of 12 px.
"""

from __future__ import annotations

import gc
import math
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Literal

from autograd_lab.recording import PassId, Recording

from .boxes import Box, boxes_of
from .cells import CellGraph, cells_of
from .folding import fold
from .placed import GraphLayout, Lane, PlacedEdge, PlacedNode
from .placing import place
from .routes import BOX_HEIGHT, ROW_GAP, ROW_HEIGHT, SIDE, Router

__all__ = ["collector_paused", "drawn", "layout_graph"]

MARGIN = 16.0  # of a lane, where the longest lines run
LANE_GAP = 24.0
TITLE_HEIGHT = 32.0
LEAST_LANE_WIDTH = 120.0


def layout_graph(recording: Recording, *, max_nodes: int | None = 300) -> GraphLayout:
    """Place calls, leaves, inputs and backward nodes of a recording.

    max_nodes  above so many boxes modules are folded, then repeats, then stretches; None folds
               nothing

    Calls that take no part in a graph (optimizer, metrics) are left out. Later training steps stand
    below earlier ones.
    """
    with collector_paused():
        graph, passes = cells_of(recording)
        if max_nodes is not None:
            graph = fold(graph, recording, max_nodes).graph
        boxes = boxes_of(graph, recording)
        return drawn(recording, graph, boxes, dict(enumerate(passes, start=1)))


def drawn(
    recording: Recording, graph: CellGraph, boxes: Sequence[Box], passes: Mapping[int, PassId]
) -> GraphLayout:
    """Place the boxes of a graph; passes: that of each lane to draw beside the forward lane."""
    return _Drawing(recording, graph, boxes, passes).layout()


@contextmanager
def collector_paused() -> Generator[None]:
    """Keep Python's cycle collector from running inside the block.

    A layout of 5000 calls makes 100 000 small objects at once and no cycle. The collector would
    walk the whole heap in search of one: half of the time, with torch loaded.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Drawing:
    """Boxes with their place, and what the lines between them need to know."""

    def __init__(
        self,
        recording: Recording,
        graph: CellGraph,
        boxes: Sequence[Box],
        passes: Mapping[int, PassId],
    ) -> None:
        self.recording = recording
        self.graph = graph
        self.boxes = boxes
        rows, widths = _sizes(boxes, len(graph.cells))
        epochs = sorted({cell.epoch for cell in graph.cells})
        floor_of = {epoch: floor for floor, epoch in enumerate(epochs)}  # none is empty
        floors = [floor_of[cell.epoch] for cell in graph.cells]
        placing = place(widths, graph.links, floors)
        self.placing = placing
        self.lanes = _lanes(passes, max(math.ceil(placing.width) + 2 * MARGIN, LEAST_LANE_WIDTH))
        lane_x = {lane.index: lane.x for lane in self.lanes}
        heights = [1] * (max(placing.layer, default=-1) + 1)
        for layer, count in zip(placing.layer, rows, strict=True):
            heights[layer] = max(heights[layer], count)
        self.first_rows = [0, *accumulate(heights)]
        self.tops = [TITLE_HEIGHT + row * ROW_HEIGHT for row in self.first_rows]
        self.bottoms = [top - ROW_GAP for top in self.tops[1:]]
        self.sides = [x - width / 2 + SIDE / 2 for x, width in zip(placing.x, widths, strict=True)]
        for box in boxes:
            box.layer = placing.layer[box.cell]
            box.x = round(lane_x[box.lane] + MARGIN + placing.x[box.cell], 1)
            box.top = self.tops[box.layer] + box.offset * ROW_HEIGHT

    def layout(self) -> GraphLayout:
        nodes = tuple(map(self._node, self.boxes))
        members = sum(len(box.ops) + len(box.nodes) + len(box.tensors) for box in self.boxes)
        return GraphLayout(
            width=self.lanes[-1].x + self.lanes[-1].width,
            height=self.tops[-1] if nodes else TITLE_HEIGHT,
            nodes=nodes,
            edges=(*self._forward_edges(), *self._backward_edges()),
            lanes=self.lanes,
            hidden=members - sum(box.kind != "fold" for box in self.boxes),
        )

    def _node(self, box: Box) -> PlacedNode:
        return PlacedNode(
            key=box.key,
            kind=box.kind,
            lane=box.lane,
            row=self.first_rows[box.layer] + box.offset,
            x=(box.x if box.lane else self._mirrored(box.x)) - box.width / 2,
            y=box.top,
            width=box.width,
            height=BOX_HEIGHT,
            label=box.label,
            sublabel=box.sublabel,
            ops=box.ops,
            nodes=box.nodes,
            tensors=box.tensors,
        )

    def _forward_edges(self) -> Iterator[PlacedEdge]:
        router = self._router(self.lanes[0])
        box_of = {box.cell: box for box in self.boxes if box.lane == 0}
        for link in self.graph.links:
            source, target = box_of.get(link[0]), box_of.get(link[1])
            if source is not None and target is not None and link in self.graph.forward:
                points = router.route(source, target)
                points = tuple((self._mirrored(x), y) for x, y in points)
                times = self._times_taken(source, target)
                yield _edge(source, target, points, "forward", times)

    def _backward_edges(self) -> Iterator[PlacedEdge]:
        nodes = self.recording.nodes
        of_lane: dict[int, list[Box]] = {}
        for box in self.boxes:
            of_lane.setdefault(box.lane, []).append(box)
        for lane in self.lanes[1:]:
            router = self._router(lane)
            boxes = of_lane.get(lane.index, [])
            box_of = {node: box for box in boxes for node in box.nodes}
            for source in boxes:
                targets = Counter(
                    box_of.get(edge.node)
                    for node in source.nodes
                    for edge in nodes[node].edges
                    if edge is not None
                )
                for target, times in targets.items():
                    if target is not None and target is not source:
                        points = router.route(source, target)
                        yield _edge(source, target, points, "backward", times)

    def _times_taken(self, source: Box, target: Box) -> int:
        """How often the calls of one box take what another holds or made."""
        ops = self.recording.ops
        given = {*source.tensors, *(tensor for op in source.ops for tensor in ops[op].outputs)}
        return sum(tensor in given for op in target.ops for tensor in ops[op].inputs)

    def _mirrored(self, x: float) -> float:
        """The other side of the forward lane."""
        return round(2 * self.lanes[0].x + self.lanes[0].width - x, 1)

    def _router(self, lane: Lane) -> Router:
        return Router(
            self.placing,
            tops=self.tops,
            bottoms=self.bottoms,
            sides=self.sides,
            left=lane.x + MARGIN,
            margin=lane.x + MARGIN / 2,
        )


def _sizes(boxes: Sequence[Box], cell_count: int) -> tuple[list[int], list[float]]:
    """Rows and width of each cell."""
    rows, widths = [1] * cell_count, [0.0] * cell_count
    for box in boxes:
        rows[box.cell] = max(rows[box.cell], box.offset + 1)
        widths[box.cell] = max(widths[box.cell], box.width)
    return rows, [width + 2 * SIDE * (count > 1) for width, count in zip(widths, rows, strict=True)]


def _edge(
    source: Box,
    target: Box,
    points: tuple[tuple[float, float], ...],
    kind: Literal["forward", "backward"],
    times: int,
) -> PlacedEdge:
    return PlacedEdge(
        source=source.key,
        target=target.key,
        points=points,
        kind=kind,
        times=1 if "fold" in (source.kind, target.kind) else max(1, times),
    )


def _lanes(passes: Mapping[int, PassId], width: float) -> tuple[Lane, ...]:
    lanes = [Lane(index=0, title="forward", x=0.0, width=width)]
    for number, (index, pass_id) in enumerate(passes.items(), start=1):
        x = number * (width + LANE_GAP)
        lanes.append(
            Lane(index=index, title=f"backward {pass_id}", x=x, width=width, pass_id=pass_id)
        )
    return tuple(lanes)
