"""Turn one tensor's numbers into a Detail; nothing here raises on NaN or Inf.

Histograms are by binary exponent, because torch.histc raises on NaN, Inf and bf16. Of a large
tensor every k-th element is kept, not a mean of blocks: it costs nothing to read, and a lone NaN
or a mask of -inf does not smear over its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from autograd_lab.recording import Detail, Histogram, Values

__all__ = ["Picture", "detail_of", "fetch", "norm_of", "picture_of", "significant"]

SIDE = 32
WIDE = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.complex32: torch.complex64,
}


@dataclass(slots=True)
class Picture:
    """A private copy of numbers on their way to a Detail.

    data  the whole tensor, or every k-th element of `sampled_from`; a tensor until `fetch`,
          then an array
    """

    data: Any
    sampled_from: tuple[int, ...] | None = None

    @property
    def is_fetched(self) -> bool:
        """The numbers are here; not so where another thread took them after the block had ended."""
        return isinstance(self.data, np.ndarray)


def picture_of(tensor: torch.Tensor, *, whole: bool) -> Picture:
    """Copy a dense tensor's numbers on its own device: all of them, or at most 1024.

    The caller runs it invisibly.
    """
    kept = tensor.clone(memory_format=torch.contiguous_format) if whole else _sample(tensor)
    wide = WIDE.get(kept.dtype)
    if wide is not None:
        kept = kept.to(wide)
    return Picture(data=kept, sampled_from=None if whole else tuple(tensor.shape))


def fetch(pictures: Iterable[Picture]) -> None:
    """Turn the tensors of pictures into arrays: one transfer for each device and dtype."""
    groups: dict[tuple[torch.device, torch.dtype], list[Picture]] = {}
    for picture in pictures:
        data = picture.data
        if data.device.type == "cpu":
            picture.data = data.resolve_conj().resolve_neg().numpy()
        else:
            groups.setdefault((data.device, data.dtype), []).append(picture)
    for group in groups.values():
        shapes = [tuple(picture.data.shape) for picture in group]
        flat = (
            torch.cat([picture.data.resolve_conj().resolve_neg().reshape(-1) for picture in group])
            .cpu()
            .numpy()
        )
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        for picture, shape, part in zip(group, shapes, np.split(flat, ends[:-1]), strict=True):
            picture.data = part.reshape(shape)


def _magnitudes(array: np.ndarray) -> np.ndarray:
    """Absolute values in double precision: those of complex64 overflow in single."""
    return np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))


@np.errstate(all="ignore")  # a signalling NaN in memory not written yet warns when it is cast
def norm_of(array: np.ndarray) -> float | None:
    """2-norm that neither over- nor underflows; None for integers, whose norm says nothing."""
    if array.dtype.kind not in "fc":
        return None
    wide = _magnitudes(array)
    peak = float(wide.max(initial=0.0))
    if not math.isfinite(peak):
        return peak  # NaN wins over Inf, as in a sum of squares
    if peak == 0.0 or 1e-150 < peak < 1e150:
        return float(np.sqrt(np.sum(wide * wide)))
    return float(np.sqrt(np.sum((wide / peak) ** 2)) * peak)


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    """Every k-th element along each dimension, so that at most 1024 remain.

    Of a matrix, and of the last two dimensions of what has more, at most 32 rows of 32: an image
    stays an image. Only what is kept is read.
    """
    tensor = tensor.resolve_conj().resolve_neg()
    sizes, strides = _sparser(tuple(tensor.shape), tensor.stride())
    return tensor.as_strided(sizes, strides).clone(memory_format=torch.contiguous_format)


@lru_cache(maxsize=256)
def _sparser(
    shape: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes and strides that see every k-th element of a tensor."""
    steps: list[int] = []
    room = SIDE * SIDE
    for place, size in enumerate(reversed(shape)):
        most = room if len(shape) == 1 or place > 1 else min(room, SIDE)
        step = -(-size // most)
        steps.insert(0, step)
        room = max(1, room // -(-size // step))
    sizes = tuple(-(-size // step) for size, step in zip(shape, steps, strict=True))
    return sizes, tuple(stride * step for stride, step in zip(strides, steps, strict=True))


@np.errstate(all="ignore")
def detail_of(picture: Picture) -> Detail:
    """Statistics of the numbers kept; of a down-sampled picture the values alone."""
    array = picture.data
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    values = Values(
        shape=tuple(array.shape),
        dtype=array.dtype.name,
        data=little.tobytes(),
        sampled_from=picture.sampled_from,
    )
    if picture.sampled_from is not None:
        return Detail(values=values)
    finite = np.isfinite(array)
    good = (_magnitudes(array) if array.dtype.kind == "c" else array)[finite].astype(np.float64)
    return Detail(
        min=significant(float(good.min())) if good.size else None,
        max=significant(float(good.max())) if good.size else None,
        mean=significant(float((good / good.size).sum())) if good.size else None,
        zeros=int(np.count_nonzero(array == 0)),
        nans=int(np.count_nonzero(np.isnan(array))),
        infs=int(np.count_nonzero(np.isinf(array))),
        negatives=int(np.count_nonzero(good < 0)),
        histogram=_histogram(good),
        values=values,
    )


def _histogram(good: np.ndarray) -> Histogram | None:
    magnitude = np.abs(good[good != 0])
    if not magnitude.size:
        return None
    exponents = np.frexp(magnitude)[1]
    first = int(exponents.min())
    return Histogram(
        first_exponent=first, counts=tuple(int(count) for count in np.bincount(exponents - first))
    )


def significant(number: float) -> float:
    """Nine significant digits: all that a float32 holds, half the bytes of a double in a file."""
    return float(f"{number:.9g}")
