"""Turn values into heat maps of one byte an element, down-sampled to a stated side."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass

import numpy as np

from autograd_lab.recording import Values

from .numbers import format_number

__all__ = ["Picture", "picture_of"]

BAD = -128
DEEPEST = 127


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    """Numbers as slices of rows and columns, and the shape of the tensor that they come from."""

    slices: np.ndarray
    full: tuple[int, ...]

    def nbytes(self, side: int) -> int:
        """Bytes of its pixels where each side has at most `side`."""
        return self._sheet(side)[0].size

    def pixels(self, side: int) -> dict[str, object]:
        """The pixels: -127 to 127 of a symmetric scale, -128 for NaN and Inf.

        Slices stand in a grid, a row and a column of zeros apart, as many as there is room for.
        """
        shown, count = self._sheet(side)
        finite = np.isfinite(shown)
        scale = float(np.abs(shown[finite]).max(initial=0.0))
        pixels = np.full(shown.shape, BAD, dtype=np.int8)
        deep = shown[finite] / scale * DEEPEST if scale else np.zeros(int(finite.sum()))
        pixels[finite] = np.rint(deep).astype(np.int8)
        rows, cols = shown.shape
        return {
            "rows": rows,
            "cols": cols,
            "data": base64.b64encode(pixels.tobytes()).decode(),
            "scale": f"±{format_number(scale)}",
            "note": self._note(side, count),
        }

    def _sheet(self, side: int) -> tuple[np.ndarray, int]:
        """The slices beside and below each other, and how many."""
        _, rows, cols = self.slices.shape
        slices = self.slices[:, :: _stride(rows, side), :: _stride(cols, side)]
        _, rows, cols = slices.shape
        across = min(len(slices), max(1, (side + 1) // (cols + 1)))
        down = min(-(-len(slices) // across), max(1, (side + 1) // (rows + 1)))
        slices = slices[: across * down]
        sheet = np.zeros((down * (rows + 1), across * (cols + 1)))
        for at, one in enumerate(slices):
            top, left = at // across * (rows + 1), at % across * (cols + 1)
            sheet[top : top + rows, left : left + cols] = one
        return sheet[:-1, :-1], len(slices)

    def _note(self, side: int, count: int) -> str:
        """What is shown of the tensor: "4 of 256 slices of 8 x 64, every 2nd column"."""
        *leading, rows, cols = (1, 1, *self.full)
        total = math.prod(leading)
        steps = [
            _stride(full, -(-kept // _stride(kept, side)))
            for full, kept in zip((rows, cols), self.slices.shape[1:], strict=True)
        ]
        skipped = [
            f"every {_ordinal(step)} {word}"
            for step, word in zip(steps, ("row", "column"), strict=True)
            if step > 1
        ]
        if len(self.full) == 1 and skipped:
            return f"{cols} numbers, every {_ordinal(steps[1])}"
        whole = f"{rows} x {cols}"
        if total > 1:
            whole = f"{count} of {total} slices of {whole}"
        return ", ".join([whole, *skipped])


def picture_of(values: Values | None) -> Picture | None:
    """The picture of some values; of complex ones their magnitude; None where there are none."""
    if values is None or not values.array.size:
        return None
    array = values.array
    array = np.abs(array) if np.iscomplexobj(array) else array
    shape = values.sampled_from or values.shape
    rows, cols = (1, 1, *array.shape)[-2:]
    slices = array.reshape(-1, rows, cols).astype(np.float64)
    return Picture(slices=slices, full=shape)


def _stride(length: int, side: int) -> int:
    return -(-length // side)


def _ordinal(number: int) -> str:
    """2nd, 3rd, 4th, 11th."""
    ends = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if 10 < number % 100 < 14 else ends.get(number % 10, 'th')}"
