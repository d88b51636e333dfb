"""Turn live tensors into numbers, in batches, without the user's program noticing.

A tensor is kept as a detached alias with its version until the batch is measured (4 MB of aliases at most). If the version
has moved by then, the numbers would be somebody else's: the measurement says "modified after capture" instead.
Statistics: norms in float32 or float64 as the tensor is, in float64 for half precision and wherever float32 gave 0, inf or
NaN (facts: a norm of inf does not mean a non-finite tensor). The relative error of a float32 norm of millions of elements is about 1e-4.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from autograd_lab import torch_private

from .statistics import Picture, fetch, norm_of, picture_of

__all__ = ["Measured", "Measurer"]

BATCH_NBYTES = 4_000_000
SMALL_NUMEL = 1024
HALF = frozenset({torch.float16, torch.bfloat16})
REAL = frozenset({torch.float32, torch.float64})
COMPLEX = {torch.complex64: torch.float32, torch.complex128: torch.float64, torch.complex32: torch.float16}
TINY_NORM, HUGE_NORM = 1e-18, 1e18  # beyond these a float32 sum of squares under- or overflows


@dataclass(slots=True)
class Measured:
    """One measurement to come: filled when its batch is measured. The norm of a tensor kept whole follows from its numbers."""

    norm: float | None = None
    finite: bool | None = None
    note: str | None = None
    picture: Picture | None = None
    bad_counts: tuple[int, int] | None = None  # NaNs and Infs of a tensor that is not finite

    def settle(self) -> None:
        """Work out, from the numbers kept, what was not measured; once `Measurer.finish` has fetched them."""
        if self.finite is None and self.picture is not None and self.picture.sampled_from is None:
            self.norm, self.finite = norm_of(self.picture.data), bool(np.isfinite(self.picture.data).all())


@dataclass(slots=True)
class Measurer:
    """Collect tensors and measure them in batches; `values` is "none", "auto" or "all"."""

    values: str
    budget_nbytes: int
    kept_nbytes: int = 0
    refused_count: int = 0
    _pending: list[tuple[torch.Tensor, int, Measured]] = field(default_factory=list)
    _pending_nbytes: int = 0
    _deferred: list[tuple[list[Measured], torch.Tensor]] = field(default_factory=list)
    _pictures: list[Picture] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def take(self, tensor: torch.Tensor, version: int | None) -> Measured:
        """Ask for a tensor's numbers. The caller has switched off torch functions.

        tensor   any shape, dtype, device, layout
        version  its `_version`; None for an inference tensor, which is measured at once
        """
        measured = Measured()
        if (type(tensor) is not torch.Tensor and torch_private.has_own_dispatch(type(tensor))) or torch_private.is_traced(tensor):
            measured.note = f"a {type(tensor).__name__}, whose numbers are its own affair"
        elif torch_private.batched_or_wrapped(tensor):
            measured.note = "inside vmap or a functorch transform"
        elif tensor.is_meta:
            measured.note = "on the meta device"
        elif version is None:
            self._measure([(tensor, 0, measured)])
        else:
            with torch_private.without_dispatch_modes():
                alias = tensor.detach()
            with self._lock:
                self._pending.append((alias, version, measured))
                self._pending_nbytes += alias.nbytes if alias.layout is torch.strided else BATCH_NBYTES
                if self._pending_nbytes > BATCH_NBYTES:
                    self.flush()
        return measured

    def flush(self) -> None:
        """Measure what is pending and let go of it; needed before anything is written in place."""
        with self._lock:
            batch, self._pending, self._pending_nbytes = self._pending, [], 0
            if not batch:
                return
            current = []
            for alias, version, measured in batch:
                if alias._version != version:  # noqa: SLF001 (torch's documented counter)
                    measured.note = "modified after capture"
                else:
                    current.append((alias, version, measured))
            self._measure(current)

    def finish(self) -> None:
        """Measure what is pending and fetch what an accelerator still holds: one transfer a batch, at the end."""
        self.flush()
        with self._lock:
            deferred, self._deferred = self._deferred, []
        with torch_private.invisible():
            for waiting, norms in deferred:
                for measured, norm in zip(waiting, norms.tolist(), strict=True):
                    measured.norm, measured.finite = norm, math.isfinite(norm)
            fetch(self._pictures)

    def _measure(self, batch: Sequence[tuple[torch.Tensor, int, Measured]]) -> None:
        with torch_private.invisible():
            groups: dict[tuple[torch.device, torch.dtype, bool], tuple[list[torch.Tensor], list[Measured]]] = {}
            for alias, _, measured in batch:
                dense = _dense(alias)
                if dense is None:
                    measured.note = f"layout {alias.layout} without numbers of its own"
                    continue
                if self.values != "none" and self._keep_whole(dense, measured):
                    continue
                if dense.dtype in COMPLEX:
                    dense = torch.view_as_real(dense.resolve_conj())
                if not dense.dtype.is_floating_point:
                    measured.finite = True
                    continue
                wide = dense.dtype not in REAL or dense.device.type not in ("cpu", "mps")
                tensors, waiting = groups.setdefault((dense.device, dense.dtype, wide), ([], []))
                tensors.append(dense)
                waiting.append(measured)
            for (device, _, wide), (tensors, waiting) in groups.items():
                norms = _norms(tensors, wide=wide and device.type != "mps")
                if device.type == "cpu":
                    self._fill(tensors, waiting, norms.tolist())
                else:
                    self._deferred.append((waiting, norms))

    def _fill(self, tensors: list[torch.Tensor], waiting: list[Measured], norms: list[float]) -> None:
        for tensor, measured, norm in zip(tensors, waiting, norms, strict=True):
            if TINY_NORM < norm < HUGE_NORM or tensor.numel() == 0:
                measured.norm, measured.finite = norm, True
                continue
            wide = tensor.double()
            measured.norm = float(torch.linalg.vector_norm(wide))
            measured.finite = math.isfinite(measured.norm) or bool(wide.isfinite().all())
            if measured.finite and not 1e-150 < measured.norm < 1e150 and (scale := float(wide.abs().max())):
                measured.norm = float(torch.linalg.vector_norm(wide / scale)) * scale
            if not measured.finite:
                measured.bad_counts = int(wide.isnan().sum()), int(wide.isinf().sum())

    def _keep_whole(self, tensor: torch.Tensor, measured: Measured) -> bool:
        """Keep numbers within the budget: all of a small tensor (then its norm comes from them: True), a picture of a large one."""
        whole = tensor.numel() <= SMALL_NUMEL or self.values == "all"
        nbytes = (tensor.numel() if whole else SMALL_NUMEL) * max(4, tensor.itemsize)
        if self.kept_nbytes + nbytes > self.budget_nbytes:
            self.refused_count += 1
            return False
        self.kept_nbytes += nbytes
        measured.picture = self._add(picture_of(tensor, whole=whole))
        return whole

    def _add(self, picture: Picture) -> Picture:
        self._pictures.append(picture)
        return picture


def _norms(tensors: list[torch.Tensor], *, wide: bool) -> torch.Tensor:
    norms = torch_private.foreach_norm(tensors, dtype=torch.float64) if wide else torch_private.foreach_norm(tensors)
    return torch.stack(norms)


def _dense(tensor: torch.Tensor) -> torch.Tensor | None:
    """The numbers of a tensor in any layout; None where they can't be had."""
    if tensor.layout is torch.strided:
        return None if tensor.is_quantized else tensor
    if tensor.layout is torch.sparse_coo:
        return tensor.coalesce().values()
    if tensor.layout in (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc):
        return tensor.values()
    return tensor.to_dense() if tensor.is_mkldnn else None
