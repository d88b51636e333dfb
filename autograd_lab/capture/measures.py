"""Turn aliases of live tensors into numbers: norms, and pictures within the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from autograd_lab import torch_private

from .norms import (
    dense_numbers,
    exact_norm_of,
    has_memory,
    is_in_range,
    norm_of_one,
    norms_of_alike,
)
from .statistics import Picture, fetch, norm_of, picture_of

__all__ = ["CPU", "Measures"]

SMALL_NUMEL = 1024
REAL = frozenset({torch.float32, torch.float64})
CPU = torch.device("cpu")
NEAR = frozenset({"cpu"})  # to read a number of other devices is to wait: that is done at the end

Meta = tuple[Sequence[int], torch.dtype, torch.device]


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


class Measures:
    """The numbers of rows, and the shape, dtype and device of what they were read from.

    Columns of plain values, because a thousand rows are written in a training step: `kinds` has
    only what is not float32 on the CPU. All that reads a tensor runs with torch functions and
    modes switched off.

    bad_rows  rows with a NaN or an Inf
    fault     why some rows have no numbers, if that was ours
    """

    def __init__(self, values: str, budget_nbytes: int) -> None:
        self.values = values
        self.keeps_values = values != "none"
        self.budget_nbytes = budget_nbytes
        self.kept_nbytes = 0
        self.refused_count = 0
        self.bad_rows: list[int] = []
        self.fault: Exception | None = None
        self.shapes: dict[int, Sequence[int]] = {}
        self.kinds: dict[int, tuple[torch.dtype, torch.device]] = {}
        self.norms: dict[int, float] = {}
        self.extras: dict[int, Extra] = {}
        self._deferred: list[tuple[list[int], torch.Tensor, torch.Tensor | None]] = []

    def measure(
        self, batch: Sequence[tuple[int, torch.Tensor]], versions: Mapping[int, int | None]
    ) -> None:
        """Measure rows together; one that can't be measured spoils no other.

        versions  that the tensors had when they were met, to notice a write since
        """
        try:
            self._measure_together(batch, versions)
        except Exception as error:
            self.fault = error
            for row, alias in batch:
                is_kept = row in self.extras and self.extras[row].picture is not None
                if not is_kept and self.norm(row) is None and self.note(row) is None:
                    self._measure_alone(row, alias, versions)

    def measure_now(self, row: int, tensor: torch.Tensor) -> None:
        """Measure one detached tensor on the CPU at once, while it is still in the cache."""
        dtype = tensor.dtype
        is_plain = dtype in REAL and tensor.layout is torch.strided and not tensor.is_nested
        if not is_plain or not has_memory(tensor):
            self.measure([(row, tensor)], {row: tensor._version})
            return
        self.shapes[row] = tensor.shape
        if dtype is not torch.float32:
            self.kinds[row] = dtype, CPU
        if self.keeps_values and self.keep(row, tensor):
            return
        norm = norm_of_one(tensor)
        if is_in_range(norm):
            self.norms[row] = norm
        else:
            self._fill_extreme(row, tensor, norm)

    def finish(self) -> None:
        """Fetch what an accelerator holds: one transfer a batch."""
        deferred, self._deferred = self._deferred, []
        for rows, norms, finite in deferred:
            known = [None] * len(rows) if finite is None else finite.tolist()
            for row, norm, is_finite in zip(rows, norms.tolist(), known, strict=True):
                self.norms[row] = norm
                if math.isfinite(norm):
                    continue
                if is_finite:
                    self.extras[row] = self.extras.get(row) or Extra()
                    self.extras[row].is_finite = True
                else:
                    self.bad_rows.append(row)
        pictures = {
            row: extra.picture
            for row, extra in self.extras.items()
            if extra.picture is not None and not extra.picture.is_fetched
        }
        fetch(pictures.values())
        for row, picture in pictures.items():
            if picture.sampled_from is None:
                norm = norm_of(picture.data)
                if norm is not None:
                    self.norms[row] = norm
                self.extras[row].is_finite = bool(np.isfinite(picture.data).all())

    def forget(self) -> None:
        """Let go of numbers still on an accelerator."""
        self.fault = None
        self._deferred.clear()

    def describe(self, row: int, tensor: torch.Tensor) -> None:
        """Keep shape, dtype and device of a tensor that is not measured now.

        The shape is () for one without sizes: nested, or a lazy module's parameter.
        """
        try:
            self.shapes[row] = tensor.shape
        except RuntimeError:
            self.shapes[row] = ()
        if tensor.dtype is not torch.float32 or not tensor.is_cpu:
            self.kinds[row] = tensor.dtype, tensor.device

    def leave_out(self, row: int, tensor: torch.Tensor, why: str) -> None:
        """No number, and the reason."""
        self.describe(row, tensor)
        self.extras[row] = Extra(note=why)

    def leave_whole_numbers(self, row: int, tensor: torch.Tensor) -> None:
        """Integers and bools have no norm, and are finite."""
        self.describe(row, tensor)
        self.extras[row] = Extra(is_finite=True)

    def share(self, row: int, tensor: torch.Tensor, source: int) -> None:
        """The norm of a row is that of row `source`; only values are taken, where they are kept."""
        self.describe(row, tensor)
        self.extras[row] = Extra(same_as=source)
        if self.keeps_values and type(tensor) is torch.Tensor and tensor.layout is torch.strided:
            with torch.no_grad():
                self.keep(row, tensor.detach())

    def keep(self, row: int, tensor: torch.Tensor) -> bool:
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

    def is_finite(self, row: int) -> bool | None:
        """Whether all elements are; None where that could not be read."""
        extra = self.extras.get(row)
        if extra is not None and extra.same_as is not None:
            return self.is_finite(extra.same_as)
        if extra is not None and extra.is_finite is not None:
            return extra.is_finite
        norm = self.norms.get(row)
        return None if norm is None else math.isfinite(norm)

    def meta(self, row: int, origin: int) -> Meta:
        """Shape, dtype and device of a row's tensor, whose first row is `origin`."""
        known = row if row in self.shapes else origin
        return self.shapes.get(known, ()), *self.kinds.get(known, (torch.float32, CPU))

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

    def _measure_alone(
        self, row: int, alias: torch.Tensor, versions: Mapping[int, int | None]
    ) -> None:
        try:
            self._measure_together([(row, alias)], versions)
        except Exception as error:
            self.leave_out(row, alias, f"could not be measured: {type(error).__name__}")

    def _measure_together(
        self, batch: Sequence[tuple[int, torch.Tensor]], versions: Mapping[int, int | None]
    ) -> None:
        groups: dict[tuple[torch.device, torch.dtype], tuple[list[torch.Tensor], list[int]]] = {}
        alike: dict[torch.Size, tuple[list[torch.Tensor], list[int]]] = {}
        is_plain = not self.keeps_values and CPU.type in NEAR
        for row, alias in batch:
            version = versions.get(row, 0)
            if version is not None and alias._version != version:
                self.leave_out(row, alias, "modified after capture")
            elif (
                is_plain
                and alias.dtype is torch.float32
                and alias.is_cpu
                and alias.layout is torch.strided
                and not alias.is_nested
                and has_memory(alias)
            ):
                shape = alias.shape
                group = alike.get(shape)
                if group is None:
                    group = alike[shape] = ([], [])
                self.shapes[row] = shape
                group[0].append(alias)
                group[1].append(row)
            elif (tensor := self._readable(row, alias)) is not None:
                group = groups.setdefault((tensor.device, tensor.dtype), ([], []))
                group[0].append(tensor)
                group[1].append(row)
        for tensors, rows in alike.values():
            self._fill(tensors, rows, norms_of_alike(tensors))
        for (device, dtype), (tensors, rows) in groups.items():
            wide = device.type != "mps" and (dtype not in REAL or device.type != "cpu")
            norms = torch_private.foreach_norm(tensors, dtype=torch.float64 if wide else None)
            stacked = torch.stack(norms) if len(norms) > 1 else norms[0].reshape(1)
            if device.type in NEAR:
                self._fill(tensors, rows, stacked.tolist())
            else:
                finite = None  # a sum of squares in float64 overflows for float64 only
                if dtype is torch.float64:
                    finite = torch.stack([torch.isfinite(tensor).all() for tensor in tensors])
                self._deferred.append((rows, stacked, finite))

    def _readable(self, row: int, tensor: torch.Tensor) -> torch.Tensor | None:
        """The floating-point numbers of a tensor; None where none are wanted, or can't be had."""
        self.describe(row, tensor)
        dense = dense_numbers(tensor)
        if isinstance(dense, str):
            self.extras[row] = Extra(note=dense)
            return None
        if self.keeps_values and self.keep(row, dense):
            return None
        if dense.is_floating_point():
            return dense
        if dense.is_complex():
            return torch.view_as_real(dense.resolve_conj())
        self.extras[row] = self.extras.get(row) or Extra()
        self.extras[row].is_finite = True
        return None

    def _fill(self, tensors: list[torch.Tensor], rows: list[int], norms: list[float]) -> None:
        for tensor, row, norm in zip(tensors, rows, norms, strict=True):
            if is_in_range(norm):
                self.norms[row] = norm
            else:
                self._fill_extreme(row, tensor, norm)

    def _fill_extreme(self, row: int, tensor: torch.Tensor, norm: float) -> None:
        """All zero, empty, not finite, or too small or large for a sum of squares in its dtype."""
        if norm != norm or (
            norm == math.inf and math.inf in (float(tensor.amax()), -float(tensor.amin()))
        ):
            self.norms[row] = norm
            self.bad_rows.append(row)
            return
        self.norms[row] = norm = exact_norm_of(tensor)
        if norm == math.inf:
            self.extras[row] = self.extras.get(row) or Extra()
            self.extras[row].is_finite = True
