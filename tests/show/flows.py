"""Hand-made gradient flows, ordinary and awkward."""

from __future__ import annotations

import math

from autograd_lab.recording import NodeId, PassId, TensorId
from autograd_lab.replay import FlowFinding, FlowRow, GradientFlow, ParameterRow

WEIGHTS = ("weight", "bias")


def node(
    number: int,
    received: float | None,
    returned: float | None,
    *,
    module: str | None = None,
    name: str = "AddmmBackward0",
) -> FlowRow:
    """One node with the gain that follows from its two rms."""
    known = received and returned and math.isfinite(received) and math.isfinite(returned)
    bad = any(value is not None and not math.isfinite(value) for value in (received, returned))
    return FlowRow(
        node=NodeId(number),
        name=name,
        module=module,
        place="model.py:7",
        grad_output_norm=received,
        grad_output_rms=received,
        grad_input_norm=returned,
        grad_input_rms=returned,
        passed_on_rms=returned,
        gain=returned / received if known else None,
        finite=not bad,
        state="non-finite"
        if bad
        else "none"
        if returned is None
        else "zero"
        if returned == 0
        else "value",
    )


def leaf(
    number: int, name: str, rms: float | None, state: str = "value", uses: int = 1
) -> ParameterRow:
    """One parameter."""
    return ParameterRow(
        tensor=TensorId(number),
        name=name,
        shape=(8, 8),
        norm=None if rms is None else rms * 8,
        rms=rms,
        state=state,  # type: ignore[arg-type]
        uses=uses,
        shared=uses > 1,
        is_parameter=True,
    )


def steady(depth: int, factor: float, *, per_layer: int = 2) -> GradientFlow:
    """`depth` layers, each multiplying the gradient by `factor`."""
    rows, leaves = [], []
    size = 0.05
    for at in range(depth):
        layer = f"layers.{depth - 1 - at}"
        rows.append(node(2 * at, size, size * factor, module=f"{layer}.act", name="TanhBackward0"))
        rows.append(node(2 * at + 1, size * factor, size * factor, module=f"{layer}.linear"))
        leaves += [
            leaf(per_layer * at + k, f"{layer}.linear.{WEIGHTS[k]}", size * (3 + k))
            for k in range(per_layer)
        ]
        size *= factor
    finding = FlowFinding(
        what="vanishing",
        where="layers.0.act to layers.9.linear",
        evidence="rms 0.05 where it starts, 3e-7 where it ends",
        try_="Try another activation or a residual connection.",
    )
    product = factor**depth
    return GradientFlow(
        pass_id=PassId(1),
        rows=tuple(rows),
        parameters=tuple(reversed(leaves)),
        findings=(finding,) if product < 1e-4 else (),
        path=tuple(row.node for row in rows),
        layers=tuple(row.node for row in rows),
        product=product,
    )


def all_states() -> GradientFlow:
    """One leaf in each state, and nodes that received zero, NaN, Inf and nothing."""
    rows = (
        node(0, 1.0, 0.5),
        node(1, 0.5, math.nan),
        node(2, math.nan, math.inf),
        node(3, math.inf, 0.0),
        node(4, 0.0, 0.0),
        node(5, None, None),
    )
    leaves = (
        leaf(0, "good.weight", 0.01),
        leaf(1, "tied.weight", 0.3, uses=2),
        leaf(2, "dead.weight", 0.0, "zero"),
        leaf(3, "lost.weight", None, "unused"),
        leaf(4, "frozen.weight", None, "frozen"),
        leaf(5, "bad.weight", math.nan, "non-finite"),
    )
    return GradientFlow(
        pass_id=PassId(1), rows=rows, parameters=leaves, path=tuple(NodeId(i) for i in range(6))
    )


AWKWARD = {
    "empty": GradientFlow(pass_id=None, note="No backward ran inside the block."),
    "one-node": GradientFlow(
        pass_id=PassId(1), rows=(node(0, 1.0, 1.0),), path=(NodeId(0),), product=1.0
    ),
    "all-states": all_states(),
    "all-zero": GradientFlow(
        pass_id=PassId(1),
        rows=tuple(node(i, 0.0, 0.0) for i in range(5)),
        product=0.0,
        parameters=(leaf(0, "w", 0.0, "zero"),),
    ),
    "all-nan": GradientFlow(
        pass_id=PassId(1),
        rows=tuple(node(i, math.nan, math.nan) for i in range(5)),
        product=math.nan,
    ),
    "tiny-and-huge": GradientFlow(
        pass_id=PassId(1),
        rows=(node(0, 1e-308, 1e308), node(1, 1e308, 5e-324)),
        product=5e-16,
        path=(NodeId(0), NodeId(1)),
    ),
    "only-leaves": GradientFlow(pass_id=PassId(1), parameters=(leaf(0, "w", 1.0),)),
    "foreign-names": GradientFlow(
        pass_id=PassId(1),
        rows=(node(0, 1.0, 2.0, name="$x_1^{<b>"), node(1, 2.0, 1.0, name="ノード")),
        parameters=(leaf(0, "$\\frac{", 1.0), leaf(1, "重み" * 40, 1.0)),
    ),
    "thousand-nodes": steady(500, 0.98),
    "exploding": steady(12, 7.5),
}
