"""Turn raw calls, nodes, slots and rows into records: what stands still in a recording."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from types import CodeType
from typing import Any

import torch

from autograd_lab.recording import (
    Edge,
    GradNode,
    NodeId,
    Op,
    OpId,
    PassId,
    SavedSlot,
    Snapshot,
    SourceLine,
    SourceText,
    TensorId,
    TensorRef,
)

from .expressions import source_line, source_text
from .formulas import formula_of, rule_of
from .naming import name_tensors
from .places import Place
from .shots import IS_LEAF, IS_PARAMETER, REQUIRES_GRAD
from .statistics import detail_of, significant
from .tape import RawNode, RawOp, RawSlot, Rows, Tape

__all__ = ["GraphRecords"]


class GraphRecords:
    """The calls, nodes and tensors of a tape, and what its rows and places are as records."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.shots = tape.shots
        self.measures = tape.shots.measures
        self.raw_ops = tape.raw_ops()
        self.names = name_tensors(tape, self.raw_ops)
        self._lines: dict[tuple[CodeType, int], SourceLine] = {}
        self._storages: dict[int, int] = {}
        self._snapshots: dict[int, Snapshot] = {}
        rows = range(self.shots.row_count)
        firsts = [row for row in rows if self.shots.origin(row) == row]
        self._tensor_ids = {row: TensorId(number) for number, row in enumerate(firsts)}
        makers = self._makers()
        self.ops = self._ops(makers)
        self.nodes = [
            self._node(number, raw, self.ops[makers[number]] if number in makers else None)
            for number, raw in enumerate(tape.nodes)
        ]

    def tensors(self) -> list[TensorRef]:
        """The tensors, with the names that were found until now."""
        return [self._tensor(row) for row in self._tensor_ids]

    def id_of(self, row: int) -> TensorId:
        """The id of a row's tensor."""
        return self._tensor_ids[self.shots.origin(row)]

    def ids_of(self, rows: Iterable[int]) -> tuple[TensorId, ...]:
        """The ids of the rows' tensors."""
        return tuple(map(self.id_of, rows))

    def line_of(self, place: Place) -> SourceLine | None:
        """The user's line of a place; None where no line of theirs was on the stack."""
        if place.code is None:
            return None
        key = (place.code, place.instruction)
        if key not in self._lines:
            self._lines[key] = source_line(*key)
        return self._lines[key]

    def snapshot(self, row: int) -> Snapshot:
        """The row as a record."""
        known = self._snapshots.get(row)
        if known is not None:
            return known
        measures, origin = self.measures, self.shots.origin(row)
        shape, extra, norm = (
            measures.meta(row, origin)[0],
            measures.extras.get(row),
            measures.norm(row),
        )
        picture = None if extra is None else extra.picture
        self._snapshots[row] = snapshot = Snapshot(
            tensor=self._tensor_ids[origin],
            version=self.shots.version(row),
            numel=math.prod(_sizes(shape)),
            norm=None if norm is None else significant(norm),
            finite=measures.is_finite(row),
            note=measures.note(row),
            detail=detail_of(picture) if picture is not None and picture.is_fetched else None,
        )
        return snapshot

    def snapshots(self, rows: Rows) -> tuple[Snapshot | None, ...]:
        """The rows of a node's gradients as records, None where there was no gradient."""
        rows = rows if isinstance(rows, tuple) else (rows,)
        return tuple(None if row is None else self.snapshot(row) for row in rows)

    def writes(self) -> list[tuple[int, OpId]]:
        """(storage, call) for each in-place call, in order."""
        return [
            (self._storages[storage], OpId(number))
            for number, raw in enumerate(self.raw_ops)
            for storage in raw.storages
            if storage in self._storages
        ]

    def sources(self) -> tuple[SourceText, ...]:
        """The texts around the lines that were asked for until now."""
        used: dict[CodeType, set[int]] = {}
        for (code, _), line in self._lines.items():
            used.setdefault(code, set()).add(line.line)
        texts = [source_text(code, lines) for code, lines in used.items()]
        return tuple(dict.fromkeys(text for text in texts if text is not None))

    def _makers(self) -> Mapping[int, OpId]:
        """The call that made each node.

        A call marks the last node that it makes. The others are known by their sequence numbers,
        which restart in each thread: they are the call's only if its last node was met too.
        """
        by_number = {
            number: OpId(op)
            for op, raw in enumerate(self.raw_ops)
            if raw.thread == 0
            for number in range(raw.first_node, max(raw.end_node, _end_of_last_node(raw)))
        }
        confirmed = {raw.made_by for raw in self.tape.nodes}
        makers: dict[int, OpId] = {}
        for number, raw in enumerate(self.tape.nodes):
            if raw.made_by is not None:
                makers[number] = OpId(raw.made_by)
                continue
            op = by_number.get(raw.sequence_number)
            if op is None or raw.leaf is not None:
                continue
            last = self.raw_ops[op].last_node
            if last is None:
                is_maker = raw.thread == 0
            else:
                is_maker = last[0] != raw.sequence_number and op in confirmed
            if is_maker:
                makers[number] = op
        return makers

    def _ops(self, makers: Mapping[int, OpId]) -> list[Op]:
        made: dict[OpId, list[NodeId]] = {}
        for number, op in makers.items():
            made.setdefault(op, []).append(NodeId(number))
        return [
            self._op(OpId(number), raw, made.get(OpId(number), []))
            for number, raw in enumerate(self.raw_ops)
        ]

    def _tensor(self, row: int) -> TensorRef:
        (shape, dtype, device), flags = self.measures.meta(row, row), self.shots.flags(row)
        return TensorRef(
            id=self._tensor_ids[row],
            shape=_sizes(shape),
            dtype=_name_of(dtype),
            device=str(device),
            is_leaf=bool(flags & IS_LEAF),
            requires_grad=bool(flags & REQUIRES_GRAD),
            name=self.names.get(row),
            is_parameter=bool(flags & IS_PARAMETER),
        )

    def _op(self, number: OpId, raw: RawOp, nodes: Sequence[NodeId]) -> Op:
        module, module_type, module_call = raw.place.module or (None, None, None)
        name, qualname = _names_of(raw.function)
        return Op(
            id=number,
            name=name,
            qualname=qualname,
            inputs=self.ids_of(raw.inputs),
            outputs=self.ids_of(raw.outputs),
            nodes=tuple(nodes),
            node_count=max(raw.end_node, _end_of_last_node(raw)) - raw.first_node,
            module=module,
            module_type=module_type,
            module_call=module_call,
            source=self.line_of(raw.place),
            is_inplace=raw.is_inplace,
            recomputed=raw.place.is_recomputed,
        )

    def _node(self, number: int, raw: RawNode, op: Op | None) -> GradNode:
        source = op.source if op else None
        formula = formula_of(raw.name)
        if raw.defined_at is not None:
            defined = _line_of_definition(*raw.defined_at)
            source, formula = source or defined, f"backward defined at {defined.place}"
        edges = raw.edges or ()
        return GradNode(
            id=NodeId(number),
            name=raw.name,
            edges=tuple(
                None if node < 0 else Edge(node=NodeId(node), input=position)
                for node, position in zip(edges[::2], edges[1::2], strict=True)
            ),
            saved=tuple(self._slot(RawSlot(*slot), op) for slot in raw.saved),
            leaf=None if raw.leaf is None else self.id_of(raw.leaf),
            made_by=op.id if op else None,
            made_in_pass=None if raw.made_in is None else PassId(raw.made_in[0]),
            made_in_node=None if raw.made_in is None else NodeId(raw.made_in[1]),
            module=op.module if op else None,
            source=source,
            formula=formula,
            rule=rule_of(raw.name),
        )

    def _slot(self, raw: RawSlot, op: Op | None) -> SavedSlot:
        tensor = None if raw.tensor is None else self.id_of(raw.tensor)
        if tensor is None and op is not None and op.outputs and raw.name.startswith("result"):
            tensor = op.outputs[0]
        storage = (
            self._storages.setdefault(raw.storage, len(self._storages)) if raw.storage else None
        )
        return SavedSlot(
            name=raw.name,
            shape=None if raw.shape is None else _sizes(raw.shape),
            dtype=None if raw.dtype is None else _name_of(raw.dtype),
            version=raw.version,
            nbytes=raw.nbytes,
            storage=storage,
            tensor=tensor,
            packed_by=raw.packed_by,
            problem=raw.problem,
        )


