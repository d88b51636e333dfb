"""Draw the panels of a gradient flow onto a matplotlib Figure.

Decades are plotted on plain axes as log10 with ticks "1e-3": matplotlib's log axis warns or fails
for zeros, NaN and values near the limits of float64, which are what this figure is for.
"""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure

from autograd_lab.replay import GradientFlow

from .figure_axes import clean, prepare
from .flow_leaves import NAMED_LEAVES, draw_leaves
from .flow_nodes import draw_nodes
from .flow_text import rows_of_flow, trend
from .numbers import count
from .palette import Palette

__all__ = ["Panels", "draw_flow"]

TITLE = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Panels:
    """What was drawn: the axes in words."""

    nodes_axis: str
    leaves_axis: str


def draw_flow(figure: Figure, flow: GradientFlow, palette: Palette) -> Panels:
    """Draw everything; returns the axes in words."""
    rows = rows_of_flow(flow)
    leaves = flow.parameters
    height = max(5.8, 1.7 + 0.27 * len(leaves)) if len(leaves) <= NAMED_LEAVES else 6.6
    figure.set_size_inches(11.0, height)
    figure.set_facecolor(palette.background)
    figure.suptitle(
        clean(trend(flow)[:1].upper() + trend(flow)[1:]),
        fontsize=TITLE,
        fontweight="bold",
        color=palette.text,
        parse_math=False,
    )
    grid = figure.add_gridspec(2, 2, width_ratios=(3, 2), height_ratios=(3, 1.15))
    top = figure.add_subplot(grid[0, 0])
    bottom = figure.add_subplot(grid[1, 0], sharex=top)
    right = figure.add_subplot(grid[:, 1])
    for axes in (top, bottom, right):
        prepare(axes, palette)
    draw_nodes(top, bottom, flow, rows, palette)
    draw_leaves(right, leaves, palette)
    return Panels(
        nodes_axis="y: rms of the gradient received, log scale; "
        f"x: {count(len(rows), 'node')} in order of execution, loss first",
        leaves_axis="x: rms of the gradient, log scale; "
        "states 0 exactly zero, U never reached, F frozen, N NaN or Inf",
    )
