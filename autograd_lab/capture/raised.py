"""Turn an exception into words: where it was raised, and what to do about it."""

from __future__ import annotations

import ast
from dataclasses import replace

from autograd_lab.recording import BackwardStarted, Op, OpCalled, PassId, ProblemSeen, TensorId

from .cures import cure_of_error
from .wording import Wording

__all__ = ["Raised"]

_NO_GRAD = "does not require grad and does not have a grad_fn"
_DETACHES = ("data", "detach", "detach_")


class Raised:
    """What was called so far, to say where an exception came from.

    errors  what each pass raised
    """

    def __init__(self, wording: Wording, errors: dict[PassId, str]) -> None:
        self.wording, self.errors = wording, errors
        self.called: list[Op] = []
        self.makers: dict[TensorId, Op] = {}
        self.started: dict[PassId, BackwardStarted] = {}

    def after_op(self, event: OpCalled) -> None:
        """Remember a call."""
        op = self.wording.ops[event.op]
        self.called.append(op)
        self.makers.update(dict.fromkeys(op.outputs, op))

    def after_backward_started(self, event: BackwardStarted) -> None:
        """Remember who called backward."""
        self.started[event.pass_id] = event

    def in_words(self, event: ProblemSeen) -> ProblemSeen:
        """The exception with the node or call where it happened, its line, and a cure."""
        if event.pass_id is None:
            return self._of_block(event)
        error = self.errors.get(event.pass_id, "")
        started = self.started.get(event.pass_id)
        node = None if event.node is None else self.wording.nodes[event.node]
        where = f" in {self.wording.node(node)}" if node else ""
        if event.source is not None:
            where = f"{where} at {event.source.place}"
        line = event.source or (node.source if node else None)
        if line is None and started is not None:
            line = started.source
        cure = self._cut(started) if _NO_GRAD in error else cure_of_error(error)
        text = f"Backward {event.pass_id} raised{where}{':' if where else ''} {error}"
        return replace(event, text=f"{text}. {cure}" if cure else text, source=line)

    def _of_block(self, event: ProblemSeen) -> ProblemSeen:
        at = f", at {event.source.place}" if event.source else ""
        parts = [f"{event.text}{at}"]
        if self.called:
            parts.append(f"The last call that returned: {self.wording.call(self.called[-1])}")
        if cure := cure_of_error(event.text):
            parts.append(cure.rstrip("."))
        return replace(event, text=f"{'. '.join(parts)}." if len(parts) > 1 else event.text)

    def _cut(self, started: BackwardStarted | None) -> str:
        """Which call cut a loss off from what requires a gradient; "" where none was recorded."""
        loss = self._loss(started)
        if loss is None:
            return ""
        stack, seen = [loss], {loss.id}
        while stack:
            op = stack.pop()
            makers = [self.makers[tensor] for tensor in op.inputs if tensor in self.makers]
            if any(self.wording.tensors[tensor].requires_grad for tensor in op.inputs):
                return self._cut_by(op)
            for maker in makers:
                if maker.id not in seen:
                    seen.add(maker.id)
                    stack.append(maker)
        return (
            "Nothing that it was computed from requires a gradient: set requires_grad on a leaf "
            "before the forward."
        )

    def _cut_by(self, op: Op) -> str:
        call = self.wording.call(op)
        if op.name in _DETACHES:
            return f"{call} cut the loss off from its graph: leave it out."
        dtype = self.wording.tensors[op.outputs[0]].dtype if op.outputs else ""
        if "float" not in dtype and "complex" not in dtype:
            return f"{call} cut the loss off from its graph: it has no derivative."
        return (
            f"{call} cut the loss off from its graph, as calls under no_grad do: move it out of "
            "there."
        )

    def _loss(self, started: BackwardStarted | None) -> Op | None:
        """The call that made what backward was called on, else the last call of all."""
        name = _called_on(started.source.text) if started and started.source else None
        named = [
            op
            for op in self.called
            if any(name and self.wording.tensors[tensor].name == name for tensor in op.outputs)
        ]
        return (named or self.called or [None])[-1]


def _called_on(text: str) -> str | None:
    """The variable in a line such as `loss.backward()`."""
    try:
        tree = ast.parse(text.strip())
    except SyntaxError:
        return None
    for call in ast.walk(tree):
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="backward")):
                return name
            case _:
                pass
    return None
