"""The nouns for the graph: nodes, their edges and saved tensors, and the calls that made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

from .record import Record
from .tensors import TensorId

__all__ = [
    "Edge",
    "GradNode",
    "NodeId",
    "Op",
    "OpId",
    "PassId",
    "SavedSlot",
    "SourceLine",
    "SourceText",
]

NodeId = NewType("NodeId", int)
OpId = NewType("OpId", int)
PassId = NewType("PassId", int)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceLine(Record):
    """One line of the user's program.

    file  relative to the working directory, or "In[3]" for a notebook cell
    """

    file: str
    line: int
    function: str = "<module>"
    text: str = ""

    @property
    def place(self) -> str:
        """The place as people write it: `model.py:14` or `In[3] line 7`."""
        is_cell = self.file.startswith("In[")
        return f"{self.file} line {self.line}" if is_cell else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceText(Record):
    """A stretch of source around recorded lines: one function, or one notebook cell."""

    file: str
    function: str
    first_line: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edge(Record):
    """Where a grad_input goes: a node and its input number, as in torch's `next_functions`."""

    node: NodeId
    input: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SavedSlot(Record):
    """One tensor that a node keeps for backward.

    name       torch's slot without `_saved_` ("self", "mat2", "result"); "saved[0]" for a Python
               Function
    shape, dtype, version, nbytes
               of the saved tensor when backward started; None where unknown (nbytes 0)
    storage    number of the storage within the recording: equal numbers share memory
    tensor     the saved tensor, where the recorder met it
    packed_by  name of the pack hook's function where one was on; such a slot is left alone
    problem    what reading it would raise ("modified in place: saved at version 0, now 1"), or None
    """

    name: str
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    version: int | None = None
    nbytes: int = 0
    storage: int | None = None
    tensor: TensorId | None = None
    packed_by: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Op(Record):
    """One forward call as the user's program made it (the outermost one: `nn.LSTM` is one `lstm`).

    name         the function's name: "linear", "matmul", "relu_"
    qualname     where it lives: "torch.nn.functional.linear"
    inputs       tensors among its arguments, in order, nested ones included
    outputs      tensors it returned
    nodes        autograd nodes it made, as far as a recorded backward met them
    node_count   how many it made; 0 under no_grad and where nothing required a gradient
    module       path of the innermost module that was running; "" for the root, None for none
    module_type  that module's class name
    module_call  number of that module's call within the recording, from 1
    source       the user's line
    is_inplace   it wrote into one of its inputs
    recomputed   run again by activation checkpointing
    """

    id: OpId
    name: str
    qualname: str
    inputs: tuple[TensorId, ...] = ()
    outputs: tuple[TensorId, ...] = ()
    nodes: tuple[NodeId, ...] = ()
    node_count: int = 0
    module: str | None = None
    module_type: str | None = None
    module_call: int | None = None
    source: SourceLine | None = None
    is_inplace: bool = False
    recomputed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradNode(Record):
    """The record of one `grad_fn`.

    name          torch's name: "AddmmBackward0", "torch::autograd::AccumulateGrad"
    edges         one per grad_input, None where no gradient is wanted
    saved         what it keeps for backward
    leaf          the tensor whose `.grad` it accumulates into (AccumulateGrad only)
    made_by       the forward call that made it, or None (unknown, or made inside a Python Function)
    made_in_pass  the backward pass that made it (create_graph), None for the forward
    made_in_node  the node whose backward made it, None for the forward
    module, source  of the call that made it
    formula       torch's own, one line per input ("self: grad * result"); for a Python Function
                  where its backward is defined; None where none is known
    rule          the same as people write it, in one line ("da = g @ b.T, db = a.T @ g"), for the
                  common nodes; else None
    """

    id: NodeId
    name: str
    edges: tuple[Edge | None, ...] = ()
    saved: tuple[SavedSlot, ...] = ()
    leaf: TensorId | None = None
    made_by: OpId | None = None
    made_in_pass: PassId | None = None
    made_in_node: NodeId | None = None
    module: str | None = None
    source: SourceLine | None = None
    formula: str | None = None
    rule: str | None = None

    @property
    def short_name(self) -> str:
        """The name without its namespace: "AccumulateGrad"."""
        return self.name.rpartition("::")[2]

    @property
    def saved_nbytes(self) -> int:
        """Bytes of all saved tensors, counted once per storage within this node."""
        by_storage = {
            (slot.storage, slot.name if slot.storage is None else ""): slot.nbytes
            for slot in self.saved
        }
        return sum(by_storage.values())
