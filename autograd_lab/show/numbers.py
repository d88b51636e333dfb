"""Turn numbers, sizes and shapes into the one way in which this package writes them."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["count", "format_decades", "format_nbytes", "format_number", "format_shape"]


def format_number(value: complex | None) -> str:
    """Write a number with 4 significant digits: no `-0`, no padded exponent; NaN and Inf as words.

    Whole numbers below a million are written in full. None is written "none".

    >>> [format_number(x) for x in (0.1, -0.0, 1e-05, 12345.678, 12345, float("-inf"))]
    ['0.1', '0', '1e-5', '1.235e4', '12345', '-Inf']
    """
    if value is None:
        return "none"
    if isinstance(value, complex):
        return _format_complex(value)
    if isinstance(value, bool):
        return str(value)
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    mantissa, has_exponent, exponent = f"{float(value):.4g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if has_exponent else mantissa


def format_shape(shape: Sequence[int] | None) -> str:
    """Write a shape as torch does; "scalar" for `()`, "?" where it is unknown."""
    if shape is None:
        return "?"
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})" if shape else "scalar"


def format_nbytes(nbytes: int) -> str:
    """Write bytes in the largest unit that keeps the number at 1 or more (1 kB is 1000 bytes)."""
    if nbytes < 1000:
        return count(nbytes, "byte")
    for unit, size in (("kB", 1e3), ("MB", 1e6), ("GB", 1e9)):
        if nbytes < size * 999.5:
            return f"{nbytes / size:.3g} {unit}"
    return f"{nbytes / 1e12:.3g} TB"


def format_decades(decades: float) -> str:
    """Write a number of decades with one decimal."""
    text = f"{abs(decades):.1f}"
    return f"{text} decades"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun: "1 node", "2 nodes", "no nodes"."""
    many = plural or f"{noun}s"
    return f"no {many}" if number == 0 else f"{number} {noun if number == 1 else many}"


def _format_complex(value: complex) -> str:
    imaginary = format_number(value.imag)
    sign = "" if imaginary.startswith("-") else "+"
    return f"{format_number(value.real)}{sign}{imaginary}j"
