"""The nouns for what happened, in order: every event is in the past tense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .graph import NodeId, OpId, PassId, SourceLine
from .record import Record
from .tensors import Snapshot, TensorId

__all__ = [
    "BackwardFinished",
    "BackwardStarted",
    "Event",
    "GradAccumulated",
    "NodeFinished",
    "NodeStarted",
    "NotSeen",
    "OpCalled",
    "OptimizerStepped",
    "ProblemSeen",
    "Scope",
]


if TYPE_CHECKING:
    ProblemKind = Literal[
        "non-finite forward",
        "non-finite backward",
        "saved tensor modified",
        "saved tensor freed",
        "exception",
    ]
else:  # files are read by these hints, and a newer one may know more kinds
    ProblemKind = str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scope(Record):
    """Which part of a larger run an event belongs to."""

    module: str | None = None
    stage: int | None = None
    microbatch: int | None = None
    action: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Happened(Record):
    """What all events have.

    thread  counts from 0, the recording thread
    inside  the innermost open node of that thread
    """

    scope: Scope | None = None
    thread: int = 0
    inside: NodeId | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpCalled(_Happened):
    """A forward call returned.

    outputs  what it returned
    inputs   only those tensors among its inputs that the recording had not met before (leaves,
             data)
    """

    op: OpId
    outputs: tuple[Snapshot, ...] = ()
    inputs: tuple[Snapshot, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BackwardStarted(_Happened):
    """The engine was called: pass numbers count from 1.

    roots         nodes it starts from
    grad_outputs  one per root; None where torch makes the implicit 1.0
    accumulates   it writes into `.grad` (Tensor.backward); False for autograd.grad
    """

    pass_id: PassId
    roots: tuple[NodeId, ...] = ()
    grad_outputs: tuple[Snapshot | None, ...] = ()
    accumulates: bool = True
    retain_graph: bool = False
    create_graph: bool = False
    source: SourceLine | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BackwardFinished(_Happened):
    """The engine returned; `error` is "RuntimeError: first line" when it raised."""

    pass_id: PassId
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeStarted(_Happened):
    """A node received its grad_outputs; None for an output that got no gradient."""

    pass_id: PassId
    node: NodeId
    grad_outputs: tuple[Snapshot | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeFinished(_Happened):
    """A node returned its grad_inputs, one per edge; None where no gradient is wanted."""

    pass_id: PassId
    node: NodeId
    grad_inputs: tuple[Snapshot | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradAccumulated(_Happened):
    """A leaf's `.grad` gained a gradient: `after` = `before` + `added`; None where it was None."""

    pass_id: PassId
    node: NodeId
    leaf: TensorId
    before: Snapshot | None = None
    added: Snapshot | None = None
    after: Snapshot | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptimizerStepped(_Happened):
    """An optimizer's step, folded into one event: `op_count` torch calls wrote `parameters`."""

    optimizer: str
    op_count: int
    parameters: tuple[TensorId, ...] = ()
    source: SourceLine | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProblemSeen(_Happened):
    """Something the user should know.

    kind    "non-finite forward"     a call made the first NaN or Inf
            "non-finite backward"    a node, a hook or a `.grad` from before did, in one pass
            "saved tensor modified"  a node needs what was written in place since
            "saved tensor freed"     a node needs what an earlier backward let go
            "exception"              a backward raised, or the block ended with an error
    text    what happened, where, and which inputs were bad, in one or two sentences
    """

    kind: ProblemKind
    text: str
    op: OpId | None = None
    node: NodeId | None = None
    pass_id: PassId | None = None
    source: SourceLine | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NotSeen(_Happened):
    """What the recorder knows it could not see, and why.

    reason  a stable word
    text    a sentence
    """

    reason: str
    text: str


Event = (
    OpCalled
    | BackwardStarted
    | BackwardFinished
    | NodeStarted
    | NodeFinished
    | GradAccumulated
    | OptimizerStepped
    | ProblemSeen
    | NotSeen
)
