"""Estimate how wide a text is drawn, without a font: boxes are laid out before they are shown.

The widths are those of DejaVu Sans at 12 px, wider than most system fonts, so that text fits.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["first_fitting", "fitted", "sans_width"]

NARROW = frozenset("fijlrtI.,:;'|!()[] -")
WIDE = frozenset("mwMW%@…")
NARROW_PX, USUAL_PX, CAPITAL_PX, WIDE_PX = 4.5, 7.5, 8.5, 11.0


def sans_width(text: str) -> float:
    """About how many px a text takes at 12 px."""
    return sum(map(_width, text))


def first_fitting(choices: Iterable[str], room: float) -> str:
    """The first of some texts that fits, or nothing."""
    return next((one for one in choices if sans_width(one) <= room), "")


def fitted(text: str, room: float) -> str:
    """The end of a text that fits, with an ellipsis where its beginning was cut."""
    if sans_width(text) <= room:
        return text
    end = text
    while end and sans_width(end) > room - WIDE_PX:
        end = end[1:]
    return f"…{end}" if end else ""


def _width(letter: str) -> float:
    if letter in NARROW:
        return NARROW_PX
    if letter in WIDE or ord(letter) > 0x2E80:  # east Asian letters are square
        return WIDE_PX if ord(letter) <= 0x2E80 else 12.0
    return CAPITAL_PX if letter.isupper() else USUAL_PX