def _sizes(shape: Sequence[int]) -> tuple[int, ...]:
    """Sizes as ints: 0 for the ragged dimension of a nested tensor."""
    return tuple(size if type(size) is int else 0 for size in shape)


def _end_of_last_node(raw: RawOp) -> int:
    """Reading a view's grad_fn may make its node after the call; it belongs to the call."""
    return raw.last_node[0] + 1 if raw.last_node is not None else 0


def _names_of(function: Any) -> tuple[str, str]:  # noqa: ANN401 (whatever torch called)
    """("linear", "torch.nn.functional.linear"); for a property read, the property's name.

    Of an op of the dispatcher ("scale", "torch.ops.lab.scale"), without its overload.
    """
    if hasattr(function, "overloadpacket"):
        namespace, _, name = function.name().partition(".")[0].partition("::")
        return name, f"torch.ops.{namespace}.{name}"
    name = getattr(function, "__name__", type(function).__name__)
    if name == "__get__":
        name = getattr(getattr(function, "__self__", None), "__name__", name)
    home = getattr(function, "__module__", None)
    if home is None:
        is_method = inspect.getattr_static(torch.Tensor, name, None) is not None
        home = "torch.Tensor" if is_method else "torch"
    return name, f"{home}.{name}"


def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _line_of_definition(file: str, line: int) -> SourceLine:
    """The line on which a Python Function's backward is defined."""
    code = compile("", file, "exec").replace(co_firstlineno=line)
    return source_line(code, 1 << 20)
