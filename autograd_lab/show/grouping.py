"""Fold a long axis of names into a few labelled stretches, by module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Stretch", "spaced", "stretches"]


class Stretch(NamedTuple):
    """Positions `start` to `stop` (not included) of an axis, and the name that they share."""

    start: int
    stop: int
    label: str

    @property
    def middle(self) -> float:
        """Where its label stands."""
        return (self.start + self.stop - 1) / 2


def stretches(paths: Sequence[str], limit: int) -> list[Stretch]:
    """Cut an axis into at most `limit` stretches of neighbours whose dotted paths begin alike.

    The deepest names that are few enough win. When only very few would be left, deeper neighbours
    are joined instead, and labelled by the first and the last of them: "layers.0 … 9".
    """
    depth = max((path.count(".") + 1 for path in paths), default=1)
    cuts = [
        _runs([".".join(path.split(".")[:parts]) for path in paths])
        for parts in range(1, depth + 1)
    ]
    fitting = [cut for cut in cuts if len(cut) <= limit]
    too_long = [cut for cut in cuts if len(cut) > limit]
    if fitting and (len(fitting[-1]) >= min(limit, 4) or not too_long):
        return fitting[-1]
    return _joined(too_long[0], limit) if too_long else []


def spaced(cut: Sequence[Stretch], gap: float) -> list[Stretch]:
    """The stretches whose labels have room, `gap` positions apart; wide ones win."""
    kept: list[Stretch] = []
    for stretch in sorted(cut, key=lambda one: (one.start - one.stop, one.start)):
        if all(abs(stretch.middle - other.middle) >= gap for other in kept):
            kept.append(stretch)
    return sorted(kept)


def _runs(names: Sequence[str]) -> list[Stretch]:
    found: list[Stretch] = []
    for at, name in enumerate(names):
        if found and found[-1].label == name:
            found[-1] = Stretch(found[-1].start, at + 1, name)
        else:
            found.append(Stretch(at, at + 1, name))
    return found


def _joined(cut: list[Stretch], limit: int) -> list[Stretch]:
    size = -(-len(cut) // max(limit, 1))
    groups = [cut[at : at + size] for at in range(0, len(cut), size)]
    return [Stretch(group[0].start, group[-1].stop, _range(group)) for group in groups]


def _range(group: list[Stretch]) -> str:
    first, last = group[0].label, group[-1].label
    if first == last or not last:
        return first
    parent = first.rpartition(".")[0]
    tail = last.rpartition(".")[2] if parent and last.rpartition(".")[0] == parent else last
    return f"{first} … {tail}"
