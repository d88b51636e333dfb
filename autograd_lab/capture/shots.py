"""Turn live tensors into numbers, unnoticed: one row for each tensor and version.

A large tensor on the CPU is measured at once, while it is still in the processor's cache. The
others are kept as detached aliases until 1 MB of them is pending, and measured together. If a
version has moved by then, the numbers would be somebody else's: the row says "modified after
capture" instead.

Rows are columns of plain lists, and a tensor costs two objects, because this runs at every call and
every node: with an object a row, garbage collection alone cost a tenth of a training step.

Norms are taken in float32 or float64 as the tensor is, and in float64 for half precision and
wherever float32 gave 0, inf or NaN: a norm of inf does not mean a non-finite tensor. The relative
error of a float32 norm of millions of elements is about 1e-4.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from weakref import ref

import numpy as np
import torch

from autograd_lab import torch_private

from .statistics import Picture, fetch, norm_of, picture_of

__all__ = ["GRADIENT", "IS_LEAF", "IS_PARAMETER", "REQUIRES_GRAD", "Extra", "Shots"]

LARGE_NBYTES = 100_000
BATCH_NBYTES = 1_000_000
SMALL_NUMEL = 1024
REAL = frozenset({torch.float32, torch.float64})
PLAIN_TYPES = frozenset({torch.Tensor, torch.nn.Parameter, torch.nn.Buffer})
CPU = torch.device("cpu")
TINY_NORM, HUGE_NORM = 1e-18, 1e18  # beyond these a float32 sum of squares under- or overflows
IS_LEAF, REQUIRES_GRAD, IS_PARAMETER = 1, 2, 4
GRADIENT = IS_LEAF  # what a gradient is, unless create_graph makes it more


@dataclass(slots=True)
class Extra:
    """What few rows have.

    note     why there is no number
    picture  the numbers kept
    same_as  the row that has the same elements in another shape: its norm is this one's
    is_finite  all elements are finite though the norm is not known, or not finite
    """

    note: str | None = None
    picture: Picture | None = None
    same_as: int | None = None
    is_finite: bool | None = None


class Shots:
    """Rows: `origins[row]` is the first row of the same tensor, whose `metas` and `flags` hold."""

    def __init__(self, values: str, budget_nbytes: int) -> None:
        self.values = values
        self.keeps_values = values != "none"
        self.budget_nbytes = budget_nbytes
        self.kept_nbytes = 0
        self.refused_count = 0
        self.bad_rows: list[int] = []  # with a NaN or an Inf
        self.may_be_wrapped = False  # functorch or is_grads_batched was seen: look at each tensor
        self.versions: list[int | None] = []
        self.origins: list[int] = []
        self.flags: list[int] = []
        self.is_taken = bytearray()
        self.metas: dict[int, tuple[Sequence[int], torch.dtype, torch.device]] = {}
        self.norms: dict[int, float] = {}
        self.extras: dict[int, Extra] = {}
        self.fault: Exception | None = None  # why some rows have no numbers, if it was ours
        self._stale_before = 0
        self._refs: list[ref[torch.Tensor]] = []
        self._rows: dict[int, int] = {}
        self._pending: list[tuple[int, torch.Tensor]] = []
        self._pending_nbytes = 0
        self._deferred: list[tuple[list[int], torch.Tensor]] = []
        self._lock = threading.RLock()

    # All below but `flush` and `finish` is called with torch functions and modes switched off.

    def find(self, tensor: torch.Tensor) -> int | None:
        """The last row of a tensor that was met before."""
        row = self._rows.get(id(tensor))
        return row if row is not None and self._refs[row]() is tensor else None

    def identify(self, tensor: torch.Tensor) -> int:
        """The last row of a tensor; a new one, without a measurement, at the first meeting."""
        row = self.find(tensor)
        if row is None:
            row = self._new_row(tensor, None, _flags(tensor))
            self.metas[row] = _meta(tensor)
        return row

    def shoot(self, tensor: torch.Tensor, flags: int | None = None) -> int:
        """Take a snapshot and return its row; an unchanged version is measured once.

        flags  what the tensor is, where the caller knows it
        """
        row = self._rows.get(id(tensor))
        if row is None or self._refs[row]() is not tensor:
            row = self._new_row(tensor, None, _flags(tensor) if flags is None else flags)
        elif self.is_taken[row]:
            version = self.versions[row]
            if version is not None and version == tensor._version and row >= self._stale_before:
                return row
            row = self._new_row(tensor, self.origins[row], 0)
        else:
            self.versions[row] = _version(tensor)
        self.is_taken[row] = 1
        if type(tensor) is not torch.Tensor or self.may_be_wrapped or self.versions[row] is None:
            self._take_unusual(tensor, row)
            return row
        alias = tensor.detach()
        nbytes = alias.numel() * alias.itemsize
        if nbytes >= LARGE_NBYTES and alias.is_cpu:
            self._measure_large(row, alias)
        else:
            self._pending.append((row, alias))
            self._pending_nbytes += nbytes
            if self._pending_nbytes > BATCH_NBYTES:
                self._flush()
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
            and tensor.layout is torch.strided
            and base.layout is torch.strided
            and tensor.numel() == base.numel()
            and tensor.data_ptr() == base.data_ptr() != 0
            and self.versions[source] is not None
            and _version(tensor) == _version(base) == self.versions[source]
            and source >= self._stale_before
        ):
            return self._share(tensor, source, flags)
        return self.shoot(tensor, flags)

    def leave_out(self, tensor: torch.Tensor, why: str) -> int:
        """Give a tensor a row without a measurement, and the reason."""
        row = self.identify(tensor)
        self.is_taken[row] = 1
        self._note(row, tensor, why)
        return row

    def _share(self, tensor: torch.Tensor, source: int, flags: int | None = None) -> int:
        """Its norm is that of row `source`; only values are taken, where values are kept."""
        row = self.current(tensor)
        if row is not None:
            return row
        row = self.find(tensor)
        if self.keeps_values and tensor.numel() <= SMALL_NUMEL:
            return self.shoot(tensor, flags)
        origin = None if row is None else self.origins[row]
        row = self._new_row(tensor, origin, _flags(tensor) if flags is None else flags)
        self.is_taken[row] = 1
        self.metas[row] = tensor.shape, tensor.dtype, CPU if tensor.is_cpu else tensor.device
        self.extras[row] = Extra(same_as=source)
        if self.keeps_values and type(tensor) is torch.Tensor and tensor.layout is torch.strided:
            with torch.no_grad():
                self._keep_whole(tensor.detach(), row)
        return row

    def current(self, tensor: torch.Tensor) -> int | None:
        """The row of a tensor as it is now, if there is one with a measurement."""
        row = self.find(tensor)
        if row is None or row < self._stale_before or not self.is_taken[row]:
            return None
        return row if self.versions[row] == _version(tensor) else None

    def before_writing(self) -> None:
        """Measure what is pending, and trust no number later: something is about to be written.

        A write through `.data` changes a tensor and not its version.
        """
        self.flush()
        self._stale_before = len(self.versions)

    def flush(self) -> None:
        """Measure what is pending and let go of it; needed before anything is written in place."""
        if self._pending:
            with torch_private.invisible():
                self._flush()

    def finish(self) -> None:
        """Measure what is pending and fetch what an accelerator holds, one transfer a batch."""
        with torch_private.invisible():
            self._flush()
            with self._lock:
                deferred, self._deferred = self._deferred, []
            for rows, norms in deferred:
                for row, norm in zip(rows, norms.tolist(), strict=True):
                    self.norms[row] = norm
            pictures = {row: extra.picture for row, extra in self.extras.items() if extra.picture}
            fetch(pictures.values())
        for row, picture in pictures.items():
            if picture.sampled_from is None:
                norm = norm_of(picture.data)
                if norm is not None:
                    self.norms[row] = norm
                self.extras[row].is_finite = bool(np.isfinite(picture.data).all())

    def forget(self) -> None:
        """Let go of the user's tensors, whatever happened."""
        self.fault = None
        self._pending.clear()
        self._deferred.clear()
        self._rows.clear()
        self._refs.clear()

    def measure_unchanged(self, rows: Iterable[int]) -> list[int]:
        """Measure tensors that were only identified and have not changed; the rows of those."""
        found = []
        for row in rows:
            tensor = self._refs[row]()
            if (
                tensor is not None
                and not self.is_taken[row]
                and self.versions[row] == _version(tensor)
            ):
                found.append(self.shoot(tensor))
        return found

    def is_finite(self, row: int) -> bool | None:
        """Whether all elements are; None where that could not be read."""
        extra = self.extras.get(row)
        if extra is not None and extra.same_as is not None:
            return self.is_finite(extra.same_as)
        if extra is not None and extra.is_finite is not None:
            return extra.is_finite
        norm = self.norms.get(row)
        return None if norm is None else math.isfinite(norm)

    def meta(self, row: int) -> tuple[Sequence[int], torch.dtype, torch.device]:
        """Shape, dtype and device of a row's tensor."""
        return self.metas.get(row) or self.metas.get(self.origins[row]) or ((), torch.float32, CPU)

    def norm(self, row: int) -> float | None:
        """The 2-norm; None where it could not be read."""
        extra = self.extras.get(row)
        if extra is not None and extra.same_as is not None:
            return self.norm(extra.same_as)
        return self.norms.get(row)

    def note(self, row: int) -> str | None:
        """Why there is no number."""
        extra = self.extras.get(row)
        if extra is None:
            return None
        return extra.note if extra.same_as is None else self.note(extra.same_as)

    def _new_row(self, tensor: torch.Tensor, origin: int | None, flags: int) -> int:
        try:
            version = tensor._version
        except RuntimeError:  # an inference tensor has none
            version = None
        with self._lock:
            row = len(self.versions)
            self.versions.append(version)
            self._refs.append(ref(tensor))
            self.origins.append(row if origin is None else origin)
            self.flags.append(flags)
            self.is_taken.append(0)
            self._rows[id(tensor)] = row
        return row

    def _take_unusual(self, tensor: torch.Tensor, row: int) -> None:
        if type(tensor) not in PLAIN_TYPES and torch_private.has_own_dispatch(type(tensor)):
            self._note(row, tensor, f"a {type(tensor).__name__}, whose numbers are its own affair")
        elif self.may_be_wrapped and torch_private.batched_or_wrapped(tensor):
            self._note(row, tensor, "inside vmap or a functorch transform")
        elif self.versions[row] is None:
            self._measure([(row, tensor)])
        else:
            self._pending.append((row, tensor.detach()))
            self._pending_nbytes += tensor.numel() * tensor.itemsize

    def _note(self, row: int, tensor: torch.Tensor, note: str) -> None:
        self.metas[row] = _meta(tensor)
        self.extras[row] = Extra(note=note)

    def _flush(self) -> None:
        with self._lock:  # another thread may append meanwhile: what it adds stays for later
            batch = self._pending[:]
            del self._pending[: len(batch)]
            self._pending_nbytes = 0
        self._measure(batch)

    def _measure(self, batch: Sequence[tuple[int, torch.Tensor]]) -> None:
        """Measure rows and let go of their aliases; one that can't be measured spoils no other."""
        try:
            self._measure_together(batch)
        except Exception as error:
            if not any(alias.is_nested for _, alias in batch):
                self.fault = error
            for row, alias in batch:
                if self.norm(row) is None and self.note(row) is None:
                    self._measure_alone(row, alias)

    def _measure_alone(self, row: int, alias: torch.Tensor) -> None:
        if alias.is_nested:
            self._note(row, alias, "a nested tensor, which has no sizes")
            return
        try:
            self._measure_together([(row, alias)])
        except Exception as error:
            self._note(row, alias, f"could not be measured: {type(error).__name__}")

    def _measure_together(self, batch: Sequence[tuple[int, torch.Tensor]]) -> None:
        groups: dict[tuple[torch.device, torch.dtype], tuple[list[torch.Tensor], list[int]]] = {}
        for row, alias in batch:
            dtype, device = alias.dtype, CPU if alias.is_cpu else alias.device
            self.metas[row] = alias.shape, dtype, device
            version = self.versions[row]
            if version is not None and alias._version != version:
                self.extras[row] = Extra(note="modified after capture")
                continue
            tensor = alias
            if tensor.layout is torch.strided and not _has_memory(tensor):
                self.extras[row] = Extra(note="memory freed after capture")
                continue
            if dtype not in REAL or tensor.layout is not torch.strided or device.type == "meta":
                readable = self._readable(tensor, row)
                if readable is None:
                    continue
                tensor, dtype = readable, readable.dtype
            if self.keeps_values and self._keep_whole(tensor, row):
                continue
            if not dtype.is_floating_point:
                if not dtype.is_complex:
                    self.extras[row] = self.extras.get(row) or Extra()
                    self.extras[row].is_finite = True
                    continue
                tensor = torch.view_as_real(tensor.resolve_conj())
                dtype = tensor.dtype
            group = groups.get((device, dtype))
            if group is None:
                group = groups[device, dtype] = ([], [])
            group[0].append(tensor)
            group[1].append(row)
        for (device, dtype), (tensors, rows) in groups.items():
            wide = device.type != "mps" and (dtype not in REAL or device.type != "cpu")
            norms = torch_private.foreach_norm(tensors, dtype=torch.float64 if wide else None)
            stacked = torch.stack(norms) if len(norms) > 1 else norms[0].reshape(1)
            if device.type == "cpu":
                self._fill(tensors, rows, stacked.tolist())
            else:
                self._deferred.append((rows, stacked))

    def _measure_large(self, row: int, alias: torch.Tensor) -> None:
        dtype = alias.dtype
        if dtype not in REAL or alias.layout is not torch.strided:
            self._measure([(row, alias)])
            return
        self.metas[row] = alias.shape, dtype, CPU
        if self.keeps_values and self._keep_whole(alias, row):
            return
        norm = torch.linalg.vector_norm(alias).item()
        if TINY_NORM < norm < HUGE_NORM:
            self.norms[row] = norm
        else:
            self._fill_extreme(alias, row, norm)

    def _fill(self, tensors: list[torch.Tensor], rows: list[int], norms: list[float]) -> None:
        for tensor, row, norm in zip(tensors, rows, norms, strict=True):
            if TINY_NORM < norm < HUGE_NORM:
                self.norms[row] = norm
            else:
                self._fill_extreme(tensor, row, norm)

    def _fill_extreme(self, tensor: torch.Tensor, row: int, norm: float) -> None:
        """All zero, empty, not finite, or too small or large for a sum of squares in its dtype."""
        if norm != norm or (
            norm == math.inf and math.inf in (float(tensor.amax()), -float(tensor.amin()))
        ):
            self.norms[row] = norm
            self.bad_rows.append(row)
            return
        wide = tensor.double()
        norm = float(torch.linalg.vector_norm(wide))
        if not 1e-150 < norm < 1e150 and tensor.numel() and (scale := float(wide.abs().max())):
            norm = float(torch.linalg.vector_norm(wide / scale)) * scale
        self.norms[row] = norm
        if norm == math.inf:
            self.extras[row] = self.extras.get(row) or Extra()
            self.extras[row].is_finite = True

    def _keep_whole(self, tensor: torch.Tensor, row: int) -> bool:
        """Keep numbers within the budget: all of a small tensor, some of a large one.

        True where all are kept: the norm comes from them.
        """
        whole = tensor.numel() <= SMALL_NUMEL or self.values == "all"
        nbytes = (tensor.numel() if whole else SMALL_NUMEL) * max(4, tensor.itemsize)
        if self.kept_nbytes + nbytes > self.budget_nbytes:
            self.refused_count += 1
            return False
        self.kept_nbytes += nbytes
        extra = self.extras.get(row)
        if extra is None:
            extra = self.extras[row] = Extra()
        extra.picture = picture_of(tensor, whole=whole)
        return whole

    def _readable(self, tensor: torch.Tensor, row: int) -> torch.Tensor | None:
        """The numbers of a tensor in any layout; None, and a note, where they can't be had."""
        if tensor.is_meta:
            self.extras[row] = Extra(note="on the meta device")
        elif tensor.layout is torch.strided and not tensor.is_quantized:
            is_float8 = tensor.itemsize == 1 and tensor.is_floating_point()
            return tensor.float() if is_float8 else tensor
        elif tensor.layout is torch.sparse_coo:
            return tensor.coalesce().values()
        elif tensor.layout in (
            torch.sparse_csr,
            torch.sparse_csc,
            torch.sparse_bsr,
            torch.sparse_bsc,
        ):
            return tensor.values()
        elif tensor.is_mkldnn:
            return tensor.to_dense()
        else:
            self.extras[row] = Extra(note=f"layout {tensor.layout} without numbers of its own")
        return None


