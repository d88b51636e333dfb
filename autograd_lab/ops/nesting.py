"""Flatten the lists among values, and put them back: autograd sees tensors one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["flatten", "flatten_as", "layout_of", "regroup"]

Layout = tuple[int | None, ...]
"""For each value None, or how many elements its list has."""


def layout_of(values: Iterable[Any]) -> Layout | None:
    """Where lists stand among values; None where there are none."""
    layout = tuple(len(one) if type(one) is list else None for one in values)
    return None if all(size is None for size in layout) else layout


def flatten(values: Iterable[Any]) -> list[Any]:
    """All values, those of a list in its place."""
    flat: list[Any] = []
    for one in values:
        if type(one) is list:
            flat.extend(one)
        else:
            flat.append(one)
    return flat


def flatten_as(layout: Layout, values: Iterable[Any]) -> list[Any]:
    """As flatten, where None may stand for a list: it then fills the list's places."""
    flat: list[Any] = []
    for size, one in zip(layout, values, strict=True):
        if size is None:
            flat.append(one)
        else:
            flat.extend([None] * size if one is None else one)
    return flat


def regroup(flat: Sequence[Any], layout: Layout) -> tuple[Any, ...]:
    """The inverse of flatten."""
    grouped: list[Any] = []
    at = 0
    for size in layout:
        if size is None:
            grouped.append(flat[at])
            at += 1
        else:
            grouped.append(list(flat[at : at + size]))
            at += size
    return tuple(grouped)
