"""Turn a GradientFlow into words: its headline, its two tables and its findings."""

from __future__ import annotations

from autograd_lab.replay import FlowFinding, GradientFlow, ParameterRow

from .flow_trend import rows_of_flow, trend, trend_in_full
from .numbers import count, format_number, format_shape
from .tables import Table, column, text_table

__all__ = [
    "LETTERS",
    "finding_line",
    "flow_headline",
    "flow_table",
    "flow_text",
    "parameter_table",
    "rows_of_flow",
    "trend",
]

LETTERS = {"value": "", "zero": "0", "unused": "U", "frozen": "F", "non-finite": "N"}
STATE_WORDS = {
    "value": "",
    "zero": "0: reached, every element is exactly 0",
    "unused": "U: unused, backward never reached it",
    "frozen": "F: frozen, requires_grad is False",
    "non-finite": "N: NaN or Inf",
}
ROWS = 24
GAIN = (
    "gain = rms passed on / rms received; a node that passes nothing on counts what it hands to "
    "its leaves."
)
MORE = "more; .table() has all"


def flow_text(flow: GradientFlow) -> str:
    """The text of a gradient flow in at most about 60 lines."""
    lines = [flow_headline(flow)]
    if flow.note:
        lines.append(flow.note)
    lines += [f"! {finding_line(finding)}" for finding in flow.findings]
    nodes, leaves = flow_table(flow), parameter_table(flow)
    if len(nodes):
        lines += ["", nodes.caption, *text_table(nodes, ROWS, more=MORE), f"  {GAIN}"]
    if len(leaves):
        lines += ["", leaves.caption, *text_table(leaves, ROWS, more=MORE)]
    return "\n".join(lines)


def flow_headline(flow: GradientFlow) -> str:
    """One sentence: which pass, how much, and whether the gradient shrinks or grows."""
    if flow.pass_id is None:
        return "Gradient flow: no backward pass"
    parts = [count(len(rows_of_flow(flow)), "node"), count(len(flow.parameters), "leaf", "leaves")]
    return f"Gradient flow of pass {flow.pass_id}, {', '.join(parts)}: {trend_in_full(flow)}"


def finding_line(finding: FlowFinding) -> str:
    """A finding as one line: what, where, the evidence, what to try."""
    parts = (
        f"{finding.what} at {finding.where}",
        finding.evidence.rstrip("."),
        finding.try_.rstrip("."),
    )
    return f"{'. '.join(part for part in parts if part)}."


def flow_table(flow: GradientFlow) -> Table:
    """One row per node in order of execution."""
    rows = [
        (
            str(number),
            row.name.rpartition("::")[2],
            row.module if row.module is not None else "",
            _number(row.grad_output_rms),
            _number(row.passed_on_rms),
            _number(row.gain),
            row.place or "",
            row.state if row.state in ("zero", "non-finite") else "",
        )
        for number, row in enumerate(rows_of_flow(flow), 1)
    ]
    columns = (
        column("#", number=True),
        column("node", code=True, width=32),
        column("module", code=True, width=24, keep_end=True),
        column("rms received", number=True),
        column("rms passed on", number=True),
        column("gain", number=True),
        column("place", width=26, keep_end=True),
        column("state"),
    )
    classes = tuple("problem" if row.finite is False else "" for row in rows_of_flow(flow))
    caption = "Gradient at each node, in order of execution (loss first)"
    return Table(caption=caption, columns=columns, rows=tuple(rows), classes=classes)


def parameter_table(flow: GradientFlow) -> Table:
    """One row per parameter and other leaf."""
    rows = [
        (
            row.name,
            format_shape(row.shape),
            _number(row.norm),
            _number(row.rms),
            parameter_state(row),
        )
        for row in flow.parameters
    ]
    columns = (
        column("leaf", code=True, width=36, keep_end=True),
        column("shape"),
        column("grad norm", number=True),
        column("grad rms", number=True),
        column("state", width=48),
    )
    classes = tuple("problem" if row.state == "non-finite" else "" for row in flow.parameters)
    return Table(
        caption="Gradient of each parameter", columns=columns, rows=tuple(rows), classes=classes
    )


def parameter_state(row: ParameterRow) -> str:
    """The state of a parameter's gradient, with its letter."""
    parts = [STATE_WORDS[row.state]] if STATE_WORDS[row.state] else []
    parts += [f"shared by {row.uses} uses"] if row.shared else []
    return "; ".join(parts)


def _number(value: float | None) -> str:
    return "" if value is None else format_number(value)
