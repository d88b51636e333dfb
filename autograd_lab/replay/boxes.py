"""Turn cells into boxes with text: one in the forward lane, a stack in each backward lane."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from autograd_lab.recording import GradNode, NodeId, Op, OpId, Recording, TensorId

from .cells import Cell, CellGraph, CellKind
from .match import module_of

__all__ = ["Box", "boxes_of"]

LONGEST_LABEL = 30
LABEL_CHARACTER = 7.0  # px, 12-px text
SUBLABEL_CHARACTER = 7.4  # px, 12-px text of digits, wider than letters on average
PADDING = 16.0
LEAST_WIDTH = 56.0
LEAST_LEAF_WIDTH = 94.0  # room for what is not known yet: "grad 1.235e-5"


@dataclass(slots=True, kw_only=True)
class Box:
    """A box of cell number `cell`, without a place yet; `offset` is its row within the cell."""

    key: str
    kind: CellKind
    lane: int
    cell: int
    offset: int
    label: str
    sublabel: str
    ops: tuple[OpId, ...] = ()
    nodes: tuple[NodeId, ...] = ()
    tensors: tuple[TensorId, ...] = ()

    @property
    def width(self) -> float:
        """Width in px that its text needs."""
        text = max(LABEL_CHARACTER * len(self.label), SUBLABEL_CHARACTER * len(self.sublabel))
        return max(LEAST_LEAF_WIDTH if self.kind == "leaf" else LEAST_WIDTH, text + PADDING)


def boxes_of(graph: CellGraph, recording: Recording) -> list[list[Box]]:
    """The boxes of each cell."""
    makers = {tensor: op.name for op in recording.ops for tensor in op.outputs if not op.nodes}
    names = {
        tensor: recording.tensors[tensor].name or makers.get(tensor, f"tensor {tensor}")
        for cell in graph.cells
        for tensor in cell.tensors
    }
    return [
        [
            *_forward_boxes(number, cell, recording, names),
            *_backward_boxes(number, cell, recording, names),
        ]
        for number, cell in enumerate(graph.cells)
    ]


def _forward_boxes(
    number: int, cell: Cell, recording: Recording, names: Mapping[TensorId, str]
) -> Iterable[Box]:
    ops, tensors = tuple(cell.ops), tuple(cell.tensors)
    if len(ops) == 1:
        key, kind = f"op:{ops[0]}", "op"
        label, sublabel = recording.ops[ops[0]].name, _output_text(recording, recording.ops[ops[0]])
    elif ops or len(tensors) > 1:
        key, kind = f"fold:{number}@0", "fold"
        label, sublabel = _fold_text(cell, len(ops), "op")
    elif tensors:
        tensor = recording.tensors[tensors[0]]
        kind = "leaf" if tensor.requires_grad else "input"
        key = f"{kind}:{tensor.id}"
        label, sublabel = names[tensor.id], _shape_text(tensor.shape)
    else:
        return
    yield Box(
        key=key,
        kind=kind,
        lane=0,
        cell=number,
        offset=0,
        label=_clipped(label),
        sublabel=_clipped(sublabel),
        ops=ops,
        tensors=tensors,
    )


def _backward_boxes(
    number: int, cell: Cell, recording: Recording, names: Mapping[TensorId, str]
) -> Iterable[Box]:
    for lane, nodes in cell.lanes.items():
        if cell.kind == "fold" and len(nodes) > 1:
            label, sublabel = _fold_text(cell, len(nodes), "node", _common_name(recording, nodes))
            yield Box(
                key=f"fold:{number}@{lane}",
                kind="fold",
                lane=lane,
                cell=number,
                offset=0,
                label=_clipped(label),
                sublabel=sublabel,
                nodes=tuple(nodes),
            )
            continue
        for offset, node_id in enumerate(_stacked(recording, nodes)):
            node = recording.nodes[node_id]
            yield Box(
                key=f"node:{node_id}@{lane}",
                kind="node",
                lane=lane,
                cell=number,
                offset=offset,
                label=_clipped(node.short_name),
                sublabel=_clipped(_node_place(recording, node, names)),
                nodes=(node_id,),
            )


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


def _node_place(recording: Recording, node: GradNode, names: Mapping[TensorId, str]) -> str:
    if node.leaf is not None:
        return names[node.leaf]
    return module_of(recording, node) or (node.source.place if node.source else "")


def _shape_text(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))})"


def _clipped(text: str, taken: int = 0) -> str:
    room = LONGEST_LABEL - taken
    return text if len(text) <= room else text[: room - 1] + "…"
