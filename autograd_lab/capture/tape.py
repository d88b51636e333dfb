"""The mutable tape that one recorder writes, from which `assemble` makes the Recording.

Everything here is on the user's critical path: plain tuples and lists, no frozen records, no
strings built, nothing worked out that can be worked out later.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from autograd_lab import torch_private

from .places import Place, Places
from .shots import Shots

__all__ = [
    "MASKING",
    "SAME_ELEMENTS",
    "RawNode",
    "RawOp",
    "RawSlot",
    "Rows",
    "SlotFields",
    "Tape",
    "ThreadState",
    "in_one_line",
]

SAME_ELEMENTS = frozenset(
    f"{name}Backward0"
    for name in (
        "Alias",
        "Permute",
        "ReshapeAlias",
        "Squeeze",
        "T",
        "Transpose",
        "UnsafeView",
        "Unsqueeze",
        "View",
    )
)
"""Nodes of calls whose output has exactly the input's elements, and so has the gradient."""


MASKING = frozenset(
    {
        "fill_",
        "full",
        "full_like",
        "masked_fill",
        "masked_fill_",
        "tril",
        "tril_",
        "triu",
        "triu_",
        "where",
    }
)
"""Calls that put Inf into a tensor on purpose; a NaN that comes of it is met one call later."""


class RawOp(NamedTuple):
    """One forward call; tensors are rows of the tape's shots.

    first_node, end_node  the sequence numbers that it used
    last_node             number and name of its first output's grad_fn, to check a match by number
    is_direct             the user's own line called it, not a function of torch
    new_inputs            rows met first as its inputs, and where they stood among the arguments
    storages              addresses of what it wrote in place
    """

    function: Any
    place: Place
    inputs: Sequence[int]
    outputs: Sequence[int]
    thread: int
    first_node: int
    end_node: int
    last_node: tuple[int, str] | None
    is_inplace: bool
    is_direct: bool
    new_inputs: Sequence[tuple[int, tuple[int | str, ...]]]
    storages: Sequence[int]


class RawSlot(NamedTuple):
    """One saved tensor of a node."""

    name: str
    shape: tuple[int, ...] | None = None
    dtype: torch.dtype | None = None
    version: int | None = None
    nbytes: int = 0
    storage: int | None = None
    tensor: int | None = None
    packed_by: str | None = None
    problem: str | None = None


SlotFields = tuple[Any, ...]
"""RawSlot's fields: a plain tuple is quicker to make."""

Rows = int | None | tuple[int | None, ...]
"""Rows of a node's gradients; a single one stands alone, None is no gradient."""


class RawNode:
    """One grad_fn, whose attributes are set only where they differ.

    edges     None until its graph was walked, then node, input, node, input, ...: -1 for no edge
    made_by   the call that marked it
    in_pass   the last pass that met it, in thread `thread`
    is_open   something else can happen while it runs
    made_in   the pass and node that made it
    """

    sequence_number = -1
    leaf: int | None = None
    edges: Sequence[int] | None = None
    saved: Sequence[SlotFields] = ()
    made_by: int | None = None
    in_pass = 0
    thread = 0
    is_open = False
    made_in: tuple[int, int] | None = None
    defined_at: tuple[str, int] | None = None

    def __init__(self, name: str) -> None:
        self.name = name


class ThreadState:
    """What is open in one thread: nodes that started, engine calls that run."""

    __slots__ = ("index", "open_nodes", "passes")

    def __init__(self, index: int) -> None:
        self.index = index
        self.open_nodes: list[int] = []
        self.passes: list[Any] = []

    @property
    def inside(self) -> int | None:
        """The innermost open node."""
        return self.open_nodes[-1] if self.open_nodes else None


_numbers = itertools.count()


