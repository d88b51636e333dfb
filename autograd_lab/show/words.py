"""Turn ids into the words a reader knows: variable names, calls as written, `W1.grad +=`."""

from __future__ import annotations

from autograd_lab.recording import (
    GradNode,
    NodeId,
    Op,
    OpCalled,
    OpId,
    Recording,
    Snapshot,
    TensorId,
)

from .numbers import format_number, format_shape

__all__ = ["HIDDEN", "PLAIN", "Words", "amount", "amounts", "is_bad"]

HIDDEN = "?"  # the note of a value that is not shown yet
PLAIN = "float32"  # the dtype that goes without saying


class Words:
    """The words for one recording's tensors, calls and nodes.

    An unnamed tensor is called by the step that made it: `#3` is what the call of step 3 returned.
    Step i is frame i of the recording, right after its event i - 1.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.call_steps: dict[OpId, int] = {
            event.op: step
            for step, event in enumerate(recording.events, 1)
            if isinstance(event, OpCalled)
        }
        self._makers: dict[TensorId, Op] = {}
        for op in recording.ops:
            for tensor in op.outputs:
                self._makers.setdefault(tensor, op)

    def tensor(self, tensor_id: TensorId | None) -> str:
        """A tensor's name, or `#3` for an output of the call of step 3, or its shape."""
        if tensor_id is None:
            return "?"
        ref = self.recording.tensor(tensor_id)
        if ref.name:
            return ref.name
        maker = self._makers.get(tensor_id)
        if maker is not None and maker.id in self.call_steps:
            which = f".{maker.outputs.index(tensor_id)}" if len(maker.outputs) > 1 else ""
            return f"#{self.call_steps[maker.id]}{which}"
        return f"{'leaf' if ref.is_leaf and ref.requires_grad else 'data'}{format_shape(ref.shape)}"

    def call(self, op: Op) -> str:
        """A forward call much as it was written: `h = linear(x, W1, b1)`.

        Parameters of the module that runs are named as seen from it: `weight`.
        """
        names = [self.recording.tensor(tensor).name for tensor in op.outputs]
        made = (
            ""
            if op.is_inplace or not any(names)
            else f"{', '.join(name or '_' for name in names)} = "
        )
        own = f"{op.module}." if op.module else ""
        inputs = [self.tensor(tensor).removeprefix(own) for tensor in op.inputs[:6]]
        more = [f"+{len(op.inputs) - 6} more"] if len(op.inputs) > 6 else []
        return f"{made}{op.name}({', '.join([*inputs, *more])})"

    def maker(self, op_id: OpId) -> str:
        """A call by its step and name, "#7 sum"; its name alone where it has no step."""
        step = self.call_steps.get(op_id)
        name = self.recording.op(op_id).name
        return name if step is None else f"#{step} {name}"

    def node(self, node: GradNode) -> str:
        """A backward node: torch's name, or `W1.grad +=` where it accumulates into a leaf."""
        return f"{self.tensor(node.leaf)}.grad +=" if node.leaf is not None else node.short_name

    def node_of(self, node_id: NodeId) -> str:
        """The words for the node with this id."""
        return self.node(self.recording.node(node_id))

    def dtypes(self, snapshots: tuple[Snapshot | None, ...]) -> str:
        """The dtypes of some tensors, each once; float32 alone needs no word."""
        known = (snapshot for snapshot in snapshots if snapshot is not None)
        found = list(dict.fromkeys(self.recording.tensor(one.tensor).dtype for one in known))
        return "" if found == [PLAIN] else ", ".join(found)

    def module(self, path: str | None) -> str:
        """A module path; the root module is called "(model)"; outside modules there is no word."""
        return "" if path is None else path or "(model)"


def amount(snapshot: Snapshot | None) -> str:
    """How large a tensor was: its norm, or `= value` for one element; "none" for no tensor."""
    if snapshot is None:
        return "none"
    if snapshot.norm is None:
        return snapshot.note or "no norm"
    if snapshot.numel == 0:
        return "empty"
    values = snapshot.values
    if snapshot.numel == 1 and values is not None and values.sampled_from is None:
        return f"= {format_number(values.array.reshape(-1)[0].item())}"
    return format_number(snapshot.norm)


def amounts(snapshots: tuple[Snapshot | None, ...], limit: int = 4) -> str:
    """`amount` of each, separated by commas; at most `limit` of them."""
    more = [f"{len(snapshots) - limit} more"] if len(snapshots) > limit else []
    return ", ".join([*(amount(snapshot) for snapshot in snapshots[:limit]), *more])


def is_bad(snapshot: Snapshot | None) -> bool:
    """Some element is NaN or Inf."""
    return snapshot is not None and snapshot.finite is False
