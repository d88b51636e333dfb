"""The mutable tape that one recorder writes while the user's program runs; `assemble` turns it into a Recording.

Everything here is on the user's critical path: plain tuples and slots, no frozen records, no strings built.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, field
from typing import Any

import torch

from autograd_lab import torch_private

from .measuring import Measurer, Shot
from .places import Place, Places

__all__ = ["RawNode", "RawOp", "RawSlot", "Tape", "ThreadState"]


@dataclass(slots=True)
class RawOp:
    """One forward call; `last_node` is (sequence number, name) of its first output's grad_fn, to check a match by number."""

    function: Any
    place: Place
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    is_inplace: bool
    is_direct: bool
    last_node: tuple[int, str] | None
    nodes: list[int] = field(default_factory=list)
    new_inputs: tuple[tuple[int, tuple[int | str, ...]], ...] = ()
    storages: tuple[int, ...] = ()


@dataclass(slots=True)
class RawSlot:
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


@dataclass(slots=True)
class RawNode:
    """One grad_fn."""

    name: str
    edges: tuple[tuple[int, int] | None, ...] = ()
    saved: list[RawSlot] = field(default_factory=list)
    leaf: int | None = None
    made_by: int | None = None
    made_in: tuple[int, int] | None = None
    defined_at: tuple[str, int] | None = None


@dataclass(slots=True)
class ThreadState:
    """What is open in one thread: nodes that started, engine calls that run."""

    index: int
    open_nodes: list[int] = field(default_factory=list)
    passes: list[Any] = field(default_factory=list)

    @property
    def inside(self) -> int | None:
        """The innermost open node."""
        return self.open_nodes[-1] if self.open_nodes else None


class Known:
    """A tensor that was met, by weak reference; `shot` is its last snapshot."""

    __slots__ = ("number", "ref", "shot")

    def __init__(self, ref: weakref.ref[torch.Tensor], number: int) -> None:
        self.ref = ref
        self.number = number
        self.shot: Shot | None = None


class Tape:
    """Events as (kind, thread, inside, *facts), in order; ids are positions in the lists."""

    def __init__(self, values: str, budget_nbytes: int) -> None:
        self.measurer = Measurer(values, budget_nbytes)
        self.places = Places()
        self.events: list[tuple[Any, ...]] = []
        self.ops: list[RawOp] = []
        self.nodes: list[RawNode] = []
        self.tensors: list[tuple[Any, ...]] = []
        self.tensor_names: dict[int, str] = {}
        self.accumulators: dict[int, int] = {}
        self.made_by: dict[int, int] = {}
        self.made_in: dict[int, tuple[int, int]] = {}
        self.not_seen: dict[str, str] = {}
        self.pass_count = 0
        self.has_retained = False
        self.main_thread = threading.get_ident()
        self.measured: set[int] = set()  # forward tensors whose value is on the tape
        self._threads: dict[int, ThreadState] = {}
        self._known: dict[int, Known] = {}

    def thread(self) -> ThreadState:
        """The state of the calling thread."""
        ident = threading.get_ident()
        state = self._threads.get(ident)
        if state is None:
            state = self._threads.setdefault(ident, ThreadState(len(self._threads)))
        return state

    def identify(self, tensor: torch.Tensor) -> int:
        """The id of a tensor, new at the first meeting. The caller has switched off torch functions."""
        known = self._known.get(id(tensor))
        return known.number if known is not None and known.ref() is tensor else self._meet(tensor).number

    def find(self, tensor: torch.Tensor) -> int | None:
        """The id of a tensor that was met before."""
        known = self._known.get(id(tensor))
        return known.number if known is not None and known.ref() is tensor else None

    def shoot(self, tensor: torch.Tensor) -> Shot:
        """Take a snapshot; an unchanged version is measured once. The caller has switched off torch functions."""
        known = self._known.get(id(tensor))
        if known is None or known.ref() is not tensor:
            known = self._meet(tensor)
        version = None if tensor.is_inference() else tensor._version
        shot = known.shot
        if shot is None or shot.version != version or version is None:
            known.shot = shot = Shot(known.number, version)
            self.measurer.take(tensor, shot)
        return shot

    def _meet(self, tensor: torch.Tensor) -> Known:
        number = len(self.tensors)
        is_parameter = type(tensor) is not torch.Tensor and isinstance(tensor, torch.nn.Parameter)
        self.tensors.append(
            (tensor.shape, tensor.dtype, tensor.device, tensor.is_leaf, tensor.requires_grad, is_parameter)
        )
        known = self._known[id(tensor)] = Known(weakref.ref(tensor), number)
        return known

    def failed(self, error: Exception) -> None:
        """Our own code failed: the user's program goes on, and the recording says so."""
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        place = f"{where.tb_frame.f_code.co_name}, line {where.tb_lineno}" if where else "unknown place"
        self.not_seen["recorder failed"] = (
            f"The recorder itself failed with {type(error).__name__}: {error} ({place}); what it was looking at is missing. "
            "Please report it."
        )

    def let_go(self) -> None:
        """Forget everything that belongs to the user's program."""
        self.places.forget()
        self._known.clear()
        self._threads.clear()
        with torch_private.without_torch_function():
            self.measurer.finish()
