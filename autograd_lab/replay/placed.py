"""What a drawing is made of: lanes, boxes and lines, placed in CSS px for text of 12 px."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from autograd_lab.recording import NodeId, OpId, PassId, TensorId

__all__ = ["GraphLayout", "Lane", "PlacedEdge", "PlacedNode"]


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
    """A line through `points` from box to box, the way data ("forward") or gradient goes.

    times  how often it is gone: x * x takes x twice, and x gets two gradients; 1 beside a fold
    """

    source: str
    target: str
    points: tuple[tuple[float, float], ...]
    kind: Literal["forward", "backward"]
    times: int = 1

    @property
    def middle(self) -> tuple[float, float]:
        """The middle of its first leg: words on the line stand beside it."""
        (x0, y0), (x1, y1) = self.points[:2]
        return (x0 + x1) / 2, (y0 + y1) / 2


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