class Tape:
    """Events as (kind, thread, inside, *facts), in order; ids are positions in the lists."""

    def __init__(self, values: str, budget_nbytes: int) -> None:
        self.shots = Shots(values, budget_nbytes)
        self.places = Places()
        self.events: list[tuple[Any, ...]] = []
        self.ops: list[tuple[Any, ...]] = []  # RawOp's fields, the place as Place's
        self.nodes: list[RawNode] = []
        self.tensor_names: dict[int, str] = {}  # by the tensor's first row
        self.parameters: list[int] = []  # rows that are measured only where NaN or Inf turned up
        self.parameter_shots: list[int] = []
        self.accumulators: dict[int, int] = {}
        self.by_sequence: dict[tuple[int, int], int] = {}  # nodes by thread and sequence number
        self.refused: list[
            tuple[int, int, str, str]
        ] = []  # pass, node, slot of a node met again, why
        self.made_in: dict[tuple[int, int], tuple[int, int]] = {}  # likewise
        number = next(_numbers)  # never an address: nodes keep the keys, and addresses come again
        self.node_key, self.op_key = f"autograd_lab.node.{number}", f"autograd_lab.op.{number}"
        self.mark_count = 0  # nodes that have `op_key`
        self.not_seen: dict[str, str] = {}
        self.pass_count = 0
        self.has_retained = False
        self._grads: dict[int, tuple[int, int]] = {}
        self._grads_of_pass = 0
        self.is_over = False
        self._thread_numbers = itertools.count()
        self._local = threading.local()
        self.thread()

    def thread(self) -> ThreadState:
        """The state of the calling thread; the recording thread is number 0."""
        try:
            return self._local.state
        except AttributeError:
            state = self._local.state = ThreadState(next(self._thread_numbers))
            return state

    def mark(self, node: Any, op: int) -> None:  # noqa: ANN401 (a C++ class)
        """Write on a node which call made it."""
        self.mark_count += self.op_key not in node.metadata
        node.metadata[self.op_key] = op

    def meet_parameters(self) -> None:
        """Name the parameters and buffers of the modules that were met.

        Unused parameters are in the recording too, unused buffers are not.
        """
        for name, parameter in self.places.named_parameters():
            row = self.shots.identify(parameter)
            self.tensor_names.setdefault(self.shots.origin(row), name)
        for name, buffer in self.places.named_buffers():
            row = self.shots.find(buffer)
            if row is not None:
                self.tensor_names.setdefault(self.shots.origin(row), name)

    def recognise_grad(self, tensor: torch.Tensor) -> None:
        """Notice that the program reads the `.grad` that a backward wrote.

        Torch hands out another Python object for it than the hook of the leaf saw.
        """
        if not tensor.is_leaf or tensor.requires_grad:
            return
        if self._grads_of_pass != self.pass_count:
            self._grads_of_pass, self._grads = self.pass_count, self._find_grads()
        row, leaf = self._grads.get(id(tensor), (0, None))
        variable = None if leaf is None else self.shots.tensor(leaf)
        if variable is not None and variable.grad is tensor:
            self.shots.recognise(tensor, row)

    def _find_grads(self) -> dict[int, tuple[int, int]]:
        """The row of each leaf's `.grad` after the last pass, and the leaf's, by id."""
        found: dict[int, tuple[int, int]] = {}
        for kind, _, _, *facts in self.events:
            if kind in ("accumulated", "node finished") and facts[-1] is not None:
                leaf = self.nodes[facts[1]].leaf
                variable = None if leaf is None else self.shots.tensor(leaf)
                if leaf is not None and variable is not None and variable.grad is not None:
                    found[id(variable.grad)] = facts[-1], leaf
        return found

    def raw_ops(self) -> list[RawOp]:
        """The calls by the names of their fields."""
        return [RawOp(function, Place(*place), *facts) for function, place, *facts in self.ops]

    def _masked(self) -> set[int]:
        """Rows in which Inf stands on purpose: what `masked_fill(-inf)` and its like returned."""
        masked: set[int] = set()
        for op in self.raw_ops() if self.shots.measures.bad_rows else ():
            if getattr(op.function, "__name__", "") in MASKING:
                masked.update(op.outputs)
        return masked

    def failed(self, error: Exception) -> None:
        """Our own code failed: the user's program goes on, and the recording says so."""
        if self.is_over:
            return  # another thread was still in a hook when the block ended
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        place = f"{where.tb_frame.f_code.co_name}, line {where.tb_lineno}" if where else "unknown"
        self.not_seen["recorder failed"] = (
            f"The recorder itself failed with {type(error).__name__}: {error} ({place}); what it "
            "was looking at is missing. Please report it."
        )

    def finish(self) -> None:
        """Measure what is pending, when the block has ended."""
        if self.places.has_scripted:
            self.not_seen["scripted"] = (
                "The model holds scripted modules: TorchScript runs their calls in C++, so their "
                "forward is not seen. Record the eager module to see inside."
            )
        try:
            with torch_private.unseen():
                self.meet_parameters()
                self.shots.finish()
                if not set(self.shots.measures.bad_rows) <= self._masked():
                    self.parameter_shots = self.shots.measure_unchanged(self.parameters)
            self.shots.finish()
        except Exception as error:
            self.failed(error)
        if self.shots.measures.fault is not None:
            self.failed(self.shots.measures.fault)

    def forget(self) -> None:
        """Let go of everything that belongs to the user's program; may be called again."""
        self.is_over = True
        self.shots.forget()
        self.places.forget()


def in_one_line(error: BaseException) -> str:
    """Type and first line of an exception, also of one whose text can't be had."""
    try:
        text = str(error)
    except Exception:
        text = "(its text can't be had)"
    return f"{type(error).__name__}: {text.partition(chr(10))[0]}"
