"""Turn live tensors into rows, unnoticed: one row for each tensor and version.

A large tensor on the CPU is measured at once, while it is still in the processor's cache. The
others are kept as detached aliases until 1 MB of them is pending, and measured together: one by
one, a small tensor's norm costs three times more. If a version has moved by then, the numbers
would be somebody else's: the row says "modified after capture" instead.

A row is a number and entries in a few dictionaries, only where they differ from a gradient's that
was never written to: this runs at every call and every node, and with an object a row, garbage
collection alone cost a tenth of a training step. Setting an entry is atomic, so no lock is taken
for the threads of the engine.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator
from weakref import ref

import torch

from autograd_lab import torch_private

from .measures import Measures
from .memory import is_torchs_own, share_memory, storage_of, version_of

__all__ = [
    "GRADIENT",
    "IS_LEAF",
    "IS_PARAMETER",
    "REQUIRES_GRAD",
    "Shots",
    "share_memory",
    "storage_of",
]

LARGE_NBYTES = 100_000
BATCH_NBYTES = 1_000_000
SMALL_NUMEL = 1024
PLAIN_TYPES = frozenset({torch.Tensor, torch.nn.Parameter, torch.nn.Buffer})
IS_LEAF, REQUIRES_GRAD, IS_PARAMETER = 1, 2, 4
GRADIENT = IS_LEAF  # what a gradient is, unless create_graph makes it more


class Shots:
    """Rows, and in `measures` their numbers.

    All but `finish` and the questions at the end is called with torch functions and modes switched
    off; what is measured is detached, so grad mode may be on.
    """

    def __init__(self, values: str, budget_nbytes: int) -> None:
        self.measures = Measures(values, budget_nbytes)
        self.may_be_wrapped = False  # functorch or is_grads_batched was seen: look at each tensor
        self.row_count = 0  # when the block has ended
        self.versions: dict[int, int | None] = {}  # where not 0
        self._origins: dict[int, int] = {}  # the first row of the same tensor, where it is another
        self._flags: dict[int, int] = {}  # by first row, where it is no gradient
        self._refs: dict[int, ref[torch.Tensor]] = {}
        self._last: dict[int, int] = {}  # by id: a tensor's last row
        self._unmeasured: set[int] = set()
        self._stale_before = 0  # rows made before are no longer known to hold
        self._stale_storages: dict[int, int] = {}  # the same for what lies in one storage
        self._pending: dict[int, torch.Tensor] = {}
        self._pending_nbytes = 0
        self._numbers = itertools.count()
        self._flushing = threading.RLock()

    def find(self, tensor: torch.Tensor) -> int | None:
        """The last row of a tensor that was met before."""
        row = self._last.get(id(tensor))
        return row if row is not None and self._refs[row]() is tensor else None

    def identify(self, tensor: torch.Tensor) -> int:
        """The last row of a tensor; a new one, without a measurement, at the first meeting."""
        row = self.find(tensor)
        if row is None:
            row = self._new_row(tensor, version_of(tensor), None, _flags(tensor))
            self._unmeasured.add(row)
            self.measures.describe(row, tensor)
        return row

    def shoot(self, tensor: torch.Tensor, flags: int | None = None) -> int:
        """Take a snapshot and return its row; an unchanged version is measured once.

        flags  what the tensor is, where the caller knows it
        """
        version = version_of(tensor)
        row = self._last.get(id(tensor))
        if row is None or self._refs[row]() is not tensor:
            row = self._new_row(tensor, version, None, _flags(tensor) if flags is None else flags)
        elif row in self._unmeasured:
            self._unmeasured.discard(row)
            self.versions[row] = version
        elif (
            version is not None
            and self.versions.get(row, 0) == version
            and not self._is_stale(row, tensor)
        ):
            return row
        else:
            row = self._new_row(tensor, version, self._origins.get(row, row), GRADIENT)
        if type(tensor) is not torch.Tensor or self.may_be_wrapped or version is None:
            self._take_unusual(tensor, row)
            return row
        if not self.measures.keeps_values and not (
            tensor.is_floating_point() or tensor.is_complex()
        ):
            self.measures.leave_whole_numbers(row, tensor)
            return row
        alias = tensor.detach()
        nbytes = alias.numel() * alias.itemsize
        if nbytes >= LARGE_NBYTES and alias.is_cpu:
            self.measures.measure_now(row, alias)
            return row
        self._pending[row] = alias
        self._pending_nbytes += nbytes
        if self._pending_nbytes > BATCH_NBYTES:
            self.flush()
        return row

    def shoot_view(
        self, tensor: torch.Tensor, base: object, source: int, flags: int | None = None
    ) -> int:
        """Take a snapshot of what a reshaping call made of `base`, whose row is `source`.

        Where both are the same memory at the same version, one measurement is enough: not where
        the call copied, computed, or was tampered with by a hook.
        """
        if (
            isinstance(base, torch.Tensor)
            and not self.may_be_wrapped
            and (version := self.versions.get(source, 0)) is not None
            and version == version_of(tensor)
            and share_memory(tensor, base)
            and not self._is_stale(source, tensor)
            and not (self.measures.keeps_values and tensor.numel() <= SMALL_NUMEL)
        ):
            row = self.current(tensor)
            if row is None:
                known = self.find(tensor)
                origin = None if known is None else self._origins.get(known, known)
                flags = _flags(tensor) if flags is None else flags
                row = self._new_row(tensor, version, origin, flags)
                self.measures.share(row, tensor, source)
            return row
        return self.shoot(tensor, flags)

    def alive(self) -> Iterator[torch.Tensor]:
        """The tensors that the program still holds."""
        return (tensor for one in list(self._refs.values()) if (tensor := one()) is not None)

    def recognise(self, tensor: torch.Tensor, row: int) -> None:
        """Take a tensor for the one of `row`: torch made it anew, as it does for `.grad`."""
        self._refs[row] = ref(tensor)
        self._last[id(tensor)] = row

    def tensor(self, row: int) -> torch.Tensor | None:
        """The tensor itself, while the program holds it."""
        return self._refs[row]()

    def leave_out(self, tensor: torch.Tensor, why: str) -> int:
        """Give a tensor a row without a measurement, and the reason."""
        row = self.identify(tensor)
        self._unmeasured.discard(row)
        self.measures.leave_out(row, tensor, why)
        return row

    def current(self, tensor: torch.Tensor) -> int | None:
        """The row of a tensor as it is now, if there is one with a measurement."""
        row = self._last.get(id(tensor))
        if (
            row is None
            or self._refs[row]() is not tensor
            or row in self._unmeasured
            or self._is_stale(row, tensor)
        ):
            return None
        return row if self.versions.get(row, 0) == version_of(tensor) else None

    def before_writing(self, tensors: Iterable[torch.Tensor]) -> None:
        """Measure what lies in the memory of these, and trust its numbers no longer.

        They are about to be written; a write through `.data` changes a tensor and not its version.
        """
        written = list(tensors)
        if not all(map(is_torchs_own, written)):
            self.trust_nothing()
            return
        storages = set(map(storage_of, written))
        if any(storage_of(alias) in storages for alias in list(self._pending.values())):
            self.flush()
        for storage in storages:
            self._stale_storages[storage] = len(self._refs)

    def trust_nothing(self) -> None:
        """Measure what is pending, and trust no number later: nobody knows what will be written."""
        self.flush()
        self._stale_before = len(self._refs)

    def flush(self) -> None:
        """Measure what is pending and let go of it; needed before anything is written in place."""
        with self._flushing:
            self._pending_nbytes = 0
            batch = [(row, self._pending.pop(row)) for row in list(self._pending)]
            if batch:
                self.measures.measure(batch, self.versions)

    def finish(self) -> None:
        """Measure what is pending and fetch what an accelerator holds."""
        with torch_private.invisible():
            self.flush()
            self.measures.finish()

    def forget(self) -> None:
        """Let go of the user's tensors, whatever happened."""
        self.row_count = max(self.row_count, len(self._refs))
        self._pending.clear()
        self._last.clear()
        self._refs.clear()
        self.measures.forget()

    def measure_unchanged(self, rows: Iterable[int]) -> list[int]:
        """Measure tensors that were only identified and have not changed; the rows of those."""
        found = []
        for row in rows:
            tensor = self._refs[row]()
            if (
                tensor is not None
                and row in self._unmeasured
                and self.versions.get(row, 0) == version_of(tensor)
            ):
                found.append(self.shoot(tensor))
        return found

    def origin(self, row: int) -> int:
        """The first row of the same tensor."""
        return self._origins.get(row, row)

    def flags(self, row: int) -> int:
        """What the tensor is: IS_LEAF, REQUIRES_GRAD, IS_PARAMETER."""
        return self._flags.get(self._origins.get(row, row), GRADIENT)

    def version(self, row: int) -> int | None:
        """The version that the tensor had; None for an inference tensor."""
        return self.versions.get(row, 0)

    def _is_stale(self, row: int, tensor: torch.Tensor) -> bool:
        if row < self._stale_before:
            return True
        stale = self._stale_storages
        return bool(stale) and row < stale.get(storage_of(tensor), 0)

    def _new_row(
        self, tensor: torch.Tensor, version: int | None, origin: int | None, flags: int
    ) -> int:
        row = next(self._numbers)
        self._refs[row] = ref(tensor)
        self._last[id(tensor)] = row
        if version != 0:
            self.versions[row] = version
        if origin is not None:
            self._origins[row] = origin
        elif flags != GRADIENT:
            self._flags[row] = flags
        return row

    def _take_unusual(self, tensor: torch.Tensor, row: int) -> None:
        kind, measures = type(tensor), self.measures
        if kind not in PLAIN_TYPES and torch_private.has_own_dispatch(kind):
            why = f"a {kind.__name__}, whose numbers are its own affair"
            measures.leave_out(row, tensor, why)
        elif self.may_be_wrapped and torch_private.batched_or_wrapped(tensor):
            measures.leave_out(row, tensor, "inside vmap or a functorch transform")
        elif self.versions.get(row, 0) is None:
            measures.measure([(row, tensor)], self.versions)
        else:
            self._pending[row] = tensor.detach()
            self._pending_nbytes += tensor.numel() * tensor.itemsize


def _flags(tensor: torch.Tensor) -> int:
    flags = (IS_LEAF if tensor.is_leaf else 0) | (REQUIRES_GRAD if tensor.requires_grad else 0)
    kind = type(tensor)
    if kind is not torch.Tensor and (
        kind is torch.nn.Parameter or isinstance(tensor, torch.nn.Parameter)
    ):
        flags |= IS_PARAMETER
    return flags
