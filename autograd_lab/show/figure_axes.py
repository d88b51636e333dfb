"""What the panels of a figure share: axes in decades, letters for states, safe labels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.font_manager import findfont, get_font

from .palette import Palette

__all__ = [
    "NORMAL",
    "SMALL",
    "clean",
    "decades",
    "draw_legend",
    "limits",
    "log10",
    "prepare",
    "put_letter",
    "say",
]

SMALL, NORMAL = 10.0, 11.0


def prepare(axes: Axes, palette: Palette) -> None:
    """Colours, sizes and grid of one panel."""
    axes.set_facecolor(palette.background)
    axes.tick_params(colors=palette.text, labelsize=SMALL, length=3)
    axes.grid(visible=True, color=palette.line, linewidth=0.6)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(palette.dim)


def limits(logs: Sequence[float]) -> tuple[float, float]:
    """Whole decades around the values; a flat line gets a decade on each side."""
    if not logs:
        return -1.0, 1.0
    low, high = math.floor(min(logs)), math.ceil(max(logs))
    return (low - 1.0, high + 1.0) if high - low < 2 else (float(low), float(high))


def decades(axis: object, low: float, high: float) -> None:
    """At most eight ticks on whole decades, written 1e-3."""
    stride = max(1, math.ceil((high - low) / 8))
    first = math.ceil(low / stride) * stride
    ticks = list(range(first, math.floor(high) + 1, stride))
    axis.set_ticks(ticks)  # pyright: ignore[reportAttributeAccessIssue]
    axis.set_ticklabels([f"1e{tick}" if tick else "1" for tick in ticks])  # pyright: ignore[reportAttributeAccessIssue]


def log10(value: float | None) -> float | None:
    """The logarithm of a positive finite number; None for all else."""
    return math.log10(value) if value and 0 < value < math.inf else None


def put_letter(axes: Axes, x: float, y: float, text: str, fill: str, colour: str) -> None:
    """A letter in a box, for a state that has no number."""
    axes.text(
        x,
        y,
        text,
        ha="center",
        va="center",
        fontsize=SMALL,
        fontweight="bold",
        color=colour,
        zorder=5,
        bbox={"boxstyle": "round,pad=0.2", "facecolor": fill, "edgecolor": colour},
    )


def draw_legend(axes: Axes, palette: Palette) -> None:
    """The legend, where it hides least."""
    shown = axes.legend(fontsize=SMALL, frameon=False, loc="best")
    for text in shown.get_texts():
        text.set_color(palette.text)


def say(axes: Axes, words: str, palette: Palette) -> None:
    """Words in the middle of an empty panel."""
    axes.text(
        0.5,
        0.5,
        words,
        transform=axes.transAxes,
        ha="center",
        va="center",
        fontsize=NORMAL,
        color=palette.dim,
    )


def clean(text: str) -> str:
    """Replace characters that the figure's font can't draw, which matplotlib would warn about."""
    known = get_font(findfont("DejaVu Sans")).get_charmap()
    return "".join(one if ord(one) in known else "□" for one in text)
