"""Say what stands in and behind each box of a drawn graph, whole or at a step."""

from __future__ import annotations

from autograd_lab.recording import OpId, Recording, TensorId
from autograd_lab.replay import PlacedNode

from .box_numbers import bad_amount, leaf_numbers, op_numbers, run_numbers
from .box_state import BoxState, Status
from .numbers import format_number, format_shape
from .rules import formula_lines
from .text_width import first_fitting, fitted
from .turns import Turn, pass_starts, turns_of
from .words import Words, amount, amounts, is_bad

__all__ = ["PADDING", "BoxWords"]

MONO = 7.23
PADDING = 7.0


class BoxWords:
    """The words of the boxes of one drawing."""

    def __init__(self, recording: Recording, state: BoxState) -> None:
        self.recording = recording
        self.state = state
        self.words = Words(recording)

    def maker(self, box: PlacedNode) -> OpId | None:
        """The call that made the node of a box."""
        is_node = box.kind == "node" and len(box.nodes) == 1
        return self.recording.node(box.nodes[0]).made_by if is_node else None

    def labels(self, box: PlacedNode) -> tuple[str, str]:
        """Two lines that fit a box: what it is, and the most telling number known so far."""
        room = box.width - PADDING
        label = next((name for name in self._names(box) if len(name) * MONO <= room), box.label)
        sublabel = first_fitting([*self._numbers(box), box.sublabel], room)
        return label, sublabel or fitted(box.sublabel, room)

    def tip(self, box: PlacedNode) -> str:
        """The tooltip of a box: the whole of what is known, a line each."""
        lines = [self._tip_line(box)]
        if box.lane == 0 and len(box.ops) == 1 and box.kind == "op":
            lines += self._op_lines(box.ops[0])
        elif box.kind in ("leaf", "input") and box.tensors:
            lines += self._tensor_lines(box.tensors[0])
        elif box.kind == "node" and box.nodes:
            lines += self._node_lines(box)
        if self.state.at_step:
            lines.append(self._status_words(box))
        return "\n".join(line for line in lines if line)

    def turns(self) -> list[Turn]:
        """Where each pass starts from."""
        return turns_of(self.state.layout, pass_starts(self.recording, self.state.passes))

    def _names(self, box: PlacedNode) -> list[str]:
        """Choices for the first line, the most telling first."""
        if box.kind in ("leaf", "input") and len(box.tensors) == 1:
            value = amount(self.state.values.get(box.tensors[0]))
            return [f"{box.label} {value}"] if value.startswith("= ") else []
        return []

    def _leaf_of(self, box: PlacedNode) -> TensorId | None:
        return self.recording.node(box.nodes[0]).leaf

    def _numbers(self, box: PlacedNode) -> list[str]:
        """Choices for the second line, the most telling first."""
        if box.kind in ("leaf", "input") and len(box.tensors) == 1:
            return self._tensor_choices(box.tensors[0])
        if box.kind == "op" and len(box.ops) == 1:
            return self._op_choices(box)
        if box.kind == "node" and len(box.nodes) == 1:
            return self._node_choices(box)
        return []

    def _op_choices(self, box: PlacedNode) -> list[str]:
        op_id = box.ops[0]
        outputs = self.recording.op(op_id).outputs
        if not outputs:
            return []
        ref = self.recording.tensor(outputs[0])
        shape = format_shape(ref.shape)
        choices = [f"{ref.name} {shape}", shape] if ref.name else [shape]
        event = self.state.op_events.get(op_id)
        if event is None or not event.outputs:
            return choices
        return [*op_numbers(event.outputs, ref, is_birth=self.state.is_birth(box)), *choices]

    def _tensor_choices(self, tensor: TensorId) -> list[str]:
        ref = self.recording.tensor(tensor)
        shape = format_shape(ref.shape)
        value = self.state.values.get(tensor)
        if value is not None and is_bad(value):
            bad = bad_amount((value,))
            return [f"{shape} holds {bad}", f"holds {bad}", bad]
        if not (ref.is_leaf and ref.requires_grad):
            return [f"{shape} no grad wanted", f"{shape} no grad", shape]
        return [*leaf_numbers(ref, self.state.grads.get(tensor)), shape]

    def _node_choices(self, box: PlacedNode) -> list[str]:
        waiting = self.state.waiting(box)
        if waiting is not None:
            return [f"{waiting[0]} of {waiting[1]} gradients", f"{waiting[0]} of {waiting[1]}"]
        error = self.state.error(box)
        if error is not None:
            return [f"raised {error.partition(':')[0]}", "raised"]
        runs = [run for run in self.state.runs_of(box) if run.step <= self.state.step]
        run = runs[0] if runs else None
        is_leaf = self._leaf_of(box) is not None
        return run_numbers(run, is_leaf=is_leaf, is_birth=self.state.is_birth(box))

    def _tip_line(self, box: PlacedNode) -> str:
        if box.kind == "op" and len(box.ops) == 1:
            return self.words.call(self.recording.op(box.ops[0]))
        if box.kind == "node" and len(box.nodes) == 1:
            node = self.recording.node(box.nodes[0])
            return node.name if node.leaf is None else f"{node.short_name}: {self.words.node(node)}"
        return box.label if not box.sublabel else f"{box.label}, {box.sublabel}"

    def _op_lines(self, op_id: OpId) -> list[str]:
        op = self.recording.op(op_id)
        event = self.state.op_events.get(op_id)
        shapes = ", ".join(format_shape(self.recording.tensor(out).shape) for out in op.outputs)
        norms = amounts(event.outputs) if event else ""
        module = f"module {self.words.module(op.module)}" if op.module is not None else ""
        where = f"{op.source.place}  {op.source.text.strip()}" if op.source else ""
        return [f"returns {shapes}{f', norm {norms}' if norms else ''}", module, where]

    def _tensor_lines(self, tensor: TensorId) -> list[str]:
        ref = self.recording.tensor(tensor)
        value = self.state.values.get(tensor)
        lines = [f"{format_shape(ref.shape)} {ref.dtype}"]
        if value is not None and value.norm is not None:
            lines.append(f"norm {format_number(value.norm)}")
        if not (ref.is_leaf and ref.requires_grad):
            return [*lines, "no gradient wanted"]
        return [*lines, f".grad {amount(self.state.grads.get(tensor))}"]

    def _node_lines(self, box: PlacedNode) -> list[str]:
        node = self.recording.node(box.nodes[0])
        formula = formula_lines(node)
        lines = [f"rule: {line}" for line in ([node.rule] if node.rule else formula)]
        lines += [f"in torch: {line}" for line in formula if node.rule]
        for run in self.state.runs_of(box):
            if run.step <= self.state.step:
                lines.append(f"receives {amounts(run.received)}")
                if run.returned:
                    lines.append(f"returns {amounts(run.returned)}")
        error = self.state.error(box)
        lines += [f"raised {error}"] if error is not None else []
        if node.source is not None:
            lines.append(f"{node.source.place}  {node.source.text.strip()}")
        return lines

    def _status_words(self, box: PlacedNode) -> str:
        words = {
            Status.DONE: "",
            Status.NOW: "running now",
            Status.WAITING: "waits for more gradients",
            Status.READY: "has all its gradients, runs soon",
            Status.FAILED: "",
            Status.LATER: "has not run yet",
        }
        return words[self.state.status(box)]
