"""Turn an object into its own attributes, without running any code of its class."""

from __future__ import annotations

from collections.abc import Iterator
from types import MemberDescriptorType
from typing import Any

__all__ = ["dict_of", "slots_of"]


def dict_of(value: object) -> dict[str, Any]:
    """The instance's `__dict__` itself, also where its class overrides attribute access."""
    if type(value).__dictoffset__ == 0:
        return {}
    found = object.__getattribute__(value, "__dict__")
    return found if type(found) is dict else {}


def slots_of(value: object) -> Iterator[tuple[MemberDescriptorType, Any]]:
    """Yield (member, value) of every `__slots__` entry that is set, base classes first."""
    for base in reversed(type(value).__mro__):
        if "__slots__" not in base.__dict__:
            continue
        for member in tuple(base.__dict__.values()):
            if type(member) is MemberDescriptorType:
                try:
                    yield member, member.__get__(value)
                except AttributeError:
                    continue  # declared and never set
