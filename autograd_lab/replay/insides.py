"""Turn a recording into drawings: the whole of it, folded, and the inside of every fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autograd_lab.recording import Recording

from .boxes import boxes_of
from .cells import Cell, CellGraph, cells_of
from .folding import Folded, fold
from .layout import collector_paused, drawn
from .placed import GraphLayout

__all__ = ["GraphView", "layout_views"]

WHOLE = "whole recording"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphView:
    """One drawing and where it hangs: view 0 is the whole, the others are each inside one fold.

    title   "whole recording", or the fold's name: "blocks.3", "blocks.* x 12"
    parent  number of the view that the fold stands in; -1 for the whole
    opens   number of the view inside, by key of the fold's box
    """

    layout: GraphLayout
    title: str
    parent: int
    opens: Mapping[str, int]


def layout_views(recording: Recording, *, max_nodes: int = 300) -> tuple[GraphView, ...]:
    """Place everything of a recording, each drawing folded above `max_nodes` boxes.

    Every call and node has a box of its own in some view. Lines that leave a fold are drawn in the
    view around it; inside only the lanes in which something stands.
    """
    views: list[GraphView] = []
    with collector_paused():
        graph, passes = cells_of(recording)
        todo = [(graph, WHOLE, -1)]
        for number, (graph, title, parent) in enumerate(todo):  # grows on the way
            folded = fold(graph, recording, max_nodes, is_inside=number > 0)
            boxes = boxes_of(folded.graph, recording)
            inside = {cell: at for at, cell in enumerate(_folds(folded), start=len(todo))}
            for cell, part in _parts(graph, folded, list(inside)).items():
                todo.append((part, _title(folded.graph.cells[cell]), number))
            lanes = dict(enumerate(passes, start=1))
            if number:
                used = {box.lane for box in boxes}
                lanes = {lane: pass_id for lane, pass_id in lanes.items() if lane in used}
            views.append(
                GraphView(
                    layout=drawn(recording, folded.graph, boxes, lanes),
                    title=title,
                    parent=parent,
                    opens={
                        box.key: inside[box.cell]
                        for box in boxes
                        if box.kind == "fold" and box.cell in inside
                    },
                )
            )
    return tuple(views)


def _folds(folded: Folded) -> list[int]:
    """The cells that hide something; one that stands for itself alone hides nothing."""
    return [number for number, cell in enumerate(folded.graph.cells) if cell.kind == "fold"]


def _parts(graph: CellGraph, folded: Folded, folds: Sequence[int]) -> dict[int, CellGraph]:
    """The inside of each fold: its cells, and the links between them."""
    home = {old: cell for cell in folds for old in folded.members[cell]}
    place = {old: at for cell in folds for at, old in enumerate(folded.members[cell])}
    parts = {
        cell: CellGraph(
            cells=[graph.cells[old] for old in folded.members[cell]], links=[], forward=set()
        )
        for cell in folds
    }
    for link in graph.links:
        before, after = link
        cell = home.get(before)
        if cell is not None and cell == home.get(after):
            moved = place[before], place[after]
            parts[cell].links.append(moved)
            if link in graph.forward:
                parts[cell].forward.add(moved)
    return parts


def _title(cell: Cell) -> str:
    return cell.title if cell.times == 1 else f"{cell.title} x {cell.times}"
