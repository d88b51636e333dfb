"""Turn snapshots into cards: name, shape, statistics, numbers, heat map and histogram."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from autograd_lab.recording import SavedSlot, Snapshot, TensorId

from .frame_text import number_rows, statistics
from .numbers import format_nbytes, format_shape
from .pixels import Picture, picture_of
from .words import PLAIN, Words, is_bad

__all__ = ["Cards"]

Card = dict[str, Any]
SIDES = (32, 24, 16, 12, 8, 6, 4)


class Cards:
    """The cards of a pack; the same value under the same name is one card."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.cards: list[Card] = []
        self.pictures: dict[int, Picture] = {}
        self._places: dict[object, int] = {}
        self._rows: dict[int, list[list[str]]] = {}

    def add(self, snapshot: Snapshot | None, name: str = "") -> int:
        """The number of the card of a value; None is no gradient."""
        if snapshot is None:
            return self._place(("none", name), {"name": name, **_blank("none")})
        held = id(snapshot) if snapshot.version is None else snapshot.version
        values = snapshot.values  # of memory written through .data the version does not move
        data = None if values is None else values.data
        key = (name, snapshot.tensor, held, str(snapshot.norm), data)
        if key in self._places:
            return self._places[key]
        numbers = self._numbers(snapshot)
        card = self._head(name, snapshot.tensor)
        card["lines"] = [] if numbers and snapshot.numel == 1 else statistics(snapshot)
        if is_bad(snapshot):
            card["bad"] = True
        if numbers:
            card["numbers"] = numbers
            return self._place(key, card)
        histogram = snapshot.detail.histogram if snapshot.detail else None
        if histogram is not None and histogram.counts:
            card["histogram"] = {
                "first": histogram.first_exponent,
                "counts": list(histogram.counts),
            }
        place = self._place(key, card)
        picture = picture_of(snapshot.values)
        if picture is not None:
            self.pictures[place] = picture
        return place

    def add_all(self, snapshots: Iterable[Snapshot | None], names: Sequence[str] = ()) -> list[int]:
        """The cards of some values; names: "" where there are none."""
        found = list(snapshots)
        return [
            self.add(one, name) for one, name in zip(found, names or [""] * len(found), strict=True)
        ]

    def add_saved(self, slot: SavedSlot, value: Snapshot | None) -> int:
        """The card of a saved tensor; `value` is what it held, where that is known."""
        facts = slot.name, slot.tensor, slot.version, slot.nbytes, slot.packed_by, slot.problem
        key = ("saved", *facts, slot.dtype, slot.shape, value is None)
        if key in self._places:
            return self._places[key]
        known = slot.tensor is not None and self.words.tensor(slot.tensor)
        lines = [format_nbytes(slot.nbytes)] if slot.shape is not None else []
        lines += [f"version {slot.version}"] if slot.version is not None else []
        lines += [f"packed by {slot.packed_by}"] if slot.packed_by else []
        lines += [slot.problem] if slot.problem else []
        card: Card = {
            "name": f"{slot.name} = {known}" if known else slot.name,
            "shape": format_shape(slot.shape),
            "dtype": "" if slot.dtype == PLAIN else slot.dtype or "",
            "lines": lines,
        }
        if value is not None and value.version == slot.version and not slot.problem:
            numbers = self._numbers(value)
            card |= {"numbers": numbers} if numbers else {}
            card |= {"bad": True} if is_bad(value) else {}
        return self._place(key, card)

    def shown(self, nbytes: int) -> list[Card]:
        """The cards, with heat maps as fine as fit into so many bytes, or without any."""
        fitting = (
            side
            for side in SIDES
            if sum(picture.nbytes(side) for picture in self.pictures.values()) <= nbytes
        )
        side = next(fitting, None)
        if side is None:
            return self.cards
        pixels = {at: picture.pixels(side) for at, picture in self.pictures.items()}
        return [
            {**card, "pixels": pixels[at]} if at in pixels else card
            for at, card in enumerate(self.cards)
        ]

    def _head(self, name: str, tensor: TensorId) -> Card:
        ref = self.words.recording.tensor(tensor)
        dtype = "" if ref.dtype == PLAIN else ref.dtype
        return {"name": name, "shape": format_shape(ref.shape), "dtype": dtype}

    def _numbers(self, snapshot: Snapshot) -> list[list[str]]:
        """Its numbers, written once: a value is an output, then an input, then a saved tensor."""
        key = id(snapshot)
        if key not in self._rows:
            self._rows[key] = number_rows(snapshot)
        return self._rows[key]

    def _place(self, key: object, card: Card) -> int:
        if key not in self._places:
            self._places[key] = len(self.cards)
            self.cards.append(card)
        return self._places[key]


def _blank(word: str) -> Card:
    return {"shape": "", "dtype": "", "lines": [word]}
