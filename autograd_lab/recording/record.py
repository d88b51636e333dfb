"""Give every noun of a recording an equality that survives NaN, so that a round trip through a
file can be compared.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache

__all__ = ["Record"]


class Record:
    """Base of the frozen dataclasses of this room; two records are equal when all their fields
    are, NaN counting as equal to NaN.

    Subclasses are declared with `@dataclass(frozen=True, slots=True, kw_only=True, eq=False)`.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Compare field by field; another type is never equal."""
        if type(self) is not type(other):
            return NotImplemented
        return all(
            _same(getattr(self, name), getattr(other, name)) for name in field_names(type(self))
        )

    def __hash__(self) -> int:
        """Hash consistent with `==`."""
        return hash(
            (
                type(self).__name__,
                *(_hashable(getattr(self, name)) for name in field_names(type(self))),
            )
        )


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """Names of a record's fields, in the order of their declaration."""
    return tuple(field.name for field in fields(kind))


def _same(a: object, b: object) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, float) and isinstance(b, float) and a != a:
        return b != b
    return a == b


def _hashable(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(map(_hashable, value))
    return "nan" if isinstance(value, float) and value != value else value
