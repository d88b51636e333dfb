"""Draw the gradient of each leaf: a bar or dot for a number, a letter and a hatch for a state."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from autograd_lab.replay import ParameterRow

from .figure_axes import NORMAL, SMALL, clean, decades, limits, log10, put_letter, say
from .flow_text import LETTERS
from .grouping import Stretch, spaced, stretches
from .numbers import format_number
from .palette import Palette
from .tables import shorten

__all__ = ["NAMED_LEAVES", "draw_leaves"]

NAMED_LEAVES = 26
HATCHES = {"value": "", "zero": "", "unused": "..", "frozen": "////", "non-finite": "xxxx"}
STATE_NAMES = {
    "zero": "0  exactly zero",
    "unused": "U  never reached",
    "frozen": "F  frozen",
    "non-finite": "N  NaN or Inf",
}


def draw_leaves(axes: Axes, leaves: Sequence[ParameterRow], palette: Palette) -> None:
    """Draw the rms of each leaf's gradient; many leaves are labelled by module."""
    axes.set_xlabel("rms (log scale)", fontsize=SMALL, color=palette.text)
    logs = [log10(row.rms) if row.state == "value" else None for row in leaves]
    low, high = limits([log for log in logs if log is not None])
    low -= 0.2 * (high - low)
    named = len(leaves) <= NAMED_LEAVES
    if named:
        cut = [Stretch(at, at + 1, row.name) for at, row in enumerate(leaves)]
        _draw_bars(axes, leaves, logs, low, high, palette)
    else:
        cut = stretches([_module(row.name) for row in leaves], NAMED_LEAVES)
        _draw_dots(axes, leaves, logs, low, palette)
        for stretch in cut[1::2]:
            span = (stretch.start - 0.5, stretch.stop - 0.5)
            axes.axhspan(*span, color=palette.surface, zorder=0)
    decades(axes.xaxis, low, high)
    margin = high - low
    axes.set_xlim(low - (0 if named else 0.04 * margin), high + (0.25 if named else 0.04) * margin)
    axes.set_ylim(max(len(leaves), 7) - 0.4, -0.6)
    cut = spaced(cut, len(leaves) / 32)
    labels = [clean(shorten(_with_states(s, leaves, named), 30, keep_end=True)) for s in cut]
    axes.set_yticks([stretch.middle for stretch in cut])
    axes.set_yticklabels(labels, parse_math=False)
    states = [state for state in STATE_NAMES if any(row.state == state for row in leaves)]
    axes.set_title(
        "Gradient of each parameter", fontsize=NORMAL, color=palette.text, pad=20 if states else 6
    )
    if states:
        axes.annotate(
            "    ".join(STATE_NAMES[state] for state in states),
            (0.5, 1.0),
            xycoords="axes fraction",
            xytext=(0, 4),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=SMALL,
            color=palette.dim,
        )
    if not leaves:
        say(axes, "no parameter took part", palette)


def _draw_bars(
    axes: Axes,
    leaves: Sequence[ParameterRow],
    logs: Sequence[float | None],
    low: float,
    high: float,
    palette: Palette,
) -> None:
    """A bar and its number for each leaf; a hatch and a letter where there is no number."""
    for at, (row, log) in enumerate(zip(leaves, logs, strict=True)):
        if log is not None:
            axes.barh(
                at,
                log - low,
                left=low,
                height=0.72,
                facecolor=palette.leaf_fill,
                edgecolor=palette.leaf_stroke,
                linewidth=1.2,
            )
            number = f" {format_number(row.rms)}"
            axes.text(log, at, number, va="center", fontsize=SMALL, color=palette.text)
            continue
        bad = row.state == "non-finite"
        fill = palette.problem_fill if bad else palette.background
        axes.barh(
            at,
            (high - low) * (1.0 if bad else 0.12),
            left=low,
            height=0.72,
            facecolor=fill,
            edgecolor=palette.problem_stroke if bad else palette.dim,
            hatch=HATCHES[row.state],
            linewidth=1.2,
            linestyle="--" if row.state == "unused" else "-",
        )
        letter, colour = LETTERS[row.state] or "?", palette.problem_text if bad else palette.text
        put_letter(axes, low + 0.06 * (high - low), at, letter, fill, colour)


def _draw_dots(
    axes: Axes,
    leaves: Sequence[ParameterRow],
    logs: Sequence[float | None],
    low: float,
    palette: Palette,
) -> None:
    """A dot for each leaf; at the left edge the leaves without a number, a marker a state."""
    known = [(log, at) for at, log in enumerate(logs) if log is not None]
    if known:
        size = 5.0 if len(leaves) <= 120 else 2.5
        style = {"color": palette.leaf_stroke, "markersize": size, "linestyle": "none"}
        axes.plot(*zip(*known, strict=True), "o", **style)
    for state, letter in LETTERS.items():
        rows = [at for at, row in enumerate(leaves) if row.state == state]
        if rows and letter:
            colour = palette.problem_text if state == "non-finite" else palette.text
            style = {"color": colour, "markersize": 7.0, "linestyle": "none", "clip_on": False}
            axes.plot([low] * len(rows), rows, marker=f"${letter}$", **style)


def _with_states(stretch: Stretch, leaves: Sequence[ParameterRow], named: bool) -> str:
    """A folded label counts the leaves that have no number: "layers.3 (2 U)"."""
    if named:
        row = leaves[stretch.start]
        return f"{row.name} (x{row.uses})" if row.shared else row.name
    inside = [
        LETTERS[row.state] for row in leaves[stretch.start : stretch.stop] if row.state != "value"
    ]
    marks = ", ".join(f"{inside.count(letter)} {letter}" for letter in sorted(set(inside)))
    return f"{stretch.label} ({marks})" if marks else stretch.label


def _module(name: str) -> str:
    return name.rpartition(".")[0] or name
