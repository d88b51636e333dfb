"""The mutable tape that one recorder writes while the user's program runs; `assemble` turns it
into a Recording.

Everything here is on the user's critical path: plain tuples and slots, no frozen records, no
strings built.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import ref

import torch

from autograd_lab import torch_private

from .measuring import Extra, Measurer, Shot
from .places import Place, Places

__all__ = ["SAME_ELEMENTS", "RawNode", "RawOp", "RawSlot", "Tape", "ThreadState"]


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


class RawOp:
    """One forward call; `last_node` is (sequence number, name) of its first output's grad_fn, to
    check a match by number.
    """

    __slots__ = (
        "function", "inputs", "is_direct", "is_inplace", "last_node", "new_inputs", "nodes", "outputs", "place", "storages"
    )  # fmt: skip

    def __init__(
        self,
        function: Any,
        place: Place,
        inputs: Sequence[int],
        outputs: Sequence[int],
        is_inplace: bool,
        is_direct: bool,
        last_node: tuple[int, str] | None,
        new_inputs: Sequence[tuple[int, tuple[int | str, ...]]],
        storages: Sequence[int],
    ) -> None:
        self.function = function
        self.place = place
        self.inputs = inputs
        self.outputs = outputs
        self.is_inplace = is_inplace
        self.is_direct = is_direct
        self.last_node = last_node
        self.new_inputs = new_inputs
        self.storages = storages
        self.nodes: list[int] = []


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


class RawNode:
    """One grad_fn; `edges` is None until its graph was walked."""

    __slots__ = ("defined_at", "edges", "leaf", "made_by", "made_in", "name", "saved")

    def __init__(self, name: str, leaf: int | None = None) -> None:
        self.name = name
        self.leaf = leaf
        self.edges: list[tuple[int, int] | None] | None = None
        self.saved: list[RawSlot] = []
        self.made_by: int | None = None
        self.made_in: tuple[int, int] | None = None
        self.defined_at: tuple[str, int] | None = None


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
        self._threads: dict[int, ThreadState] = {}
        self.parameter_shots: dict[int, Shot] = {}
        self._parameters: list[Shot] = []
        self._known: dict[
            int, Shot
        ] = {}  # the last shot of each tensor, by the address of its object

    def thread(self) -> ThreadState:
        """The state of the calling thread."""
        ident = threading.get_ident()
        state = self._threads.get(ident)
        if state is None:
            state = self._threads.setdefault(ident, ThreadState(len(self._threads)))
        return state

    def identify(self, tensor: torch.Tensor) -> int:
        """The id of a tensor, new at the first meeting. The caller has switched off torch
        functions.
        """
        known = self._known.get(id(tensor))
        if known is None or known.ref() is not tensor:
            known = self._meet(tensor)
        return known.number

    def find(self, tensor: torch.Tensor) -> int | None:
        """The id of a tensor that was met before."""
        known = self._known.get(id(tensor))
        return known.number if known is not None and known.ref() is tensor else None

    def shoot(self, tensor: torch.Tensor) -> Shot:
        """Take a snapshot; an unchanged version is measured once. The caller has switched off
        torch functions and modes.
        """
        shot = self._known.get(id(tensor))
        if shot is None or shot.ref() is not tensor:
            shot = self._meet(tensor)
        elif shot.is_taken and shot.version is not None and shot.version == tensor._version:
            return shot
        elif shot.is_taken:
            shot = self._known[id(tensor)] = Shot(shot.ref, shot.number, _version(tensor))
        else:
            shot.version = _version(tensor)
        shot.is_taken = True
        self.measurer.take(tensor, shot)
        return shot

    def share(self, tensor: torch.Tensor, source: Shot) -> Shot:
        """Take a snapshot of a tensor that has the elements of another in another shape: only
        `values="none"` can share.
        """
        shot = self._known.get(id(tensor))
        if (
            shot is not None
            and shot.ref() is tensor
            and shot.is_taken
            and shot.version == _version(tensor)
        ):
            return shot
        if shot is None or shot.ref() is not tensor:
            shot = self._meet(tensor)
        else:
            shot = self._known[id(tensor)] = Shot(shot.ref, shot.number, _version(tensor))
        shot.is_taken = True
        shot.extra = Extra(same_as=source)
        return shot

    def last_shot(self, tensor: torch.Tensor) -> Shot | None:
        """The snapshot of a tensor as it is now, if there is one."""
        shot = self._known.get(id(tensor))
        is_current = (
            shot is not None
            and shot.ref() is tensor
            and shot.is_taken
            and shot.version == _version(tensor)
        )
        return shot if is_current else None

    def meet_input(self, tensor: torch.Tensor) -> tuple[int, Shot | None]:
        """The id of a call's input, and a snapshot if no value of it is on the tape yet."""
        known = self._known.get(id(tensor))
        if known is not None and known.is_taken and known.ref() is tensor:
            return known.number, None
        if self.measurer.values == "none" and type(tensor) is torch.nn.Parameter:
            return self._meet_parameter(tensor), None
        shot = self.shoot(tensor)
        return shot.number, shot

    def _meet(self, tensor: torch.Tensor) -> Shot:
        shot = self._known[id(tensor)] = Shot(ref(tensor), len(self.tensors), _version(tensor))
        is_parameter = type(tensor) is not torch.Tensor and isinstance(tensor, torch.nn.Parameter)
        self.tensors.append(
            (
                tensor.shape,
                tensor.dtype,
                tensor.device,
                tensor.is_leaf,
                tensor.requires_grad,
                is_parameter,
            )
        )
        return shot

    def meet_parameters(self, named: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Give a model's parameters their names."""
        for name, parameter in named:
            self.tensor_names.setdefault(self._meet_parameter(parameter), name)

    def _meet_parameter(self, parameter: torch.Tensor) -> int:
        """Parameters are measured only where NaN or Inf turned up: their values are no outputs of
        the recorded calls.
        """
        number = self.find(parameter)
        if number is not None:
            return number
        shot = self._meet(parameter)
        self._parameters.append(shot)
        return shot.number

    def _measure_parameters(self) -> None:
        """To say which inputs were bad: those that are still what they were when they were met."""
        for shot in self._parameters:
            parameter = shot.ref()
            if parameter is not None and parameter._version == shot.version:
                self.parameter_shots[shot.number] = self.shoot(parameter)

    def failed(self, error: Exception) -> None:
        """Our own code failed: the user's program goes on, and the recording says so."""
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        place = (
            f"{where.tb_frame.f_code.co_name}, line {where.tb_lineno}" if where else "unknown place"
        )
        self.not_seen["recorder failed"] = (
            f"The recorder itself failed with {type(error).__name__}: {error} ({place}); what it was looking at is missing. "
            "Please report it."
        )

    def let_go(self) -> None:
        """Forget everything that belongs to the user's program."""
        with torch_private.unseen():
            self.measurer.flush()
            if self.measurer.saw_bad:
                self._measure_parameters()
            self.measurer.finish()
        self.places.forget()
        self._parameters.clear()
        self._known.clear()
        self._threads.clear()


def _version(tensor: torch.Tensor) -> int | None:
    try:
        return tensor._version
    except RuntimeError:  # an inference tensor has none
        return None
