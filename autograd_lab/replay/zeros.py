"""Turn gradients that are exactly 0 into findings: whose zeros they come from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autograd_lab.recording import NodeId, Op, TensorId

from .amount import amount_of
from .finding import FlowFinding, listed, number_words, place_words, where_of
from .forward_zeros import ForwardZeros, Zeros
from .passes import PassRun
from .rows import FlowRow, ParameterRow

__all__ = ["zero_findings"]

RELUS = frozenset(("relu", "relu6", "threshold", "clamp_min"))


def zero_findings(
    run: PassRun, rows: Sequence[FlowRow], parameters: Sequence[ParameterRow]
) -> Iterable[FlowFinding]:
    """One finding for each call whose zeros, or node that, turned a gradient into zeros."""
    left = {row.tensor: row.name for row in parameters if row.state == "zero"}
    seen: set[NodeId] = set()
    values = ForwardZeros(run) if left else None
    blamed: dict[Zeros | FlowRow, list[tuple[FlowRow, str]]] = {}
    for row in rows:
        if not left or not row.grad_output_norm or values is None:
            continue
        names = [left.pop(leaf) for leaf in _leaves_of_zeros(run, row.node, seen) if leaf in left]
        if names:
            zeros = values.behind(row.node)
            blamed.setdefault(zeros or row, []).extend((row, name) for name in names)
    for culprit, hit in blamed.items():
        names = listed([name for _, name in hit])
        if isinstance(culprit, FlowRow):
            yield _zeros_of_node(culprit, names)
        else:
            yield _zeros_of_forward(culprit, names, hit[0][0])
    if left:
        yield FlowFinding(
            what="zero",
            where=listed(list(left.values())),
            evidence="The gradient is exactly 0 in every element, from the start of this pass on.",
            try_="Look at the loss: it does not change with these parameters.",
        )


def _zeros_of_node(row: FlowRow, names: str) -> FlowFinding:
    return FlowFinding(
        what="zero",
        where=where_of(row),
        evidence=(
            f"It received norm {number_words(row.grad_output_norm)} and returned exact zeros, "
            f"the whole gradient of {names}."
        ),
        try_=(
            "Look at its forward values: a clamp where all is outside, a mask or a factor of 0 "
            "lets nothing through."
        ),
    )


def _zeros_of_forward(zeros: Zeros, names: str, row: FlowRow) -> FlowFinding:
    """What the forward had set to 0 everywhere: a dead relu, or a tensor of zeros."""
    op = zeros.op
    if op is None:
        return FlowFinding(
            what="zero",
            where=where_of(row),
            evidence=(
                f"Its forward call was given {zeros.name}, which is 0 in every element, so the "
                f"gradient of {names} is exactly 0."
            ),
            try_=f"Look why {zeros.name} is 0: a layer that starts at 0 passes no gradient on.",
        )
    place = op.source.place if op.source else None
    return FlowFinding(
        what="zero",
        where=place_words(op.name, op.module, place),
        evidence=(f"It returned 0 in every element, so the gradient of {names} is exactly 0."),
        try_=_cure(op),
    )


def _cure(op: Op) -> str:
    if op.name.strip("_") in RELUS:
        return (
            "All that it was given is negative: use smaller steps, another initialisation, or a "
            "leaky activation."
        )
    if not op.inputs:
        return "A factor of 0 lets no gradient through."
    return "Look at what it was given: a mask, a clamp or a factor of 0 lets nothing through."


def _leaves_of_zeros(run: PassRun, start: NodeId, seen: set[NodeId]) -> list[TensorId]:
    """Leaves reached from a node over gradients that are exactly 0."""
    leaves: list[TensorId] = []
    stack = [start]
    while stack:
        for target, grad in run.sent(stack.pop()):
            if target not in seen and amount_of([grad]).state == "zero":
                seen.add(target)
                stack.append(target)
                if (leaf := run.recording.nodes[target].leaf) is not None:
                    leaves.append(leaf)
    return leaves
