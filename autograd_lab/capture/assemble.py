"""Turn the tape of a finished block into a frozen Recording."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import CodeType
from typing import Any

import torch

from autograd_lab.recording import (
    BackwardFinished,
    BackwardStarted,
    Edge,
    Event,
    GradAccumulated,
    GradNode,
    Meta,
    NodeFinished,
    NodeId,
    NodeStarted,
    Op,
    OpCalled,
    OpId,
    OptimizerStepped,
    PassId,
    ProblemSeen,
    Recording,
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
from .notices import not_seen
from .places import Place
from .problems import with_problems
from .shots import IS_LEAF, IS_PARAMETER, REQUIRES_GRAD
from .statistics import detail_of, significant
from .tape import RawNode, RawOp, RawSlot, Rows, Tape

__all__ = ["assemble"]


def assemble(tape: Tape) -> Recording:
    """Build the Recording of a tape that was let go: the user's tensors are not touched."""
    return _Assembler(tape).run()


class _Assembler:
    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.shots = tape.shots
        self.measures = tape.shots.measures
        self.raw_ops = tape.raw_ops()
        self.names = name_tensors(tape, self.raw_ops)
        self.lines: dict[tuple[CodeType, int], SourceLine] = {}
        self.storages: dict[int, int] = {}
        self.snapshots: dict[int, Snapshot] = {}
        rows = range(self.shots.row_count)
        firsts = [row for row in rows if self.shots.origin(row) == row]
        self.tensor_ids = {row: TensorId(number) for number, row in enumerate(firsts)}
        self.confirmed = {raw.made_by for raw in tape.nodes}
        self.made_by = {
            number: OpId(op)
            for op, raw in enumerate(self.raw_ops)
            if raw.thread == 0
            for number in range(raw.first_node, max(raw.end_node, _end_of_last_node(raw)))
        }

    def run(self) -> Recording:
        tape = self.tape
        makers = [self._maker(raw) for raw in tape.nodes]
        made: dict[OpId, list[NodeId]] = {}
        for number, op in enumerate(makers):
            if op is not None:
                made.setdefault(op, []).append(NodeId(number))
        ops = [self._op(OpId(k), raw, made.get(OpId(k), [])) for k, raw in enumerate(self.raw_ops)]
        nodes = [
            self._node(number, raw, None if op is None else ops[op])
            for number, (raw, op) in enumerate(zip(tape.nodes, makers, strict=True))
        ]
        events = [event for raw in tape.events for event in self._events(raw)]
        tensors = [self._tensor(row) for row in self.tensor_ids]
        parameters = [self._snapshot(row) for row in tape.parameter_shots]
        events = with_problems(events, nodes, ops, tensors, self._writes(), parameters)
        devices = [ref.device for ref in tensors if ref.device != "cpu"]
        return Recording(
            events=(*events, *not_seen(tape, nodes)),
            nodes=tuple(nodes),
            ops=tuple(ops),
            tensors=tuple(tensors),
            sources=self._sources(),
            meta=Meta(
                torch_version=str(torch.__version__),
                device=devices[0] if devices else "cpu",
                values=self.measures.values,
                budget_nbytes=self.measures.budget_nbytes,
            ),
        )

    def _maker(self, raw: RawNode) -> OpId | None:
        """The call that made a node.

        A call marks the last node that it makes. The others are known by their sequence numbers,
        which restart in each thread: they are the call's only if its last node was met too.
        """
        if raw.made_by is not None:
            return OpId(raw.made_by)
        op = self.made_by.get(raw.sequence_number)
        if op is None or raw.leaf is not None:
            return None
        last = self.raw_ops[op].last_node
        if last is None:
            return op if raw.thread == 0 else None
        return op if last[0] != raw.sequence_number and op in self.confirmed else None

    def _tensor(self, row: int) -> TensorRef:
        (shape, dtype, device), flags = self.measures.meta(row, row), self.shots.flags(row)
        return TensorRef(
            id=self.tensor_ids[row],
            shape=_sizes(shape),
            dtype=_name_of(dtype),
            device=str(device),
            is_leaf=bool(flags & IS_LEAF),
            requires_grad=bool(flags & REQUIRES_GRAD),
            name=self.names.get(row),
            is_parameter=bool(flags & IS_PARAMETER),
        )

    def _id(self, row: int) -> TensorId:
        return self.tensor_ids[self.shots.origin(row)]

    def _ids(self, rows: Iterable[int]) -> tuple[TensorId, ...]:
        return tuple(map(self._id, rows))

    def _line(self, place: Place) -> SourceLine | None:
        if place.code is None:
            return None
        key = (place.code, place.instruction)
        if key not in self.lines:
            self.lines[key] = source_line(*key)
        return self.lines[key]

    def _op(self, number: OpId, raw: RawOp, nodes: Sequence[NodeId]) -> Op:
        module, module_type, module_call = raw.place.module or (None, None, None)
        name, qualname = _names_of(raw.function)
        return Op(
            id=number,
            name=name,
            qualname=qualname,
            inputs=self._ids(raw.inputs),
            outputs=self._ids(raw.outputs),
            nodes=tuple(nodes),
            node_count=max(raw.end_node, _end_of_last_node(raw)) - raw.first_node,
            module=module,
            module_type=module_type,
            module_call=module_call,
            source=self._line(raw.place),
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
            leaf=None if raw.leaf is None else self._id(raw.leaf),
            made_by=op.id if op else None,
            made_in_pass=None if raw.made_in is None else PassId(raw.made_in[0]),
            made_in_node=None if raw.made_in is None else NodeId(raw.made_in[1]),
            module=op.module if op else None,
            source=source,
            formula=formula,
            rule=rule_of(raw.name),
        )

    def _slot(self, raw: RawSlot, op: Op | None) -> SavedSlot:
        tensor = None if raw.tensor is None else self._id(raw.tensor)
        if tensor is None and op is not None and op.outputs and raw.name.startswith("result"):
            tensor = op.outputs[0]
        storage = self.storages.setdefault(raw.storage, len(self.storages)) if raw.storage else None
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

    def _snapshot(self, row: int) -> Snapshot:
        known = self.snapshots.get(row)
        if known is not None:
            return known
        measures, origin = self.measures, self.shots.origin(row)
        shape, extra, norm = (
            measures.meta(row, origin)[0],
            measures.extras.get(row),
            measures.norm(row),
        )
        picture = None if extra is None else extra.picture
        self.snapshots[row] = snapshot = Snapshot(
            tensor=self.tensor_ids[origin],
            version=self.shots.version(row),
            numel=math.prod(_sizes(shape)),
            norm=None if norm is None else significant(norm),
            finite=measures.is_finite(row),
            note=measures.note(row),
            detail=detail_of(picture) if picture is not None and picture.is_fetched else None,
        )
        return snapshot

    def _some(self, rows: Rows) -> tuple[Snapshot | None, ...]:
        rows = rows if isinstance(rows, tuple) else (rows,)
        return tuple(None if row is None else self._snapshot(row) for row in rows)

    def _events(self, raw: tuple[Any, ...]) -> list[Event]:
        kind, thread, inside, *facts = raw
        when: dict[str, Any] = {"thread": thread, "inside": inside}
        match kind:
            case "op":
                op = self.raw_ops[facts[0]]
                outputs = tuple(map(self._snapshot, op.outputs))
                inputs = tuple(self._snapshot(row) for row, _ in op.new_inputs)
                return [OpCalled(op=OpId(facts[0]), outputs=outputs, inputs=inputs, **when)]
            case "backward started":
                number, roots, grads, accumulates, retain, create, place = facts
                return [
                    BackwardStarted(
                        pass_id=number,
                        roots=tuple(roots),
                        grad_outputs=self._some(tuple(grads)),
                        accumulates=accumulates,
                        retain_graph=retain,
                        create_graph=create,
                        source=self._line(place),
                        **when,
                    ),
                    *self._refusals(number, when),
                ]
            case "backward finished":
                number, error, failed_in = facts
                finished = BackwardFinished(pass_id=number, error=error, **when)
                if error is None:
                    return [finished]
                return [self._exception(error, number, failed_in, when), finished]
            case "node started":
                number, node, rows = facts
                return [
                    NodeStarted(pass_id=number, node=node, grad_outputs=self._some(rows), **when)
                ]
            case "node finished":
                number, node, rows, added, before, after = facts
                return self._finished(number, node, rows, (added, before, after), when)
            case "node ran":
                number, node, received, rows = facts
                started = NodeStarted(
                    pass_id=number, node=node, grad_outputs=self._some(received), **when
                )
                return [started, *self._finished(number, node, rows, None, when)]
            case "accumulated":
                number, node, added, after = facts
                started = NodeStarted(
                    pass_id=number, node=node, grad_outputs=self._some(added), **when
                )
                events = self._finished(number, node, (), (added, None, after), when)
                return [started, *map(_with_doubt, events)]
            case "optimizer":
                return [self._optimizer_step(*facts, when=when)]
            case "exception":
                return [ProblemSeen(kind="exception", text=facts[0], **when)]
            case _:
                raise AssertionError(kind)

    def _op_name(self, op: OpId) -> str:
        return _names_of(self.raw_ops[op].function)[0]

    def _refusals(self, number: PassId, when: dict[str, Any]) -> list[ProblemSeen]:
        """One line for all saved tensors that this pass will miss in nodes that ran before."""
        missed = [facts for facts in self.tape.refused if facts[0] == number]
        if not missed:
            return []
        _, node, slot, why = missed[0]
        raw = self.tape.nodes[node]
        op = self._maker(raw)
        place = None if op is None else self._line(self.raw_ops[op].place)
        made = (
            f" (made by {self._op_name(op)} at {place.place})" if place and op is not None else ""
        )
        more = (
            f"; so were {len(missed) - 1} more"
            if len(missed) > 2
            else "; so was 1 more"
            if len(missed) == 2
            else ""
        )
        text = f"{raw.name}{made} needs its saved {slot}, which was {why}{more}."
        freed = ProblemSeen(
            kind="saved tensor freed",
            text=text,
            node=NodeId(node),
            pass_id=number,
            source=place,
            **when,
        )
        return [freed]

    def _finished(
        self,
        number: PassId,
        node: NodeId,
        rows: Rows,
        grad: tuple[int | None, int | None, int | None] | None,
        when: dict[str, Any],
    ) -> list[Event]:
        """`grad` is what was added to the leaf's `.grad`, and what that was before and after."""
        finished = NodeFinished(pass_id=number, node=node, grad_inputs=self._some(rows), **when)
        leaf = self.tape.nodes[node].leaf
        if leaf is None or grad is None:
            return [finished]
        if leaf in self.names:
            for row in (grad[1], grad[2]):
                if row is not None:
                    self.names.setdefault(self.shots.origin(row), f"{self.names[leaf]}.grad")
        added, before, after = self._some(grad)
        accumulated = GradAccumulated(
            pass_id=number,
            node=node,
            leaf=self._id(leaf),
            before=before,
            added=added,
            after=after,
            **when,
        )
        return [accumulated, finished]

    def _optimizer_step(
        self, place: Place, calls: int, written: set[int], *, when: dict[str, Any]
    ) -> OptimizerStepped:
        return OptimizerStepped(
            optimizer=place.optimizer or "Optimizer",
            op_count=calls,
            parameters=self._ids(sorted(written)),
            source=self._line(place),
            **when,
        )

    def _exception(
        self, error: str, number: PassId, failed_in: NodeId | None, when: dict[str, Any]
    ) -> ProblemSeen:
        if failed_in is None:
            text = f"Backward {number} raised {error}"
            return ProblemSeen(kind="exception", text=text, pass_id=number, **when)
        raw = self.tape.nodes[failed_in]
        op = self._maker(raw)
        place = None if op is None else self._line(self.raw_ops[op].place)
        made = f", made at {place.place}" if place else ""
        text = f"Backward {number} raised in {raw.name}{made}: {error}"
        return ProblemSeen(
            kind="exception", text=text, node=failed_in, pass_id=number, source=place, **when
        )

    def _writes(self) -> list[tuple[int, OpId]]:
        """(storage, call) for each in-place call, in order."""
        return [
            (self.storages[storage], OpId(number))
            for number, raw in enumerate(self.raw_ops)
            for storage in raw.storages
            if storage in self.storages
        ]

    def _sources(self) -> tuple[SourceText, ...]:
        used: dict[CodeType, set[int]] = {}
        for (code, _), line in self.lines.items():
            used.setdefault(code, set()).add(line.line)
        texts = [source_text(code, lines) for code, lines in used.items()]
        return tuple(dict.fromkeys(text for text in texts if text is not None))


def _sizes(shape: Sequence[int]) -> tuple[int, ...]:
    """Sizes as ints: 0 for the ragged dimension of a nested tensor."""
    return tuple(size if type(size) is int else 0 for size in shape)


def _end_of_last_node(raw: RawOp) -> int:
    """Reading a view's grad_fn may make its node after the call; it belongs to the call."""
    return raw.last_node[0] + 1 if raw.last_node is not None else 0


def _with_doubt(event: Event) -> Event:
    """Say that `before` was not seen where the sum is not what was added.

    `.grad` was None when the engine was called, but something set it before the node ran.
    """
    if not isinstance(event, GradAccumulated) or event.added is None or event.after is None:
        return event
    added, after = event.added.norm, event.after.norm
    if added is None or after is None or math.isclose(added, after, rel_tol=1e-5) or added != added:
        return event
    unseen = replace(event.after, norm=None, finite=None, detail=None, note="set during the pass")
    return replace(event, before=unseen)


def _names_of(function: Any) -> tuple[str, str]:  # noqa: ANN401 (whatever torch called)
    """("linear", "torch.nn.functional.linear"); for a property read, the property's name."""
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
