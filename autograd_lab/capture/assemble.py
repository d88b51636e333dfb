"""Turn the tape of a finished block into a frozen Recording."""

from __future__ import annotations

import math
from collections.abc import Iterable
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
    NotSeen,
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

from .expressions import argument_name, source_line, source_text, target_name
from .formulas import formula_of, rule_of
from .measuring import Shot
from .places import Place
from .problems import with_problems
from .statistics import detail_of, significant
from .tape import RawNode, RawOp, RawSlot, Tape

__all__ = ["assemble"]


def assemble(tape: Tape) -> Recording:
    """Build the Recording. The tape must have been let go: nothing here touches the user's
    tensors.
    """
    return _Assembler(tape).run()


class _Assembler:
    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.lines: dict[tuple[CodeType, int], SourceLine] = {}
        self.storages: dict[int, int] = {}
        self.snapshots: dict[int, Snapshot] = {}

    def run(self) -> Recording:
        tape = self.tape
        self._name_tensors()
        ops = tuple(self._op(number, raw) for number, raw in enumerate(tape.ops))
        nodes = tuple(self._node(number, raw, ops) for number, raw in enumerate(tape.nodes))
        events = [event for raw in tape.events for event in self._events(raw)]
        tensors = tuple(self._tensor(number) for number in range(len(tape.tensors)))
        parameters = {
            TensorId(number): self._snapshot(shot) for number, shot in tape.parameter_shots.items()
        }
        events = with_problems(events, nodes, ops, tensors, self._writes(), parameters)
        events += [
            NotSeen(reason=reason, text=text)
            for reason, text in (*tape.not_seen.items(), *self._unmatched(nodes))
        ]
        devices = [ref.device for ref in tensors if ref.device != "cpu"]
        meta = Meta(
            torch_version=str(torch.__version__),
            device=devices[0] if devices else "cpu",
            values=tape.measurer.values,
            budget_nbytes=tape.measurer.budget_nbytes,
        )
        return Recording(
            events=tuple(events),
            nodes=nodes,
            ops=ops,
            tensors=tensors,
            sources=self._sources(),
            meta=meta,
        )

    def _name_tensors(self) -> None:
        """Give unnamed tensors the names of the user's variables: what a line assigns to, and what
        it calls with.
        """
        names, last = self.tape.tensor_names, {}
        for op in self.tape.ops:
            code, instruction = op.place.code, op.place.instruction
            if code is None:
                continue
            for tensor, position in op.new_inputs:
                if tensor not in names and (name := _input_name(op, position)) is not None:
                    names[tensor] = name
            before = last.get(code)
            if before is not None and (before.place.instruction, before.place.module) != (
                instruction,
                op.place.module,
            ):
                _name_output(before, names)
            last[code] = op
        for op in last.values():
            _name_output(op, names)

    def _tensor(self, number: int) -> TensorRef:
        shape, dtype, device, is_leaf, requires_grad, is_parameter = self.tape.tensors[number]
        return TensorRef(
            id=TensorId(number),
            shape=tuple(int(size) for size in shape),
            dtype=str(dtype).removeprefix("torch."),
            device=str(device),
            is_leaf=is_leaf,
            requires_grad=requires_grad,
            name=self.tape.tensor_names.get(number),
            is_parameter=is_parameter,
        )

    def _line(self, place: Place) -> SourceLine | None:
        if place.code is None:
            return None
        key = (place.code, place.instruction)
        if key not in self.lines:
            self.lines[key] = source_line(*key)
        return self.lines[key]

    def _op(self, number: int, raw: RawOp) -> Op:
        function, place = raw.function, raw.place
        name = getattr(function, "__name__", type(function).__name__)
        owner = getattr(function, "__self__", None)
        if name == "__get__" and owner is not None:
            name = getattr(owner, "__name__", name)
        home = getattr(function, "__module__", None) or (
            "torch.Tensor" if getattr(torch.Tensor, name, None) is not None else "torch"
        )
        return Op(
            id=OpId(number),
            name=name,
            qualname=f"{home}.{name}",
            inputs=tuple(map(TensorId, raw.inputs)),
            outputs=tuple(map(TensorId, raw.outputs)),
            nodes=tuple(map(NodeId, raw.nodes)),
            module=place.module.path if place.module else None,
            module_type=place.module.type_name if place.module else None,
            module_call=place.module.number if place.module else None,
            source=self._line(place),
            is_inplace=raw.is_inplace,
            recomputed=place.is_recomputed,
        )

    def _node(self, number: int, raw: RawNode, ops: tuple[Op, ...]) -> GradNode:
        op = None if raw.made_by is None else ops[raw.made_by]
        source = op.source if op else None
        if source is None and raw.defined_at is not None:
            source = source_line_of_definition(*raw.defined_at)
        return GradNode(
            id=NodeId(number),
            name=raw.name,
            edges=tuple(
                None if edge is None else Edge(node=NodeId(edge[0]), input=edge[1])
                for edge in raw.edges or ()
            ),
            saved=tuple(self._slot(slot, op) for slot in raw.saved),
            leaf=None if raw.leaf is None else TensorId(raw.leaf),
            made_by=None if raw.made_by is None else OpId(raw.made_by),
            made_in_pass=None if raw.made_in is None else PassId(raw.made_in[0]),
            made_in_node=None if raw.made_in is None else NodeId(raw.made_in[1]),
            module=op.module if op else None,
            source=source,
            formula=f"backward defined at {source.place}"
            if raw.defined_at and source
            else formula_of(raw.name),
            rule=rule_of(raw.name),
        )

    def _slot(self, raw: RawSlot, op: Op | None) -> SavedSlot:
        tensor = raw.tensor
        if tensor is None and op is not None and raw.name.startswith("result") and op.outputs:
            tensor = op.outputs[0]
        storage = None
        if raw.storage:
            storage = self.storages.setdefault(raw.storage, len(self.storages))
        return SavedSlot(
            name=raw.name,
            shape=None if raw.shape is None else tuple(int(size) for size in raw.shape),
            dtype=None if raw.dtype is None else str(raw.dtype).removeprefix("torch."),
            version=raw.version,
            nbytes=raw.nbytes,
            storage=storage,
            tensor=None if tensor is None else TensorId(tensor),
            packed_by=raw.packed_by,
            problem=raw.problem,
        )

    def _snapshot(self, shot: Shot | None) -> Snapshot | None:
        if shot is None:
            return None
        known = self.snapshots.get(id(shot))
        if known is not None:
            return known
        extra = shot.extra
        if extra is not None and extra.same_as is not None:
            source = extra.same_as
            shot.norm, shot.finite = source.norm, source.finite
            extra = source.extra
            while extra is not None and extra.same_as is not None:
                shot.norm, shot.finite = extra.same_as.norm, extra.same_as.finite
                extra = extra.same_as.extra
        detail = (
            detail_of(extra.picture) if extra is not None and extra.picture is not None else None
        )
        shape = self.tape.tensors[shot.number][0]
        snapshot = Snapshot(
            tensor=TensorId(shot.number),
            version=shot.version,
            numel=math.prod(int(size) for size in shape),
            norm=None if shot.norm is None else significant(shot.norm),
            finite=shot.finite,
            note=extra.note if extra else None,
            detail=detail,
        )
        self.snapshots[id(shot)] = snapshot
        return snapshot

    def _known(self, shots: Iterable[Shot]) -> tuple[Snapshot, ...]:
        return tuple(snapshot for snapshot in map(self._snapshot, shots) if snapshot is not None)

    def _each(self, shots: Iterable[Shot | None]) -> tuple[Snapshot | None, ...]:
        return tuple(map(self._snapshot, shots))

    def _events(self, raw: tuple[Any, ...]) -> list[Event]:
        kind, thread, inside, *facts = raw
        when: dict[str, Any] = {
            "thread": thread,
            "inside": None if inside is None else NodeId(inside),
        }
        match kind:
            case "op":
                number, outputs, inputs = facts
                return [
                    OpCalled(
                        op=OpId(number),
                        outputs=self._known(outputs),
                        inputs=self._known(inputs),
                        **when,
                    )
                ]
            case "backward started":
                number, roots, grads, accumulates, retain, create, place = facts
                return [
                    BackwardStarted(
                        pass_id=PassId(number),
                        roots=tuple(map(NodeId, roots)),
                        grad_outputs=self._each(grads),
                        accumulates=accumulates,
                        retain_graph=retain,
                        create_graph=create,
                        source=self._line(place),
                        **when,
                    )
                ]
            case "backward finished":
                number, error, failed_in = facts
                finished = BackwardFinished(pass_id=PassId(number), error=error, **when)
                if error is None:
                    return [finished]
                return [self._exception(error, PassId(number), failed_in, when), finished]
            case "node ran":
                number, node, received, grads = facts
                started = NodeStarted(
                    pass_id=PassId(number),
                    node=NodeId(node),
                    grad_outputs=self._each(received),
                    **when,
                )
                return [started, *self._node_finished([number, node, grads, None, None], when)]
            case "accumulated":
                number, node, received, after = facts
                started = NodeStarted(
                    pass_id=PassId(number),
                    node=NodeId(node),
                    grad_outputs=self._each(received),
                    **when,
                )
                return [
                    started,
                    *self._node_finished([number, node, (), (received, None), after], when),
                ]
            case "node started":
                number, node, grads, *_ = facts
                return [
                    NodeStarted(
                        pass_id=PassId(number),
                        node=NodeId(node),
                        grad_outputs=self._each(grads),
                        **when,
                    )
                ]
            case "node finished":
                return self._node_finished(facts, when)
            case "optimizer":
                place, count, written = facts
                parameters = tuple(TensorId(number) for number in sorted(written))
                name = place.optimizer or "Optimizer"
                source = self._line(place)
                return [
                    OptimizerStepped(
                        optimizer=name, op_count=count, parameters=parameters, source=source, **when
                    )
                ]
            case "exception":
                (text,) = facts
                return [ProblemSeen(kind="exception", text=text, **when)]
            case _:
                raise AssertionError(kind)

    def _node_finished(self, facts: list[Any], when: dict[str, Any]) -> list[Event]:
        number, node, grads, started, after = facts
        finished = NodeFinished(
            pass_id=PassId(number), node=NodeId(node), grad_inputs=self._each(grads), **when
        )
        leaf = self.tape.nodes[node].leaf
        if leaf is None:
            return [finished]
        added, before = started or ((), None)
        for shot in (before, after):
            if shot is not None and leaf in self.tape.tensor_names:
                self.tape.tensor_names.setdefault(
                    shot.number, f"{self.tape.tensor_names[leaf]}.grad"
                )
        accumulated = GradAccumulated(
            pass_id=PassId(number),
            node=NodeId(node),
            leaf=TensorId(leaf),
            before=self._snapshot(before),
            added=self._snapshot(added[0]) if added else None,
            after=self._snapshot(after),
            **when,
        )
        return [accumulated, finished]

    def _exception(
        self, error: str, number: PassId, failed_in: int | None, when: dict[str, Any]
    ) -> ProblemSeen:
        if failed_in is None:
            return ProblemSeen(
                kind="exception", text=f"Backward {number} raised {error}", pass_id=number, **when
            )
        raw = self.tape.nodes[failed_in]
        place = None if raw.made_by is None else self._line(self.tape.ops[raw.made_by].place)
        made = f", made at {place.place}" if place else ""
        text = f"Backward {number} raised in {raw.name}{made}: {error}"
        node = NodeId(failed_in)
        return ProblemSeen(
            kind="exception", text=text, node=node, pass_id=number, source=place, **when
        )

    def _writes(self) -> list[tuple[int, OpId]]:
        """(storage, op) for each in-place call, in order."""
        return [
            (self.storages[storage], OpId(number))
            for number, raw in enumerate(self.tape.ops)
            for storage in raw.storages
            if storage in self.storages
        ]

    def _unmatched(self, nodes: tuple[GradNode, ...]) -> list[tuple[str, str]]:
        found = []
        compiled = [node for node in nodes if node.short_name == "CompiledFunctionBackward"]
        if compiled:
            text = (
                f"A compiled region is one opaque node ({len(compiled)} of them here): its inner calls are not Python's. "
                "To see inside, record the model without torch.compile (the original is model._orig_mod)."
            )
            found.append(("compiled", text))
        unknown = [
            node
            for number, node in enumerate(nodes)
            if node.made_by is None
            and node.leaf is None
            and node.made_in_pass is None
            and node.short_name != "CompiledFunctionBackward"
            and self.tape.nodes[number].defined_at is None
        ]
        if unknown:
            names = ", ".join(dict.fromkeys(node.short_name for node in unknown[:5]))
            text = (
                f"{len(unknown)} nodes ({names}) were made by calls that the recorder could not see: before the block, on another "
                "thread, or in scripted or C++ code. Their gradients are recorded, their source lines are not."
            )
            found.append(("unseen calls", text))
        refused = self.tape.measurer.refused_count
        if refused:
            budget = self.tape.measurer.budget_nbytes
            text = (
                f"The values of {refused} tensors were not kept: the budget of {budget} bytes is used up. "
                "Their norms are here; give record(max_bytes=...) more to keep the values."
            )
            found.append(("budget", text))
        if not self.tape.events:
            found.append(
                (
                    "empty",
                    "No torch call and no backward ran inside the block, so there is nothing to show.",
                )
            )
        return found

    def _sources(self) -> tuple[SourceText, ...]:
        used: dict[CodeType, set[int]] = {}
        for (code, _), line in self.lines.items():
            used.setdefault(code, set()).add(line.line)
        texts = [source_text(code, lines) for code, lines in used.items()]
        return tuple(dict.fromkeys(text for text in texts if text is not None))


def source_line_of_definition(file: str, line: int) -> SourceLine:
    """The line on which a Python Function's backward is defined."""
    code = compile("", file, "exec").replace(co_firstlineno=line)
    return source_line(code, 1 << 20)


def _input_name(op: RawOp, position: tuple[int | str, ...]) -> str | None:
    code, function = op.place.code, op.function
    assert code is not None
    name = getattr(function, "__name__", "")
    if op.is_direct:
        is_method = getattr(torch.Tensor, name, None) is function
        is_reflected = name.startswith("__r") and name != "__rshift__"
        return argument_name(
            code, op.place.instruction, position, is_method=is_method, is_reflected=is_reflected
        )
    if len(op.new_inputs) == 1 or position == (0,):  # `self.fc1(x)` runs `linear(x, weight, bias)`
        return argument_name(code, op.place.instruction, (0,))
    return None


def _name_output(op: RawOp, names: dict[int, str]) -> None:
    if op.outputs and op.outputs[0] not in names and op.place.code is not None:
        name = target_name(op.place.code, op.place.instruction)
        if name is not None:
            names[op.outputs[0]] = name
