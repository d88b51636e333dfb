"""Turn nodes into the table of their rules, as people write them and as torch does."""

from __future__ import annotations

from collections import Counter

from autograd_lab.recording import GradNode, Recording

from .tables import Table, column

__all__ = ["formula_lines", "rule_table"]


def rule_table(recording: Recording) -> Table:
    """How nodes turn grad_outputs into grad_inputs, once for each rule.

    The first line of a cell is the plain rule, empty where none is known; torch's formula follows,
    a line for each input.
    """
    counts = Counter(
        (node.short_name, f"{node.rule or ''}\n{node.formula or ''}")
        for node in recording.nodes
        if node.rule or node.formula
    )
    rows = [(name, rule, str(times)) for (name, rule), times in sorted(counts.items())]
    columns = (
        column("node", code=True, width=32),
        column("gradient of each input; below it torch's own formula", code=True, width=90),
        column("nodes", number=True),
    )
    return Table(caption="Rules of the nodes", columns=columns, rows=tuple(rows))


def formula_lines(node: GradNode) -> list[str]:
    """Torch's own formula of a node, a line for each input."""
    return (node.formula or "").splitlines()
