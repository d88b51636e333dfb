"""Turn one backward pass into rows: what nodes did to the gradient, what parameters gained."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Literal

from autograd_lab.recording import NodeId, Snapshot, TensorId, TensorRef

from .amount import Amount, AmountState, amount_of
from .match import module_of
from .passes import PassRun

__all__ = ["FlowRow", "ParameterRow", "State", "node_rows", "parameter_rows"]

State = Literal["value", "zero", "unused", "frozen", "non-finite"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRow:
    """One node that ran: what it received (grad_outputs) and what it returned (grad_inputs).

    place          the user's line, "model.py:14", or None
    norm           over all grad_outputs (grad_inputs) together; None where there is none or it
                   could not be read
    passed_on_rms  of what it returned, without what only leads to a leaf where there is something
                   else: the flow, without the weight gradients
    gain           passed_on_rms / grad_output_rms; None where either is missing, not finite, or
                   nothing was received
    finite         all that was received and returned is finite; None where that is unknown
    state          of what it returned; "none" where it returned nothing
    """

    node: NodeId
    name: str
    module: str | None
    place: str | None
    grad_output_norm: float | None
    grad_output_rms: float | None
    grad_input_norm: float | None
    grad_input_rms: float | None
    passed_on_rms: float | None
    gain: float | None
    finite: bool | None
    state: AmountState


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterRow:
    """What one parameter, or another leaf, gained in this pass (not what its `.grad` held before).

    state   "value", "zero" (reached, and every element is exactly 0), "unused" (never reached),
            "frozen" (requires_grad is False) or "non-finite"
    norm    of what was added; None where nothing was, or it could not be read
    uses    gradients of this pass that went into it
    shared  there were several: what it gained is their sum
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


def node_rows(run: PassRun, without: Set[NodeId]) -> tuple[FlowRow, ...]:
    """One row for each node, in order of execution; nodes in `without` only feed a leaf."""
    rows: list[FlowRow] = []
    for node_id, grads in run.received.items():
        node = run.recording.nodes[node_id]
        received, returned = amount_of(grads), amount_of(run.returned.get(node_id, ()))
        sent = list(run.sent(node_id))
        passed_on = amount_of(
            [grad for target, grad in sent if target not in without] or [grad for _, grad in sent]
        )
        op = run.recording.ops[node.made_by] if node.made_by is not None else None
        source = node.source or (op.source if op else None)
        known = [amount.finite for amount in (received, returned) if amount.state != "none"]
        rows.append(
            FlowRow(
                node=node_id,
                name=node.name,
                module=module_of(run.recording, node),
                place=source.place if source else None,
                grad_output_norm=received.norm,
                grad_output_rms=received.rms,
                grad_input_norm=returned.norm,
                grad_input_rms=returned.rms,
                passed_on_rms=passed_on.rms,
                gain=_gain(received, passed_on),
                finite=False if False in known else None if None in known or not known else True,
                state=returned.state,
            )
        )
    return tuple(rows)


def parameter_rows(run: PassRun) -> tuple[ParameterRow, ...]:
    """Parameters, and other leaves of this pass, in the order in which it came to them."""
    delivered: dict[TensorId, list[Snapshot]] = {}
    for node in run.event.roots:
        if (leaf := run.recording.nodes[node].leaf) is not None:
            delivered[leaf] = [grad for grad in run.received.get(node, ()) if grad is not None]
    for node in run.received:
        for target, grad in run.sent(node):
            if (leaf := run.recording.nodes[target].leaf) is not None:
                delivered.setdefault(leaf, []).append(grad)
    for leaf in run.added:
        delivered.setdefault(leaf, [])
    others = [tensor.id for tensor in run.recording.tensors if tensor.is_parameter]
    return tuple(
        _parameter_row(run.recording.tensors[leaf], run, delivered.get(leaf, []))
        for leaf in dict.fromkeys([*delivered, *others])
    )


def _parameter_row(tensor: TensorRef, run: PassRun, delivered: Sequence[Snapshot]) -> ParameterRow:
    amount = _gained(tensor.id, run, delivered)
    uses = max(len(delivered), len(run.added.get(tensor.id, ())))
    state: State = "unused" if tensor.requires_grad else "frozen"
    if amount.state != "none":
        state = amount.state
    return ParameterRow(
        tensor=tensor.id,
        name=tensor.name or f"tensor {tensor.id}",
        shape=tensor.shape,
        norm=amount.norm,
        rms=amount.rms,
        state=state,
        uses=uses,
        shared=uses > 1,
        is_parameter=tensor.is_parameter,
    )


def _gained(leaf: TensorId, run: PassRun, delivered: Sequence[Snapshot]) -> Amount:
    """What a leaf gained. Decided by what its AccumulateGrad did, never by what `.grad` holds.

    A pass that does not accumulate (autograd.grad) runs no AccumulateGrad: there the gradients sent
    to it count. Of a sum that was not recorded only the state is known.
    """
    if run.event.accumulates:
        gained = run.added.get(leaf, [])
    else:
        gained = [*delivered, *run.added.get(leaf, [])]
    amount = amount_of(gained)
    if gained and amount.state == "none":
        return Amount(None, None, None, "value")
    return amount if len(gained) < 2 else amount._replace(norm=None, rms=None)


def _gain(received: Amount, passed_on: Amount) -> float | None:
    if not (received.is_number and passed_on.is_number) or not received.rms:
        return None
    return None if passed_on.rms is None else passed_on.rms / received.rms
