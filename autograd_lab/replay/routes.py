"""Turn two placed boxes into the points of the line between them, so that it crosses no box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from .placing import Placing

__all__ = ["BOX_HEIGHT", "ROW_GAP", "ROW_HEIGHT", "SIDE", "Place", "Router"]

BOX_HEIGHT = 34.0
ROW_GAP = 22.0
ROW_HEIGHT = BOX_HEIGHT + ROW_GAP
SIDE = 12.0  # free beside a stack of boxes, for lines past them

Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a box is: its cell and layer, centre x, top y, and the free x beside its stack."""

    cell: int
    layer: int
    x: float
    top: float
    side: float
    is_first: bool = True
    is_last: bool = True

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.top + BOX_HEIGHT


class Router:
    """Routes the lines of one lane.

    tops, bottoms  of the layers, in px
    left           x at which the lane's columns begin
    margin         x of the line that the longest links share
    """

    def __init__(
        self,
        placing: Placing,
        *,
        tops: Sequence[float],
        bottoms: Sequence[float],
        left: float,
        margin: float,
    ) -> None:
        self.placing = placing
        self.tops = tops
        self.bottoms = bottoms
        self.left = left
        self.margin = margin

    def route(self, source: Place, target: Place) -> tuple[Point, ...]:
        """Points from box to box, whichever is above."""
        if source.cell == target.cell:
            return _within_stack(source, target)
        if source.layer < target.layer:
            return _straightened(self._down(source, target))
        if source.layer > target.layer:
            return _straightened(self._down(target, source)[::-1])
        turn = self.bottoms[source.layer] + ROW_GAP / 2
        out, back = self._leave(source), self._leave(target)
        return _straightened([*out, (out[-1][0], turn), (back[-1][0], turn), *back[::-1]])

    def _down(self, upper: Place, lower: Place) -> list[Point]:
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

    def _leave(self, box: Place) -> list[Point]:
        """From the lower edge of a box to that of its layer, beside the boxes of its stack."""
        bottom = self.bottoms[box.layer]
        if box.is_last:
            return [(box.x, box.bottom), (box.x, bottom)]
        turn = box.bottom + ROW_GAP / 2
        return [(box.x, box.bottom), (box.x, turn), (box.side, turn), (box.side, bottom)]

    def _enter(self, box: Place) -> list[Point]:
        """From the upper edge of a layer to that of a box in it, beside the boxes of its stack."""
        if box.is_first:
            return [(box.x, box.top)]
        turn = box.top - ROW_GAP / 2
        return [(box.side, self.tops[box.layer]), (box.side, turn), (box.x, turn), (box.x, box.top)]


def _within_stack(source: Place, target: Place) -> tuple[Point, ...]:
    """Upwards to the next box, or beside those between."""
    if abs(source.top - target.top) <= ROW_HEIGHT:
        return ((source.x, source.top), (target.x, target.bottom))
    out, back = source.top - ROW_GAP / 2, target.bottom + ROW_GAP / 2
    beside = [(source.x, out), (source.side, out), (source.side, back), (target.x, back)]
    return ((source.x, source.top), *beside, (target.x, target.bottom))


def _straightened(points: Sequence[Point]) -> tuple[Point, ...]:
    """The points without those that lie on the way from the one before to the one after."""
    if len(points) == 2:
        return tuple(points)
    kept = [points[0]]
    for here, following in pairwise(points[1:]):
        if here != kept[-1] and not kept[-1][0] == here[0] == following[0]:
            kept.append(here)
    return (*kept, points[-1])
