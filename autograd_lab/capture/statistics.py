"""Turn one tensor's numbers into a Detail: numpy, no torch arithmetic, no global state, nothing
that raises on NaN or Inf.

Sources: histograms by binary exponent because torch.histc raises on NaN, Inf and bf16; block means
because they show
the whole of a large matrix, and are said to be block means wherever they are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.functional import adaptive_avg_pool2d

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

    data  the whole tensor, or block means when `sampled_from` is a shape; a tensor until `fetch`,
          then an array
    """

    data: Any
    sampled_from: tuple[int, ...] | None = None


def picture_of(tensor: torch.Tensor, *, whole: bool) -> Picture:
    """Copy a dense tensor's numbers on its own device: all of them, or at most 32 x 32 block
    means. The caller runs it invisibly.
    """
    tensor = tensor.to(WIDE.get(tensor.dtype, tensor.dtype))
    if whole:
        return Picture(data=tensor.clone(memory_format=torch.contiguous_format))
    return Picture(data=_block_means(tensor), sampled_from=tuple(tensor.shape))


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


def norm_of(array: np.ndarray) -> float | None:
    """2-norm that neither over- nor underflows; None for integers, whose norm says nothing."""
    if array.dtype.kind not in "fc":
        return None
    wide = np.abs(array).astype(np.float64)
    peak = float(wide.max(initial=0.0))
    if not math.isfinite(peak) or peak == 0.0 or 1e-150 < peak < 1e150:
        return float(np.sqrt(np.sum(wide * wide)))
    return float(np.sqrt(np.sum((wide / peak) ** 2)) * peak)


def _block_means(tensor: torch.Tensor) -> np.ndarray:
    rows = tensor.reshape(-1, tensor.shape[-1]) if tensor.ndim > 1 else tensor.reshape(1, -1)
    if tensor.is_complex():
        rows = rows.abs()
    if not rows.dtype.is_floating_point:
        rows = rows.to(torch.float32)
    height, width = (
        min(SIDE, rows.shape[0]),
        min(SIDE if tensor.ndim > 1 else SIDE * SIDE, rows.shape[1]),
    )
    if rows.shape[0] % height == 0 and rows.shape[1] % width == 0:
        means = rows.reshape(height, rows.shape[0] // height, width, rows.shape[1] // width).mean(
            (1, 3)
        )
    else:
        means = adaptive_avg_pool2d(rows[None], (height, width))[0]
    return means


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
    good = (np.abs(array) if array.dtype.kind == "c" else array)[finite].astype(np.float64)
    return Detail(
        min=significant(float(good.min())) if good.size else None,
        max=significant(float(good.max())) if good.size else None,
        mean=significant(float(good.mean())) if good.size else None,
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
    """Nine significant digits: all that a float32 holds, and half the bytes of a double in a
    file.
    """
    return float(f"{number:.9g}")
