"""Turn two placed boxes into the points of the line between them, so that it crosses no box."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from .boxes import Box
from .placing import Placing

__all__ = ["BOX_HEIGHT", "ROW_GAP", "ROW_HEIGHT", "SIDE", "Router"]

BOX_HEIGHT = 34.0
ROW_GAP = 22.0
ROW_HEIGHT = BOX_HEIGHT + ROW_GAP
SIDE = 12.0  # free beside a stack of boxes, for lines past them

Point = tuple[float, float]


class Router:
    """Routes the lines of one lane.

    tops, bottoms  of the layers, in px
    sides          of the cells, the free x beside their boxes, from `left`
    left           x at which the lane's columns begin
    margin         x of the line that the longest links share
    """

    def __init__(
        self,
        placing: Placing,
        *,
        tops: Sequence[float],
        bottoms: Sequence[float],
        sides: Sequence[float],
        left: float,
        margin: float,
    ) -> None:
        self.placing = placing
        self.tops = tops
        self.bottoms = bottoms
        self.sides = sides
        self.left = left
        self.margin = margin

    def route(self, source: Box, target: Box) -> tuple[Point, ...]:
        """Points from box to box, whichever is above."""
        if source.cell == target.cell:
            return self._within_stack(source, target)
        if source.layer < target.layer:
            return self._straight(source, target) or _straightened(self._down(source, target))
        if source.layer > target.layer:
            straight = self._straight(target, source)
            return straight[::-1] or _straightened(self._down(target, source)[::-1])
        turn = self.bottoms[source.layer] + ROW_GAP / 2
        out, back = self._leave(source), self._leave(target)
        return _straightened([*out, (out[-1][0], turn), (back[-1][0], turn), *back[::-1]])

    def _straight(self, upper: Box, lower: Box) -> tuple[Point, ...]:
        """The line between neighbouring layers where nothing stands in its way; else ()."""
        if lower.layer != upper.layer + 1 or not (upper.is_last and lower.offset == 0):
            return ()
        if upper.x != lower.x and _bottom(upper) != self.bottoms[upper.layer]:
            return ()
        return (upper.x, _bottom(upper)), (lower.x, lower.top)

    def _down(self, upper: Box, lower: Box) -> list[Point]:
        points = self._leave(upper)
        between = range(upper.layer + 1, lower.layer)
        line = self.placing.lines.get((upper.cell, lower.cell))
        enter = self._enter(lower)
        if line is not None:
            for layer, x in zip(between, line, strict=True):
                points.append((self.left + x, self.tops[layer]))
                points.append((self.left + x, self.bottoms[layer]))
        elif between:
            out = self.bottoms[upper.layer] + ROW_GAP / 2
            back = self.tops[lower.layer] - ROW_GAP / 2
            points += [(points[-1][0], out), (self.margin, out), (self.margin, back)]
            points.append((enter[0][0], back))
        return points + enter

    def _leave(self, box: Box) -> list[Point]:
        """From the lower edge of a box to that of its layer, beside the boxes of its stack."""
        bottom = self.bottoms[box.layer]
        if box.is_last:
            return [(box.x, _bottom(box)), (box.x, bottom)]
        turn, side = _bottom(box) + ROW_GAP / 2, self._side(box)
        return [(box.x, _bottom(box)), (box.x, turn), (side, turn), (side, bottom)]

    def _enter(self, box: Box) -> list[Point]:
        """From the upper edge of a layer to that of a box in it, beside the boxes of its stack."""
        if box.offset == 0:
            return [(box.x, box.top)]
        turn, side = box.top - ROW_GAP / 2, self._side(box)
        return [(side, self.tops[box.layer]), (side, turn), (box.x, turn), (box.x, box.top)]

    def _within_stack(self, source: Box, target: Box) -> tuple[Point, ...]:
        """Upwards to the next box, or beside those between."""
        if abs(source.top - target.top) <= ROW_HEIGHT:
            return ((source.x, source.top), (target.x, _bottom(target)))
        out, back = source.top - ROW_GAP / 2, _bottom(target) + ROW_GAP / 2
        side = self._side(source)
        beside = [(source.x, out), (side, out), (side, back), (target.x, back)]
        return ((source.x, source.top), *beside, (target.x, _bottom(target)))

    def _side(self, box: Box) -> float:
        return round(self.left + self.sides[box.cell], 1)


def _bottom(box: Box) -> float:
    return box.top + BOX_HEIGHT


def _straightened(points: Sequence[Point]) -> tuple[Point, ...]:
    """The points without those that lie on the way from the one before to the one after."""
    if len(points) == 2:
        return tuple(points)
    kept = [points[0]]
    for here, following in pairwise(points[1:]):
        if here in (kept[-1], following):
            continue
        if not kept[-1][0] == here[0] == following[0]:
            kept.append(here)
    return (*kept, points[-1])
