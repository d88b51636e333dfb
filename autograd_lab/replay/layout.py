"""Turn a recording into boxes and lines: a forward lane and one lane for each backward pass, in CSS px for 12-px text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from autograd_lab.recording import NodeId, OpId, PassId, Recording, TensorId

__all__ = ["GraphLayout", "Lane", "PlacedEdge", "PlacedNode", "layout_graph"]


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

    key                   unique within a layout: "op:3", "node:7@1" (in pass 1), "leaf:2", "input:0", "fold:4@0" (lane)
    kind                  "op", "node", "leaf", "input", or "fold" for several
    ops, nodes, tensors   what it stands for
    row                   equal rows have equal y, in all lanes
    label, sublabel       two lines of text that fit the box, cut with an ellipsis
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
    """A line from box to box through `points`, in the direction of the data ("forward") or the gradient ("backward")."""

    source: str
    target: str
    points: tuple[tuple[float, float], ...]
    kind: Literal["forward", "backward"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphLayout:
    """A drawing of `width` by `height` px; `hidden` ops, nodes and tensors have no box of their own (folded)."""

    width: float
    height: float
    nodes: tuple[PlacedNode, ...]
    edges: tuple[PlacedEdge, ...]
    lanes: tuple[Lane, ...]
    hidden: int = 0


def layout_graph(recording: Recording, *, max_nodes: int | None = 300) -> GraphLayout:
    """Place ops, leaves and backward nodes; above `max_nodes` boxes fold by module, then repeats; None folds nothing."""
    raise NotImplementedError
