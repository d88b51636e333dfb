"""Turn one backward pass of a recording into a table of how its gradients flow, with findings."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, cast

from autograd_lab import views
from autograd_lab.recording import NodeId, PassId, Recording

from .finding import FlowFinding
from .findings import find_all
from .given import require_recording
from .passes import default_pass, feeders, main_path, run_of_pass
from .rows import FlowRow, ParameterRow, State, node_rows, parameter_rows
from .stretch import stretch_of_layers

__all__ = ["FlowFinding", "FlowRow", "GradientFlow", "ParameterRow", "State", "gradient_flow"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GradientFlow:
    """How gradients flowed in one backward pass.

    rows        one per node, in order of execution
    parameters  one per parameter and per other leaf of this pass, in the order in which the pass
                came to them, then those it did not reach
    findings    what to know, the most urgent first; empty for a healthy pass
    path        the main path: the longest way from a root, without what only leads to a leaf
    layers      the nodes of the path that feed a leaf, the last layer of the forward first; all
                its nodes where there are not two. It ends before an exact 0, NaN or Inf
    product     rms received by the last of `layers` / rms received by the first, the product of the
                gains between; None where there are no two
    note        why there is nothing to show, or what is missing; "" for a whole pass
    """

    pass_id: PassId | None
    rows: tuple[FlowRow, ...] = ()
    parameters: tuple[ParameterRow, ...] = ()
    findings: tuple[FlowFinding, ...] = ()
    path: tuple[NodeId, ...] = ()
    layers: tuple[NodeId, ...] = ()
    product: float | None = None
    note: str = ""

    @property
    def decades(self) -> float | None:
        """log10 of `product`; None where there is none."""
        return math.log10(self.product) if self.product else None

    def table(self) -> list[dict[str, Any]]:
        """Rows, then parameters, as plain dicts told apart by "kind"; NaN and Inf are strings."""
        nodes = [{"kind": "node", **_plain(row)} for row in self.rows]
        return nodes + [{"kind": "parameter", **_plain(row)} for row in self.parameters]

    def __repr__(self) -> str:
        """Return the deterministic text."""
        return views.describe(self)

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        return views.mimebundle(self)


def gradient_flow(recording: Recording, pass_id: int | None = None) -> GradientFlow:
    """Return the gradient flow of one backward pass.

    pass_id  its number, from 1; None for the last pass that accumulates into `.grad`, else the last

    A recording without a backward gives an empty flow that says so.
    Raises StepError that names the passes there are, RecordingError for what is no Recording.
    """
    recording = require_recording(recording, "gradient_flow")
    if pass_id is None:
        pass_id = default_pass(recording)
    if pass_id is None:
        note = "The recording has no backward pass: call .backward() inside the record block."
        return GradientFlow(pass_id=None, note=note)
    run = run_of_pass(recording, pass_id)
    without = feeders(run)
    rows = node_rows(run, without)
    parameters = parameter_rows(run)
    path = main_path(run, without)
    stretch = stretch_of_layers(run, rows, path, without)
    return GradientFlow(
        pass_id=run.event.pass_id,
        rows=rows,
        parameters=parameters,
        findings=find_all(run, rows, parameters, stretch),
        path=path,
        layers=tuple(row.node for row in stretch.rows),
        product=stretch.product,
        note=f"The pass stopped half-way: {run.error}." if run.error else "",
    )


def _plain(row: FlowRow | ParameterRow) -> dict[str, Any]:
    return {field.name: _json(getattr(row, field.name)) for field in fields(row)}


def _json(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value
