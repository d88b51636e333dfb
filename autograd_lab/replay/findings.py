"""Turn the rows of a gradient flow into findings in words: what, where, the evidence, what to try.

Relative rules first, and the numbers are always printed: nobody agrees on thresholds (facts,
gradient_flow.md section 4). Pooling or a mean over tokens takes up to 3.5 decades of rms off a
healthy gradient in one go; a sick stack loses or gains a little in every layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from autograd_lab.recording import GradAccumulated, NodeId, ProblemSeen, TensorId

from .amount import amount_of
from .passes import PassRun
from .rows import FlowRow, ParameterRow

__all__ = ["FlowFinding", "Stretch", "find_all", "stretch_of_layers"]

DECADES = 4.0  # that much from end to end is a finding
DECADES_IF_STEADY = 2.5  # or that much where it is steady:
STEADY_LAYERS = 8  # over at least so many layers
STEADY_SHARE = 0.8  # this share of them goes the same way,
STEADY_GAIN = 1.5  # each by at least this factor


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFinding:
    """One thing to know: `what` it is, `where`, the numbers that show it, and what to try."""

    what: Literal["non-finite", "exploding", "vanishing", "zero", "unused", "frozen"]
    where: str
    evidence: str
    try_: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The part of the main path that is compared: rms received there, in order of execution."""

    rows: tuple[FlowRow, ...]
    rms: tuple[float, ...]

    @property
    def product(self) -> float | None:
        """Product of the gains from its first to its last node; None for less than two nodes."""
        return self.rms[-1] / self.rms[0] if len(self.rms) > 1 else None

    @property
    def sure_decades(self) -> float:
        """The least change between either of its first and either of its last two nodes.

        One layer at an end may stand in a side branch, where the gradient is smaller: the query
        projection of an attention behind its softmax.
        """
        rms = self.rms
        ends = [(rms[0], rms[-1])]
        if len(rms) > 3:
            ends = [(start, end) for start in rms[:2] for end in rms[-2:]]
        return min(abs(math.log10(end / start)) for start, end in ends)


def stretch_of_layers(
    run: PassRun, rows: Sequence[FlowRow], path: Sequence[NodeId], without: set[NodeId]
) -> Stretch:
    """The nodes of the path that feed a leaf (layers); all its nodes where there are not two.

    Scalars at the loss end are left out, and it ends where a gradient is exactly 0, not finite or
    unknown: other findings tell of those.
    """
    row_of = {row.node: row for row in rows}
    layers = [node for node in path if any(target in without for target, _ in run.sent(node))]
    nodes = layers if len(layers) > 1 else list(path)
    kept: list[tuple[FlowRow, float]] = []
    for node in nodes:
        row = row_of[node]
        numel = sum(grad.numel for grad in run.received[node] if grad is not None)
        if not kept and numel < 2:
            continue
        if not row.grad_output_rms or not math.isfinite(row.grad_output_rms):
            break
        kept.append((row, row.grad_output_rms))
    return Stretch(rows=tuple(row for row, _ in kept), rms=tuple(rms for _, rms in kept))


def find_all(
    run: PassRun, rows: Sequence[FlowRow], parameters: Sequence[ParameterRow], stretch: Stretch
) -> tuple[FlowFinding, ...]:
    """All findings of a pass, the most urgent first; none for a healthy one."""
    return (
        *_non_finite(run, rows, parameters),
        *_vanishing_or_exploding(stretch),
        *_zeros(run, rows, parameters),
        *_unused(run, parameters),
        *_frozen(parameters),
    )


def _non_finite(
    run: PassRun, rows: Sequence[FlowRow], parameters: Sequence[ParameterRow]
) -> Iterable[FlowFinding]:
    bad = [row for row in rows if row.finite is False]
    if not bad:
        return
    births = [row for row in bad if amount_of(run.received[row.node]).finite is True]
    born = births[0] if births else bad[0]
    if births:
        evidence = (
            f"It received a finite gradient (norm {_number(born.grad_output_norm)}) and returned "
            f"norm {_number(born.grad_input_norm)}"
        )
    else:
        evidence = "The gradient that came in was not finite already"
    others = len(bad) - 1
    if others:
        holds = "holds" if others == 1 else "hold"
        evidence += f"; {_count(others, 'other node')} of this pass {holds} NaN or Inf too"
    if hit := [row.name for row in parameters if row.state == "non-finite"]:
        do = "does the gradient" if len(hit) == 1 else "do the gradients"
        evidence += f", and so {do} of {_names(hit)}"
    forward = _first_non_finite_op(run)
    if forward:
        evidence += f". The forward was not finite before that: {forward}"
        advice = f"Begin with the forward: look at the inputs of {forward}."
    else:
        evidence += ". The forward was finite"
        advice = (
            f"Look at the inputs of {born.name}: torch.where hides a NaN in the forward, not in "
            "the backward, so change the input before the function instead."
        )
    yield FlowFinding(what="non-finite", where=_where(born), evidence=evidence + ".", try_=advice)