def _has_memory(tensor: torch.Tensor) -> bool:
    """Whether the storage still covers the tensor: it may have been resized since, as FSDP does."""
    held = tensor.untyped_storage().nbytes() if not tensor.is_meta else 1 << 62
    if held >= (tensor.storage_offset() + tensor.numel()) * tensor.itemsize:
        return True
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    reach = tensor.storage_offset() + 1 + sum((size - 1) * stride for size, stride in pairs)
    return tensor.numel() == 0 or held >= reach * tensor.itemsize


def _version(tensor: torch.Tensor) -> int | None:
    try:
        return tensor._version
    except RuntimeError:  # an inference tensor has none
        return None


def _meta(tensor: torch.Tensor) -> tuple[Sequence[int], torch.dtype, torch.device]:
    """Shape, dtype, device; () for a tensor without sizes (nested, a lazy module's parameter)."""
    try:
        shape = tensor.shape
    except RuntimeError:
        shape = ()
    return shape, tensor.dtype, tensor.device


def _flags(tensor: torch.Tensor) -> int:
    flags = (IS_LEAF if tensor.is_leaf else 0) | (REQUIRES_GRAD if tensor.requires_grad else 0)
    kind = type(tensor)
    if kind is not torch.Tensor and (
        kind is torch.nn.Parameter or isinstance(tensor, torch.nn.Parameter)
    ):
        flags |= IS_PARAMETER
    return flags
