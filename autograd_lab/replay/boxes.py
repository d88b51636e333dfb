"""Turn cells into boxes with text: one in the forward lane, a stack in each backward lane."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from autograd_lab.recording import GradNode, NodeId, Op, OpId, Recording, TensorId

from .cells import Cell, CellGraph, CellKind
from .match import module_of

__all__ = ["Box", "boxes_of"]

LONGEST_LABEL = 30
LABEL_CHARACTER = 7.0  # px, 12-px text
SUBLABEL_CHARACTER = 7.4  # px, 12-px text of digits, wider than letters on average
PADDING = 16.0
LEAST_WIDTHS = {"op": 84.0, "leaf": 94.0}  # room for "norm 0.1235", "grad 1.235e-5" later on
LEAST_GRAD_WIDTH = 114.0  # "1 of 3 gradients"
LEAST_WIDTH = 56.0
LONGEST_OWNER = 16  # of a `.grad`: its leaf stands on the same row, with its whole name


@dataclass(slots=True, kw_only=True, eq=False)
class Box:
    """A box of cell number `cell`, in row `offset` of the cell; is_last: of that cell and lane.

    width          in px, what its text needs
    layer, x, top  its place, known once all boxes are: centre and upper edge
    """

    key: str
    kind: CellKind
    lane: int
    cell: int
    offset: int = 0
    is_last: bool = True
    label: str
    sublabel: str
    ops: tuple[OpId, ...] = ()
    nodes: tuple[NodeId, ...] = ()
    tensors: tuple[TensorId, ...] = ()
    width: float = field(init=False)
    layer: int = field(init=False)
    x: float = field(init=False)
    top: float = field(init=False)

    def __post_init__(self) -> None:
        text = max(LABEL_CHARACTER * len(self.label), SUBLABEL_CHARACTER * len(self.sublabel))
        self.width = max(LEAST_WIDTHS.get(self.kind, LEAST_WIDTH), text + PADDING)


def boxes_of(graph: CellGraph, recording: Recording) -> list[Box]:
    """The boxes of all cells, cell by cell and lane by lane."""
    makers = {tensor: op.name for op in recording.ops for tensor in op.outputs if not op.nodes}
    names = {
        tensor: recording.tensors[tensor].name or makers.get(tensor, f"tensor {tensor}")
        for cell in graph.cells
        for tensor in cell.tensors
    }
    boxes: list[Box] = []
    for number, cell in enumerate(graph.cells):
        if cell.ops or cell.tensors:
            boxes.append(_forward_box(number, cell, recording, names))
        for lane, nodes in cell.lanes.items():
            if cell.kind == "fold" and len(nodes) > 1:
                boxes.append(_backward_fold(number, cell, lane, recording))
                continue
            for offset, node in enumerate(_stacked(recording, nodes)):
                box = _node_box(number, lane, recording.nodes[node], recording, names)
                box.offset, box.is_last = offset, offset == len(nodes) - 1
                boxes.append(box)
    return boxes


def _forward_box(
    number: int, cell: Cell, recording: Recording, names: Mapping[TensorId, str]
) -> Box:
    ops, tensors = tuple(cell.ops), tuple(cell.tensors)
    if len(ops) == 1:
        op = recording.ops[ops[0]]
        key, kind = f"op:{op.id}", "op"
        label, sublabel = op.name, _output_text(recording, op)
    elif ops or len(tensors) > 1:
        key, kind = f"fold:{number}@0", "fold"
        label, sublabel = _fold_text(cell, len(ops), "op")
    else:
        tensor = recording.tensors[cell.tensors[0]]
        kind = "leaf" if tensor.requires_grad else "input"
        key = f"{kind}:{tensor.id}"
        label, sublabel = _short_path(names[tensor.id]), _shape_text(tensor.shape)
    return Box(
        key=key,
        kind=kind,
        lane=0,
        cell=number,
        label=_clipped(label),
        sublabel=_clipped(sublabel),
        ops=ops,
        tensors=tensors,
    )


def _backward_fold(number: int, cell: Cell, lane: int, recording: Recording) -> Box:
    nodes = cell.lanes[lane]
    label, sublabel = _fold_text(cell, len(nodes), "node", _common_name(recording, nodes))
    return Box(
        key=f"fold:{number}@{lane}",
        kind="fold",
        lane=lane,
        cell=number,
        label=_clipped(label),
        sublabel=sublabel,
        nodes=tuple(nodes),
    )


def _node_box(
    number: int, lane: int, node: GradNode, recording: Recording, names: Mapping[TensorId, str]
) -> Box:
    label, sublabel = _clipped(node.short_name), _node_place(recording, node)
    if node.leaf is not None:
        label, sublabel = f"{_short_path(names[node.leaf], LONGEST_OWNER)}.grad", "+="
    box = Box(
        key=f"node:{node.id}@{lane}",
        kind="node",
        lane=lane,
        cell=number,
        label=label,
        sublabel=sublabel,
        nodes=(node.id,),
    )
    if node.leaf is not None:
        box.width = max(box.width, LEAST_GRAD_WIDTH)
    return box


def _stacked(recording: Recording, nodes: Sequence[NodeId]) -> Sequence[NodeId]:
    """Nodes of one cell from top to bottom: gradients go upwards, as between cells."""
    if len(nodes) == 1:
        return nodes
    missing = dict.fromkeys(nodes, 0)
    for node in nodes:
        for edge in recording.nodes[node].edges:
            if edge is not None and edge.node in missing:
                missing[edge.node] += 1
    ready = [node for node in reversed(nodes) if not missing[node]]
    from_below: list[NodeId] = []
    while ready:
        node = ready.pop()
        from_below.append(node)
        for edge in recording.nodes[node].edges:
            if edge is not None and edge.node in missing:
                missing[edge.node] -= 1
                if not missing[edge.node]:
                    ready.append(edge.node)
    return from_below[::-1]


def _fold_text(cell: Cell, count: int, noun: str, name: str | None = None) -> tuple[str, str]:
    """("blocks.3 x 24 nodes", "") or, for repeats, ("blocks.* x 12", "288 nodes")."""
    counted = f"{count} {noun}" if count == 1 else f"{count} {noun}s"
    if cell.times == 1:
        return f"{_clipped(cell.title, len(counted) + 3)} x {counted}", ""
    return f"{_clipped(name or cell.title, len(str(cell.times)) + 3)} x {cell.times}", counted


def _common_name(recording: Recording, nodes: Iterable[NodeId]) -> str | None:
    """The name of all these nodes, leaves aside; None where they have several."""
    names = {recording.nodes[n].short_name for n in nodes if recording.nodes[n].leaf is None}
    return names.pop() if len(names) == 1 else None


def _output_text(recording: Recording, op: Op) -> str:
    if not op.outputs:
        return ""
    tensor = recording.tensors[op.outputs[0]]
    return f"{tensor.name or ''} {_shape_text(tensor.shape)}".strip()


def _node_place(recording: Recording, node: GradNode) -> str:
    module = module_of(recording, node)
    if module:
        return f"in {_short_path(module)}"
    return _end_of(node.source.place if node.source else "")


def _shape_text(shape: Sequence[int]) -> str:
    """A shape as torch writes it, and "scalar" for ()."""
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})" if shape else "scalar"


def _clipped(text: str, taken: int = 0) -> str:
    room = LONGEST_LABEL - taken
    return text if len(text) <= room else text[: room - 1] + "…"


def _short_path(path: str, room: int = LONGEST_LABEL) -> str:
    """A dotted path that fits: its end tells weight from bias, its numbers tell layers apart."""
    if len(path) <= room:
        return path
    parts = path.split(".")
    for start in range(1, len(parts)):
        numbers = ".".join(part for part in parts[:start] if part.isdigit())
        text = f"…{f'{numbers}…' if numbers else ''}{'.'.join(parts[start:])}"
        if len(text) <= room:
            return text
    return _end_of(path, room)


def _end_of(text: str, room: int = LONGEST_LABEL) -> str:
    return text if len(text) <= room else f"…{text[1 - room :]}"
