"""The noun for what a gradient flow shows at a glance, and the words in which findings speak."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .rows import FlowRow

__all__ = ["FlowFinding", "counted", "listed", "number_words", "place_words", "where_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFinding:
    """One thing to know: `what` it is, `where`, the numbers that show it, and what to try."""

    what: Literal["non-finite", "exploding", "vanishing", "zero", "unused", "frozen"]
    where: str
    evidence: str
    try_: str


def where_of(row: FlowRow) -> str:
    """A node with its module and line."""
    return place_words(row.name.rpartition("::")[2], row.module, row.place)


def place_words(name: str, module: str | None, place: str | None) -> str:
    """A name with its module and line: "relu in act (net.py:7)"."""
    return name + (f" in {module}" if module else "") + (f" ({place})" if place else "")


def listed(names: Sequence[str], shown: int = 4) -> str:
    """The first names, and how many more."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def counted(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def number_words(value: float | None) -> str:
    """A number in 3 digits; NaN and Inf as words, "unknown" for None."""
    if value is None:
        return "unknown"
    if not math.isfinite(value):
        return "NaN" if value != value else "Inf" if value > 0 else "-Inf"
    return f"{value:.3g}"
