"""Give each meaning its colours, light and dark; made from Okabe and Ito's colour-blind-safe eight.

Text colours have a contrast of at least 4.5 on each fill they stand on, strokes at least 3 (a test
measures both). Colour is never the only cue: a lane, an arrow, a glyph or a word says the same.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

__all__ = ["DARK", "LIGHT", "THEMES", "Palette", "Theme", "contrast", "css_variables"]

Theme = Literal["auto", "light", "dark"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """Colours by meaning.

    background, surface, line, text, dim   the page, a raised area, a rule, words, quieter words
    forward_*   direction of the forward pass (blue)
    backward_*  direction of backward (orange)
    leaf_*      a leaf and its `.grad` (green)
    problem_*   NaN, Inf and errors (reddish purple)
    later_*     a step that has not run yet (grey)
    The suffixes: `stroke` an outline or arrow, `fill` an area, `text` words on that area or on the
    background, `now` the filled area of what runs now or raised, `on_now` words on it.
    """

    background: str
    surface: str
    line: str
    text: str
    dim: str
    forward_stroke: str
    forward_fill: str
    forward_text: str
    forward_now: str
    backward_stroke: str
    backward_fill: str
    backward_text: str
    backward_now: str
    on_now: str
    leaf_stroke: str
    leaf_fill: str
    leaf_text: str
    problem_stroke: str
    problem_fill: str
    problem_text: str
    problem_now: str
    later_stroke: str
    later_text: str


LIGHT = Palette(
    background="#ffffff",
    surface="#f5f7f9",
    line="#d3d9df",
    text="#1c2126",
    dim="#59636e",
    forward_stroke="#0072b2",
    forward_fill="#e6f2fa",
    forward_text="#00527f",
    forward_now="#0072b2",
    backward_stroke="#c65600",
    backward_fill="#fdf1e0",
    backward_text="#8a3f00",
    backward_now="#b34d00",
    on_now="#ffffff",
    leaf_stroke="#00855f",
    leaf_fill="#e4f5ef",
    leaf_text="#005c42",
    problem_stroke="#b0478a",
    problem_fill="#fbeaf4",
    problem_text="#8a2766",
    problem_now="#9c3779",
    later_stroke="#868f99",
    later_text="#59636e",
)
DARK = Palette(
    background="#12161b",
    surface="#1a2028",
    line="#37404b",
    text="#e8edf2",
    dim="#a3afbb",
    forward_stroke="#56b4e9",
    forward_fill="#12304a",
    forward_text="#b3def7",
    forward_now="#56b4e9",
    backward_stroke="#e69f00",
    backward_fill="#3a2a0a",
    backward_text="#ffd58a",
    backward_now="#e69f00",
    on_now="#101418",
    leaf_stroke="#2fc596",
    leaf_fill="#0d3527",
    leaf_text="#98e8cb",
    problem_stroke="#e08fbd",
    problem_fill="#44223a",
    problem_text="#f6c1de",
    problem_now="#e08fbd",
    later_stroke="#76818d",
    later_text="#a3afbb",
)
THEMES = {"light": LIGHT, "dark": DARK}


def css_variables(palette: Palette) -> str:
    """Write a palette as CSS custom properties: `--al-forward-stroke:#0072b2;...`."""
    return "".join(
        f"--al-{field.name.replace('_', '-')}:{getattr(palette, field.name)};"
        for field in fields(palette)
    )


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two `#rrggbb` colours, from 1 to 21 (WCAG 2)."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