def _vanishing_or_exploding(stretch: Stretch) -> Iterable[FlowFinding]:
    if not stretch.product:
        return
    decades = math.log10(stretch.product)
    gains = [after / before for before, after in zip(stretch.rms, stretch.rms[1:], strict=False)]
    steps = [gain if decades > 0 else 1 / gain for gain in gains]
    steady = sum(step >= STEADY_GAIN for step in steps) >= STEADY_SHARE * len(steps)
    sure = stretch.sure_decades
    is_steady = steady and len(steps) >= STEADY_LAYERS and sure >= DECADES_IF_STEADY
    if sure < DECADES and not is_steady:
        return
    first, last = stretch.rows[0], stretch.rows[-1]
    start = stretch.rms[0]
    tenth = next(
        row
        for row, rms in zip(stretch.rows, stretch.rms, strict=True)
        if abs(math.log10(rms / start)) >= 1
    )
    yield FlowFinding(
        what="exploding" if decades > 0 else "vanishing",
        where=f"{_where(first)} to {_where(last)}",
        evidence=(
            f"The rms of the gradient goes from {_number(start)} to {_number(stretch.rms[-1])}: "
            f"the product of {_count(len(gains), 'gain')} is {_number(stretch.product)}, "
            f"{decades:+.1f} decades, {decades / len(gains):+.2g} a layer; a factor of 10 is "
            f"passed at {_where(tenth)}."
        ),
        try_=(
            "Lower the gain of the initialisation, add normalisation, or clip the gradient."
            if decades > 0
            else "Raise the gain of the initialisation, use an activation that does not saturate, "
            "or add residual connections or normalisation."
        ),
    )


def _zeros(
    run: PassRun, rows: Sequence[FlowRow], parameters: Sequence[ParameterRow]
) -> Iterable[FlowFinding]:
    """One finding for each node that turned a gradient into zeros, with what lies behind it."""
    left = {row.tensor: row.name for row in parameters if row.state == "zero"}
    seen: set[NodeId] = set()
    for row in rows:
        if not left or not row.grad_output_norm:
            continue
        names = [left.pop(leaf) for leaf in _leaves_of_zeros(run, row.node, seen) if leaf in left]
        if names:
            yield FlowFinding(
                what="zero",
                where=_where(row),
                evidence=(
                    f"It received norm {_number(row.grad_output_norm)} and returned exact zeros, "
                    f"the whole gradient of {_names(names)}."
                ),
                try_=(
                    "Look at its forward values: a relu whose inputs are all negative, a mask or a "
                    "factor of 0 lets nothing through. Smaller steps or a leaky activation help."
                ),
            )
    if left:
        yield FlowFinding(
            what="zero",
            where=_names(list(left.values())),
            evidence="The gradient is exactly 0 in every element, from the start of this pass on.",
            try_="Look at the loss: it does not change with these parameters.",
        )


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


def _unused(run: PassRun, parameters: Sequence[ParameterRow]) -> Iterable[FlowFinding]:
    """Parameters that no pass reached; a pass that stopped or did not accumulate proves nothing."""
    if run.error or not run.event.accumulates:
        return
    reached = {event.leaf for event in run.recording.events_of(GradAccumulated)}
    names = [row.name for row in parameters if row.state == "unused" and row.tensor not in reached]
    if names:
        yield FlowFinding(
            what="unused",
            where=_names(names),
            evidence=(
                "They require a gradient and no backward reached them: their .grad is left as it "
                "was. This is not a gradient of zero."
            ),
            try_="Look for a module that is never called, a .detach(), a no_grad, or an .item().",
        )


def _frozen(parameters: Sequence[ParameterRow]) -> Iterable[FlowFinding]:
    names = [row.name for row in parameters if row.state == "frozen"]
    if names:
        yield FlowFinding(
            what="frozen",
            where=_names(names),
            evidence="Their requires_grad is False, so no gradient is computed for them.",
            try_="If that is not meant, call .requires_grad_(True) before the forward.",
        )


def _first_non_finite_op(run: PassRun) -> str | None:
    """The forward call before this pass that the recorder blames for the first NaN or Inf.

    Only the recorder judges: it knows an Inf on purpose (a mask), and what a hook made.
    """
    for event in run.recording.events:
        if event is run.event:
            return None
        if isinstance(event, ProblemSeen) and event.kind == "non-finite forward":
            op = run.recording.ops[event.op] if event.op is not None else None
            place = event.source.place if event.source else None
            return _place(op.name if op else "a call", op.module if op else None, place)
    return None


def _where(row: FlowRow) -> str:
    return _place(row.name.rpartition("::")[2], row.module, row.place)


def _place(name: str, module: str | None, place: str | None) -> str:
    return name + (f" in {module}" if module else "") + (f" ({place})" if place else "")


def _names(names: Sequence[str], shown: int = 4) -> str:
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _number(value: float | None) -> str:
    if value is None:
        return "unknown"
    if not math.isfinite(value):
        return "NaN" if value != value else "Inf" if value > 0 else "-Inf"
    return f"{value:.3g}"
