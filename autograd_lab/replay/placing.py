"""Turn a graph of boxes into places: layers, an order in each layer, x, and routes for long links.

Sugiyama's steps with three decisions that keep deep graphs narrow: sources are pulled down to their
first use, a longest path is pinned straight, and the links of one source share one line past the
layers in between. Links over more than 24 layers get no line of their own there: they run along the
margin. Linear in depth, without recursion. Measured against other layouts in facts/widgets.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Placing", "place"]

GAP = 14.0  # between boxes
LINE_GAP = 8.0  # between lines; between a line and a box the mean of both
LONGEST_LINE = 24
SOURCES_ABREAST = 3  # an lstm has eight weights: more stand in the layer above
PINNED = 1e6
ROUNDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Placing:
    """Where everything is: `layer` and centre `x` of each box, `width` of it all (x from 0).

    lines  for a link over several layers the x at which it passes each layer in between; a link
           over more than 24 layers has none
    """

    layer: list[int]
    x: list[float]
    width: float
    lines: dict[tuple[int, int], list[float]]


def place(
    widths: Sequence[float], links: Sequence[tuple[int, int]], floors: Sequence[int]
) -> Placing:
    """Place boxes of these widths.

    links   (before, after), each from a lower to a higher number
    floors  a box of a higher floor lies below all boxes of lower floors (but for sources)
    """
    graph = _Layered(widths, links, floors)
    graph.order_by_neighbours()
    graph.set_x()
    halves = [width / 2 for width in widths] + [0.0] * (len(graph.x) - len(widths))  # lines: none
    left = min((x - half for x, half in zip(graph.x, halves, strict=True)), default=0)
    right = max((x + half for x, half in zip(graph.x, halves, strict=True)), default=0)
    x = [x - left for x in graph.x]
    lines = {link: [x[item] for item in items] for link, items in graph.lines.items()}
    return Placing(layer=graph.box_layer, x=x[: len(widths)], width=right - left, lines=lines)


class _Layered:
    """Boxes, and the points of lines (numbered after them), layer by layer."""

    def __init__(
        self, widths: Sequence[float], links: Sequence[tuple[int, int]], floors: Sequence[int]
    ) -> None:
        self.count = len(widths)
        self.reach = [(width + GAP) / 2 for width in widths]  # half of the room that it takes
        before: list[list[int]] = [[] for _ in widths]
        after: list[list[int]] = [[] for _ in widths]
        for one, other in links:
            after[one].append(other)
            before[other].append(one)
        self.box_layer, self.spine = _layers(before, after, floors)
        self.layer = list(self.box_layer)
        self.above: list[list[int]] = [[] for _ in widths]
        self.below: list[list[int]] = [[] for _ in widths]
        self.lines: dict[tuple[int, int], list[int]] = {}
        for box in range(self.count):
            self._draw_lines(box, after[box])
        self.rows: list[list[int]] = [[] for _ in range(max(self.layer, default=-1) + 1)]
        self.position = [0] * len(self.layer)
        self.x = [0.0] * len(self.layer)

    def _draw_lines(self, box: int, targets: Iterable[int]) -> None:
        """Link a box to its targets, over points in the layers between, which the links share."""
        line: list[int] = []
        start = self.box_layer[box]
        for target in targets:
            length = self.box_layer[target] - start - 1
            if length >= LONGEST_LINE:
                continue
            while len(line) < length:
                line.append(len(self.layer))
                self.layer.append(start + len(line))
                self.reach.append(LINE_GAP / 2)
                self.above.append([])
                self.below.append([])
                self._join(line[-2] if len(line) > 1 else box, line[-1])
            self._join(line[length - 1] if length else box, target)
            if length:
                self.lines[box, target] = line[:length]
            if target in self.spine and box in self.spine and self.spine[box] == target:
                self.spine.update((point, target) for point in line[:length])

    def _join(self, upper: int, lower: int) -> None:
        self.below[upper].append(lower)
        self.above[lower].append(upper)

    def order_by_neighbours(self) -> None:
        """Order each layer: first as a depth-first walk meets it, then by sweeps of barycentres."""
        seen = [False] * len(self.layer)
        stack = [item for item in range(self.count) if not self.above[item]][::-1]
        while stack:
            item = stack.pop()
            if not seen[item]:
                seen[item] = True
                self.rows[self.layer[item]].append(item)
                stack.extend(other for other in reversed(self.below[item]) if not seen[other])
        for row in self.rows:
            self._number(row)
        crowded = [row for row in self.rows if len(row) > 1]
        for _ in range(ROUNDS):
            self._sweep(crowded, self.above)
            self._sweep(reversed(crowded), self.below)

    def _number(self, row: Sequence[int]) -> None:
        for place, item in enumerate(row):
            self.position[item] = place

    def _sweep(self, rows: Iterable[list[int]], neighbours: Sequence[Sequence[int]]) -> None:
        position = self.position
        for row in rows:
            wish = {
                item: sum(position[other] for other in near) / len(near)
                if (near := neighbours[item])
                else position[item]
                for item in row
            }
            row.sort(key=wish.__getitem__)
            self._number(row)

    def set_x(self) -> None:
        """Pack each layer around the spine, then pull boxes towards their neighbours."""
        for row in self.rows:
            x = 0.0
            for item in row:
                self.x[item] = x + self.reach[item]
                x += 2 * self.reach[item]
            shift = next((self.x[item] for item in row if item in self.spine), 0.0)
            for item in row:
                self.x[item] -= shift
        free = [row for row in self.rows if len(row) > 1 or not self.spine.keys() >= set(row)]
        for _ in range(ROUNDS):
            for row in free:
                self._relax(row, self.above)
            for row in reversed(free):
                self._relax(row, self.below)

    def _relax(self, row: Sequence[int], neighbours: Sequence[Sequence[int]]) -> None:
        """Least squares with the order and the gaps of the row kept (pool adjacent violators)."""
        blocks: list[tuple[float, float, int]] = []  # wish times weight, weight, how many items
        offsets: list[float] = []
        offset = 0.0
        for place, item in enumerate(row):
            if place:
                offset += self.reach[row[place - 1]] + self.reach[item]
            offsets.append(offset)
            near = neighbours[item]
            if item in self.spine:
                wish, weight = 0.0, PINNED
            else:
                wish = sum(self.x[other] for other in near) / len(near) if near else self.x[item]
                weight = 8.0 if item >= self.count else float(max(1, len(near)))
            block = ((wish - offset) * weight, weight, 1)
            while blocks and blocks[-1][0] * block[1] > block[0] * blocks[-1][1]:
                total, weights, count = blocks.pop()
                block = (total + block[0], weights + block[1], count + block[2])
            blocks.append(block)
        place = 0
        for total, weights, count in blocks:
            for item in row[place : place + count]:
                self.x[item] = total / weights + offsets[place]
                place += 1


def _layers(
    before: Sequence[Sequence[int]], after: Sequence[Sequence[int]], floors: Sequence[int]
) -> tuple[list[int], dict[int, int]]:
    """Layer of each box, and the spine, a longest path per floor: its boxes, each with the next."""
    layer = [0] * len(before)
    depth = [0] * len(before)
    came_from: list[int | None] = [None] * len(before)
    floor, base, lowest = 0, 0, -1
    for box, sources in enumerate(before):
        leaves, own = 0, 0
        for source in sources:
            if floors[source] == floors[box] and depth[source] >= depth[box]:
                depth[box], came_from[box] = depth[source] + 1, source
            if layer[source] >= own:
                own = layer[source] + 1
            leaves += not before[source]
        own = max(own, -(-leaves // SOURCES_ABREAST))
        if sources and floors[box] > floor:
            floor, base = floors[box], lowest + 2
        if sources and floors[box] == floor:
            own = max(own, base)
        layer[box] = own
        lowest = max(lowest, own)
    abreast = [0] * len(before)
    for box in reversed(range(len(before))):
        if after[box] and len(after[box]) >= len(before[box]):
            first = min(after[box], key=layer.__getitem__)
            layer[box] = layer[first] - 1
            if not before[box]:
                layer[box] -= abreast[first] // SOURCES_ABREAST
                abreast[first] += 1
    ends: dict[int, int] = {}
    for box, floor in enumerate(floors):
        if depth[box] > depth[ends.setdefault(floor, box)]:
            ends[floor] = box
    spine: dict[int, int] = {}
    for end in ends.values():
        box, following = end, end
        while box is not None:
            spine[box] = following
            box, following = came_from[box], box
    return layer, spine
