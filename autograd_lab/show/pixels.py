"""Turn values into heat maps of one byte an element, down-sampled to a stated side."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import numpy as np

from autograd_lab.recording import Values

from .numbers import format_number

__all__ = ["Picture", "picture_of"]

BAD = -128
DEEPEST = 127


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    """Numbers as rows and columns, and how many rows and columns the tensor itself has."""

    array: np.ndarray
    full: tuple[int, int]

    def nbytes(self, side: int) -> int:
        """Bytes of its pixels where each side has at most `side`."""
        rows, cols = self.array.shape
        return -(-rows // _stride(rows, side)) * -(-cols // _stride(cols, side))

    def pixels(self, side: int) -> dict[str, object]:
        """The pixels: -127 to 127 of a symmetric scale, -128 for NaN and Inf."""
        down, across = (_stride(length, side) for length in self.array.shape)
        shown = self.array[::down, ::across]
        finite = np.isfinite(shown)
        scale = float(np.abs(shown[finite]).max(initial=0.0))
        pixels = np.full(shown.shape, BAD, dtype=np.int8)
        deep = shown[finite] / scale * DEEPEST if scale else np.zeros(int(finite.sum()))
        pixels[finite] = np.rint(deep).astype(np.int8)
        rows, cols = shown.shape
        whole = f"{self.full[0]} x {self.full[1]}"
        picked = shown.shape != self.full
        note = f"{rows} x {cols} of {whole}, every k-th row and column" if picked else whole
        return {
            "rows": rows,
            "cols": cols,
            "data": base64.b64encode(pixels.tobytes()).decode(),
            "scale": f"±{format_number(scale)}",
            "note": note,
        }


def picture_of(values: Values | None) -> Picture | None:
    """The picture of some values; of complex ones their magnitude; None where there are none."""
    if values is None or not values.array.size:
        return None
    array = values.array
    array = np.abs(array) if np.iscomplexobj(array) else array
    shape = values.sampled_from or values.shape
    columns = shape[-1] if shape else 1
    numel = int(np.prod(shape, dtype=np.int64))
    flat = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)
    return Picture(array=flat.astype(np.float64), full=(numel // max(columns, 1), columns))


def _stride(length: int, side: int) -> int:
    return -(-length // side)
