"""Turn live tensors into numbers without the user's program noticing.

A large tensor on the CPU is measured at once, while it is still in the processor's cache. The
others are kept as detached
aliases with their versions until a batch is full (1 MB of aliases at most) and measured
together. If a version has moved by then, the numbers would be somebody else's: the shot says
"modified after capture" instead.
Statistics: norms in float32 or float64 as the tensor is, in float64 for half precision and
wherever float32 gave 0, inf or
NaN (a norm of inf does not mean a non-finite tensor). The relative error of a float32 norm of
millions of elements is about 1e-4.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from autograd_lab import torch_private

from .statistics import Picture, fetch, norm_of, picture_of

__all__ = ["Extra", "Measurer", "Shot"]

LARGE_NBYTES = 100_000
BATCH_NBYTES = 1_000_000
SMALL_NUMEL = 1024
REAL = frozenset({torch.float32, torch.float64})
PLAIN_TYPES = frozenset({torch.Tensor, torch.nn.Parameter, torch.nn.Buffer})
TINY_NORM, HUGE_NORM = 1e-18, 1e18  # beyond these a float32 sum of squares under- or overflows


class Shot:
    """A snapshot to come: which tensor (`number`, met by weak reference), at which version.

    `alias` is the detached tensor until its batch is measured; `norm` and `finite` are set then,
    the rest only where it applies.
    """

    __slots__ = ("alias", "extra", "finite", "is_taken", "norm", "number", "ref", "version")

    def __init__(self, ref: weakref.ref[torch.Tensor], number: int, version: int | None) -> None:
        self.ref = ref
        self.number = number
        self.version = version
        self.is_taken = False  # its value was asked for
        self.alias: torch.Tensor | None = None
        self.extra: Extra | None = None
        self.norm: float | None = None
        self.finite: bool | None = None


@dataclass(slots=True)
class Extra:
    """What few shots have: why there is no number, the numbers kept, the shot whose elements are
    the same in another shape.
    """

    note: str | None = None
    picture: Picture | None = None
    same_as: Shot | None = None


class Measurer:
    """Collect tensors and measure them in batches; `values` is "none", "auto" or "all"."""

    def __init__(self, values: str, budget_nbytes: int) -> None:
        self.values = values
        self.budget_nbytes = budget_nbytes
        self.kept_nbytes = 0
        self.refused_count = 0
        self.saw_bad = False  # a NaN or an Inf
        self.may_be_wrapped = (
            False  # a functorch level or is_grads_batched was seen: look at each tensor
        )
        self._pending: list[Shot] = []
        self._pending_nbytes = 0
        self._deferred: list[tuple[list[Shot], torch.Tensor]] = []
        self._pictures: list[tuple[Picture, Shot]] = []
        self._lock = threading.RLock()

    def take(self, tensor: torch.Tensor, shot: Shot) -> None:
        """Ask for a tensor's numbers: any shape, dtype, device, layout. The caller has switched
        off torch functions and modes.
        """
        if type(tensor) not in PLAIN_TYPES and torch_private.has_own_dispatch(type(tensor)):
            shot.extra = Extra(note=f"a {type(tensor).__name__}, whose numbers are its own affair")
        elif self.may_be_wrapped and torch_private.batched_or_wrapped(tensor):
            shot.extra = Extra(note="inside vmap or a functorch transform")
        elif shot.version is None:
            shot.alias = tensor
            self._measure([shot])
        else:
            shot.alias = alias = tensor.detach()
            nbytes = alias.numel() * alias.itemsize
            if nbytes >= LARGE_NBYTES and alias.is_cpu:
                self._measure([shot])
                return
            self._pending.append(shot)
            self._pending_nbytes += nbytes
            if self._pending_nbytes > BATCH_NBYTES:
                self._flush()

    def flush(self) -> None:
        """Measure what is pending and let go of it; needed before anything is written in place."""
        if self._pending:
            with torch_private.invisible():
                self._flush()

    def _flush(self) -> None:
        with self._lock:
            batch, self._pending, self._pending_nbytes = self._pending, [], 0
            self._measure(batch)

    def finish(self) -> None:
        """Measure what is pending and fetch what an accelerator still holds: one transfer a batch,
        at the end.
        """
        self.flush()
        with self._lock, torch_private.invisible():
            deferred, self._deferred = self._deferred, []
            for waiting, norms in deferred:
                for shot, norm in zip(waiting, norms.tolist(), strict=True):
                    shot.norm, shot.finite = norm, math.isfinite(norm)
            fetch(picture for picture, _ in self._pictures)
        for picture, shot in self._pictures:
            if picture.sampled_from is None:
                shot.norm, shot.finite = (
                    norm_of(picture.data),
                    bool(np.isfinite(picture.data).all()),
                )
        self._pictures = []

    def _measure(self, batch: Sequence[Shot]) -> None:
        """Measure shots and let go of their aliases. The caller has switched off torch functions
        and modes.
        """
        groups: dict[tuple[torch.device, torch.dtype], tuple[list[torch.Tensor], list[Shot]]] = {}
        keeps = self.values != "none"
        for shot in batch:
            tensor, shot.alias = shot.alias, None
            assert tensor is not None
            if shot.version is not None and tensor._version != shot.version:
                shot.extra = Extra(note="modified after capture")
                continue
            dtype = tensor.dtype
            if dtype not in REAL or tensor.layout is not torch.strided or tensor.is_meta:
                tensor = _readable(tensor, shot)
                if tensor is None:
                    continue
                dtype = tensor.dtype
            if keeps and self._keep_whole(tensor, shot):
                continue
            if not dtype.is_floating_point:
                if not dtype.is_complex:
                    shot.finite = True
                    continue
                tensor = torch.view_as_real(tensor.resolve_conj())
                dtype = tensor.dtype
            key = tensor.device, dtype
            group = groups.get(key)
            if group is None:
                group = groups[key] = ([], [])
            group[0].append(tensor)
            group[1].append(shot)
        for (device, dtype), (tensors, waiting) in groups.items():
            wide = device.type != "mps" and (dtype not in REAL or device.type != "cpu")
            norms = torch_private.foreach_norm(tensors, dtype=torch.float64 if wide else None)
            stacked = torch.stack(norms) if len(norms) > 1 else norms[0].reshape(1)
            if device.type == "cpu":
                self._fill(tensors, waiting, stacked.tolist())
            else:
                self._deferred.append((waiting, stacked))

    def _fill(self, tensors: list[torch.Tensor], waiting: list[Shot], norms: list[float]) -> None:
        for tensor, shot, norm in zip(tensors, waiting, norms, strict=True):
            if TINY_NORM < norm < HUGE_NORM:
                shot.norm, shot.finite = norm, True
            else:
                self._fill_extreme(tensor, shot, norm)

    def _fill_extreme(self, tensor: torch.Tensor, shot: Shot, norm: float) -> None:
        """All zero, empty, not finite, or too small or large for a sum of squares in the tensor's
        own dtype.
        """
        if norm != norm or (norm == math.inf and bool(tensor.isinf().any())):
            shot.norm, shot.finite, self.saw_bad = norm, False, True
            return
        wide = tensor.double()
        shot.norm, shot.finite = float(torch.linalg.vector_norm(wide)), True
        if not 1e-150 < shot.norm < 1e150 and tensor.numel() and (scale := float(wide.abs().max())):
            shot.norm = float(torch.linalg.vector_norm(wide / scale)) * scale

    def _keep_whole(self, tensor: torch.Tensor, shot: Shot) -> bool:
        """Keep numbers within the budget: all of a small tensor (then its norm comes from them:
        True), a picture of a large one.
        """
        whole = tensor.numel() <= SMALL_NUMEL or self.values == "all"
        nbytes = (tensor.numel() if whole else SMALL_NUMEL) * max(4, tensor.itemsize)
        if self.kept_nbytes + nbytes > self.budget_nbytes:
            self.refused_count += 1
            return False
        self.kept_nbytes += nbytes
        picture = picture_of(tensor, whole=whole)
        shot.extra = Extra(picture=picture)
        self._pictures.append((picture, shot))
        return whole


def _readable(tensor: torch.Tensor, shot: Shot) -> torch.Tensor | None:
    """The numbers of a tensor in any layout; None, and a note on the shot, where they can't be
    had.
    """
    if tensor.is_meta:
        shot.extra = Extra(note="on the meta device")
    elif tensor.layout is torch.strided and not tensor.is_quantized:
        return tensor
    elif tensor.layout is torch.sparse_coo:
        return tensor.coalesce().values()
    elif tensor.layout in (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc):
        return tensor.values()
    elif tensor.is_mkldnn:
        return tensor.to_dense()
    else:
        shot.extra = Extra(note=f"layout {tensor.layout} without numbers of its own")
    return None
