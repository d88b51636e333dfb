"""Draw how the gradient flows from node to node: rms on a log axis, gains as bars below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from autograd_lab.replay import FlowRow, GradientFlow

from .figure_axes import NORMAL, SMALL, clean, decades, draw_legend, limits, log10, put_letter, say
from .grouping import Stretch, spaced, stretches
from .palette import Palette
from .tables import shorten

__all__ = ["draw_nodes"]

BARS = 150
GAIN_LIMIT = 12.0
NAMED_NODES = 14


def draw_nodes(
    top: Axes, bottom: Axes, flow: GradientFlow, rows: Sequence[FlowRow], palette: Palette
) -> None:
    """Draw the rms that arrives at each node into `top` and the gains into `bottom`."""
    _draw_rms(top, flow, rows, palette)
    _draw_gains(bottom, rows, palette)
    _label_nodes(top, bottom, rows, _node_stretches(rows), palette)


def _draw_rms(axes: Axes, flow: GradientFlow, rows: Sequence[FlowRow], palette: Palette) -> None:
    axes.set_title("Gradient arriving at each backward node", fontsize=NORMAL, color=palette.text)
    axes.set_ylabel("rms (log scale)", fontsize=SMALL, color=palette.text)
    logs = [log10(row.grad_output_rms) for row in rows]
    low, high = limits([log for log in logs if log is not None])
    path = set(flow.path) or {row.node for row in rows}
    main = [
        (at, log)
        for at, (row, log) in enumerate(zip(rows, logs, strict=True))
        if log is not None and row.node in path
    ]
    side = [
        (at, log)
        for at, (row, log) in enumerate(zip(rows, logs, strict=True))
        if log is not None and row.node not in path
    ]
    size = 6.5 if len(rows) <= 60 else 3.0
    if main:
        axes.plot(
            *zip(*main, strict=True),
            "-o",
            color=palette.backward_stroke,
            linewidth=2.2,
            markersize=size,
            label="main path, loss to input",
            zorder=3,
        )
    if side:
        axes.plot(
            *zip(*side, strict=True),
            "D",
            color=palette.backward_stroke,
            markerfacecolor=palette.background,
            markersize=size * 0.8,
            linestyle="none",
            label="other nodes",
            zorder=2,
        )
    _draw_states(axes, rows, low, high, palette)
    decades(axes.yaxis, low, high)
    axes.set_ylim(low - 0.06 * (high - low), high + 0.12 * (high - low))
    if main and side:
        draw_legend(axes, palette)
    if not rows:
        say(axes, "no backward node ran", palette)


def _draw_states(
    axes: Axes, rows: Sequence[FlowRow], low: float, high: float, palette: Palette
) -> None:
    """Letters for what has no logarithm: 0 at the bottom, N at the top (received or returned)."""
    for at, row in enumerate(rows):
        rms = row.grad_output_rms
        if row.finite is False:
            put_letter(axes, at, high, "N", palette.problem_fill, palette.problem_text)
        elif rms == 0:
            put_letter(axes, at, low, "0", palette.background, palette.text)


def _draw_gains(axes: Axes, rows: Sequence[FlowRow], palette: Palette) -> None:
    """A bar up where a node makes the gradient larger, a hatched one down where smaller."""
    gains = [(at, math.log2(row.gain)) for at, row in enumerate(rows) if row.gain and row.gain > 0]
    top = min(max([abs(gain) for _, gain in gains], default=1.0), GAIN_LIMIT)
    top = max(top, 1.0) * 1.15
    cut = [(at, max(min(gain, top), -top)) for at, gain in gains]
    axes.axhline(0, color=palette.dim, linewidth=1)
    style: dict[str, Any] = {"color": palette.backward_stroke}
    if len(rows) > BARS:  # thousands of hatched bars take seconds
        axes.vlines([at for at, _ in cut], 0, [gain for _, gain in cut], linewidth=0.6, **style)
    else:
        style = {"width": 0.7, "edgecolor": palette.backward_stroke, "linewidth": 0.8}
        for at, gain in cut:
            fill = palette.backward_stroke if gain >= 0 else palette.backward_fill
            axes.bar(at, gain, facecolor=fill, hatch="" if gain >= 0 else "////", **style)
    axes.set_ylim(-top, top)
    axes.set_ylabel("gain (log scale)", fontsize=SMALL, color=palette.text)
    whole = max(int(top), 1)
    axes.set_yticks([-whole, 0, whole], [f"÷{2**whole}", "x1", f"x{2**whole}"])


def _label_nodes(
    top: Axes, bottom: Axes, rows: Sequence[FlowRow], cut: list[Stretch], palette: Palette
) -> None:
    """Name the nodes below both axes; bands show which nodes share a name."""
    if len(cut) < len(rows):
        for number, stretch in enumerate(cut):
            if number % 2:
                for axes in (top, bottom):
                    axes.axvspan(
                        stretch.start - 0.5, stretch.stop - 0.5, color=palette.surface, zorder=0
                    )
        for axes in (top, bottom):
            axes.grid(visible=False, axis="x")
    cut = spaced(cut, len(rows) / 24)
    labels = [clean(shorten(stretch.label, 22, keep_end=True)) for stretch in cut]
    slant = 0 if len(cut) <= 4 else 32
    bottom.set_xticks([stretch.middle for stretch in cut])
    bottom.set_xticklabels(
        labels,
        rotation=slant,
        ha="right" if slant else "center",
        rotation_mode="anchor",
        parse_math=False,
    )
    top.tick_params(labelbottom=False, bottom=False)
    top.set_xlim(-0.7, max(len(rows), 1) - 0.3)
    bottom.set_xlabel(
        "loss   →   order of execution   →   input", fontsize=NORMAL, color=palette.text
    )


def _node_stretches(rows: Sequence[FlowRow]) -> list[Stretch]:
    if len(rows) <= NAMED_NODES:
        return [Stretch(at, at + 1, _short(row.name)) for at, row in enumerate(rows)]
    if any(row.module for row in rows):
        cut = stretches([row.module or "" for row in rows], NAMED_NODES)
        return [stretch if stretch.label else _unnamed(stretch, rows) for stretch in cut]
    return stretches([_short(row.name) for row in rows], NAMED_NODES)


def _unnamed(stretch: Stretch, rows: Sequence[FlowRow]) -> Stretch:
    """A stretch outside modules is named by its first node."""
    more = " …" if stretch.stop - stretch.start > 1 else ""
    return stretch._replace(label=f"{_short(rows[stretch.start].name)}{more}")


def _short(name: str) -> str:
    """`AddmmBackward0` -> `Addmm`."""
    base = name.rpartition("::")[2]
    head, found, tail = base.rpartition("Backward")
    return head if found and head and (not tail or tail.isdigit()) else base
