"""Turn a GradientFlow into one clause: does the gradient shrink, from where to where?"""

from __future__ import annotations

from autograd_lab.replay import FlowRow, GradientFlow

from .numbers import format_decades, format_number
from .tables import shorten

__all__ = ["rows_of_flow", "trend", "trend_in_full"]

BEYOND = 2.0  # a path that falls or rises between its ends by at least this factor is said to


def rows_of_flow(flow: GradientFlow) -> tuple[FlowRow, ...]:
    """The nodes that pass a gradient on; those that accumulate into a leaf have a table too."""
    return tuple(row for row in flow.rows if not row.name.endswith("AccumulateGrad"))


def trend(flow: GradientFlow) -> str:
    """How the gradient's rms changes on its way back, in words: between which two nodes, by what.

    Short enough for the title of a figure. Without two layers to compare, what stands out instead.
    """
    return _trend(flow, 18)


def trend_in_full(flow: GradientFlow) -> str:
    """The trend with longer names and the numbers behind it."""
    return f"{_trend(flow, 40)}{_rms(flow)}"


def _trend(flow: GradientFlow, width: int) -> str:
    """The trend, with names of at most `width` characters."""
    bad = next((row for row in flow.rows if row.finite is False), None)
    if bad is not None:
        return f"gradient is NaN or Inf from {_place(bad)} on"
    dead = next((row for row in _path(flow) if row.passed_on_rms == 0), None)
    if dead is not None:
        return f"gradient is exactly 0 from {_place(dead)} on"
    ends = _ends(flow)
    if ends is None:
        return _largest(flow)
    first, last = ends
    verb = "keeps its size"
    if flow.decades is not None and abs(flow.decades) >= 0.15:
        verb = f"{'shrinks' if flow.decades < 0 else 'grows'} {format_decades(flow.decades)}"
    words = [word for word, _ in _beyond(flow, first, last)]
    between = f", {' and '.join(words)} between" if words else ""
    start, end = _at(first, width), _at(last, width)
    if start == end:
        order = rows_of_flow(flow)
        start, end = (f"{end}, #{order.index(row) + 1}" for row in ends)
    return f"gradient {verb} from {start} to {end}{between}"


def _rms(flow: GradientFlow) -> str:
    """The numbers behind the trend, in brackets."""
    ends = _ends(flow)
    is_other = any(row.finite is False for row in flow.rows)
    if ends is None or is_other or any(row.passed_on_rms == 0 for row in _path(flow)):
        return ""
    first, last = ends
    rms = [format_number(row.grad_output_rms) for row in ends]
    others = [
        f"; {'lowest' if word == 'lower' else 'highest'} {format_number(row.grad_output_rms)} at "
        f"{_at(row, 40)}"
        for word, row in _beyond(flow, first, last)
    ]
    return f" (rms {' to '.join(rms)}{''.join(others)})"


def _ends(flow: GradientFlow) -> tuple[FlowRow, FlowRow] | None:
    """The two nodes that are compared: the last and the first layer, as the forward counts."""
    if len(flow.layers) < 2 or flow.product is None:
        return None
    rows = {row.node: row for row in flow.rows}
    return rows[flow.layers[0]], rows[flow.layers[-1]]


def _beyond(flow: GradientFlow, first: FlowRow, last: FlowRow) -> list[tuple[str, FlowRow]]:
    """The lowest and highest point of the path between two nodes, where it lies beyond both."""
    path = _path(flow)
    inner = path[path.index(first) + 1 : path.index(last)]
    known = {row.grad_output_rms: row for row in inner if row.grad_output_rms}
    ends = [row.grad_output_rms or 0.0 for row in (first, last)]
    if not known:
        return []
    found = [("lower", known[min(known)])] if min(known) < min(ends) / BEYOND else []
    return found + ([("higher", known[max(known)])] if max(known) > max(ends) * BEYOND else [])


def _path(flow: GradientFlow) -> list[FlowRow]:
    rows = {row.node: row for row in flow.rows}
    return [rows[node] for node in flow.path]


def _largest(flow: GradientFlow) -> str:
    leaves = [row for row in flow.parameters if row.rms]
    if not leaves:
        return "gradient at each node"
    largest = max(leaves, key=lambda row: row.rms or 0.0)
    return f"largest gradient of a leaf is that of {largest.name}, rms {format_number(largest.rms)}"


def _place(row: FlowRow) -> str:
    name = row.name.rpartition("::")[2]
    return f"{name} in {row.module}" if row.module else name


def _at(row: FlowRow, width: int) -> str:
    """A node of the path by its module, else by its name."""
    if row.module and row.module.isdigit():
        return f"module {row.module}"
    return shorten(row.module or row.name.rpartition("::")[2], width, keep_end=True)
