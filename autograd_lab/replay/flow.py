"""Turn one backward pass of a recording into a table of how its gradients flow, with findings in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from autograd_lab import views
from autograd_lab.recording import NodeId, PassId, Recording, TensorId

__all__ = ["FlowFinding", "FlowRow", "GradientFlow", "ParameterRow", "State", "gradient_flow"]

State = Literal["value", "zero", "unused", "frozen", "non-finite"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRow:
    """One node that ran: what it received (grad_outputs) and what it returned (grad_inputs).

    place  the user's line, "model.py:14", or None
    norm   over all grad_outputs (grad_inputs) together; None where there was none or it could not be read
    gain   rms returned / rms received. Edges that only lead to a leaf are left out where there are others, so that the
           gain is that of the flow and not of the weight gradients. None where either is missing or not finite, or
           nothing was received
    finite every gradient received and returned is finite; None where that is unknown
    state  of what it returned: "value", "zero", "non-finite", or "none" where it returned nothing that is known
    """

    node: NodeId
    name: str
    module: str | None
    place: str | None
    grad_output_norm: float | None
    grad_output_rms: float | None
    grad_input_norm: float | None
    grad_input_rms: float | None
    gain: float | None
    finite: bool | None
    state: Literal["value", "zero", "non-finite", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterRow:
    """What one parameter, or another leaf, gained in this pass (not what its `.grad` held before).

    state   "value", "zero" (reached, every element exactly 0), "unused" (never reached), "frozen" (requires_grad is
            False) or "non-finite"
    uses    edges of this pass that lead into it
    shared  it has more than one use: the gradient is their sum
    norm    of what was added; None where nothing was, or it could not be read
    """

    tensor: TensorId
    name: str
    shape: tuple[int, ...]
    norm: float | None
    rms: float | None
    state: State
    uses: int
    shared: bool
    is_parameter: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFinding:
    """One thing to know: `what` ("vanishing", ...), `where`, the numbers that show it, and what to try."""

    what: Literal["non-finite", "exploding", "vanishing", "zero", "unused", "frozen"]
    where: str
    evidence: str
    try_: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GradientFlow:
    """How gradients flowed in one backward pass.

    rows        one per node, in order of execution
    parameters  one per parameter and per other leaf of this pass, in order of the tensors' ids
    path        the main path: the longest way from a root to a leaf, without what only leads to a weight
    product     rms of the gradient at the end of the path / rms where the layers begin (the product of the gains
                between); None where there is no such stretch
    note        why there is nothing to show, or ""
    """

    pass_id: PassId | None
    rows: tuple[FlowRow, ...] = ()
    parameters: tuple[ParameterRow, ...] = ()
    findings: tuple[FlowFinding, ...] = ()
    path: tuple[NodeId, ...] = ()
    product: float | None = None
    note: str = ""

    @property
    def decades(self) -> float | None:
        """log10 of `product`; None where that has no logarithm."""
        return math.log10(self.product) if self.product else None

    def table(self) -> list[dict[str, Any]]:
        """Rows and then parameters as plain dicts, told apart by "kind"; NaN and Inf are strings, as in the files."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Return the deterministic text."""
        return views.describe(self)

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        return views.mimebundle(self)


def gradient_flow(recording: Recording, pass_id: int | None = None) -> GradientFlow:
    """Return the gradient flow of one backward pass; by default the last that accumulates, else the last.

    Raises StepError that names the passes there are.
    """
    raise NotImplementedError
