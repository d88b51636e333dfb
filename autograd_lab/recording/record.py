"""Give every noun of a recording an equality that survives NaN.

A recording that went through a file can so be compared with the one that was saved.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import cast

__all__ = ["Record"]


class Record:
    """Base of the frozen dataclasses of this room; equal when all fields are, NaN equal to NaN.

    Subclasses are declared with `@dataclass(frozen=True, slots=True, kw_only=True, eq=False)`.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Compare field by field; another type is never equal."""
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        names = field_names(type(self))
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        """Hash consistent with `==`."""
        values = (_hashable(getattr(self, name)) for name in field_names(type(self)))
        return hash((type(self).__name__, *values))


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """Names of a record's fields, in the order of their declaration."""
    return tuple(field.name for field in fields(kind))


def _same(a: object, b: object) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        left, right = cast("tuple[object, ...]", a), cast("tuple[object, ...]", b)
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(a, float) and isinstance(b, float) and a != a:
        return b != b
    return a == b


def _hashable(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(map(_hashable, cast("tuple[object, ...]", value)))
    return "nan" if isinstance(value, float) and value != value else value
