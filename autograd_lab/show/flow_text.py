"""Turn a GradientFlow into words: its headline, its two tables and its findings."""

from __future__ import annotations

from autograd_lab.replay import FlowFinding, FlowRow, GradientFlow, ParameterRow

from .numbers import count, format_decades, format_number, format_shape
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
WAY = "from the last layer to the first"
MORE = "more; .table() has all"


def flow_text(flow: GradientFlow) -> str:
    """The text of a gradient flow in at most about 60 lines."""
    lines = [flow_headline(flow)]
    if flow.note:
        lines.append(flow.note)
    lines += [f"! {finding_line(finding)}" for finding in flow.findings]
    for table in (flow_table(flow), parameter_table(flow)):
        if len(table):
            lines += ["", table.caption, *text_table(table, ROWS, more=MORE)]
    return "\n".join(lines)


def flow_headline(flow: GradientFlow) -> str:
    """One sentence: which pass, how much, and whether the gradient shrinks or grows."""
    if flow.pass_id is None:
        return "Gradient flow: no backward pass"
    parts = [count(len(rows_of_flow(flow)), "node"), count(len(flow.parameters), "leaf", "leaves")]
    return f"Gradient flow of pass {flow.pass_id}, {', '.join(parts)}: {trend(flow)}"


def trend(flow: GradientFlow) -> str:
    """How the gradient's rms changes on its way back through the layers, in words."""
    bad = next((row for row in flow.rows if row.finite is False), None)
    if bad is not None:
        where = f" in {bad.module}" if bad.module else ""
        return f"gradient is NaN or Inf from {bad.name.rpartition('::')[2]}{where} on"
    if flow.product is None:
        return "gradient at each node and leaf"
    if flow.product == 0:
        return "gradient is exactly 0 before it reaches the first layer"
    if flow.decades is None or not abs(flow.decades) < 1e4:
        return f"gradient changes by a factor of {format_number(flow.product)} {WAY}"
    if abs(flow.decades) < 0.15:
        return f"gradient keeps its size {WAY}"
    verb = "shrinks" if flow.decades < 0 else "grows"
    return f"gradient {verb} {format_decades(flow.decades)} {WAY}"


def rows_of_flow(flow: GradientFlow) -> tuple[FlowRow, ...]:
    """The nodes that pass a gradient on; those that accumulate into a leaf have a table too."""
    return tuple(row for row in flow.rows if not row.name.endswith("AccumulateGrad"))


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
            _number(row.grad_input_rms),
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
        column("rms returned", number=True),
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
