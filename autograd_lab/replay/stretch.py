"""Turn the main path of a pass into the stretch that is compared: does the gradient keep its size?

The numbers are always printed: nobody agrees on thresholds (facts, gradient_flow.md section 4).
Pooling or a mean over tokens takes up to 3.5 decades of rms off a healthy gradient in one go; a
sick stack loses or gains a little in every layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autograd_lab.recording import NodeId

from .finding import FlowFinding, counted, number_words, where_of
from .passes import PassRun
from .rows import FlowRow

__all__ = ["Stretch", "stretch_of_layers", "vanishing_or_exploding"]

DECADES = 4.0  # that much from end to end is a finding
DECADES_IF_STEADY = 2.5  # or that much where it is steady:
STEADY_LAYERS = 8  # over at least so many layers
STEADY_SHARE = 0.8  # this share of them goes the same way,
STEADY_GAIN = 1.5  # each by at least this factor


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


def vanishing_or_exploding(stretch: Stretch) -> Iterable[FlowFinding]:
    """A finding where the gradient changes too much from end to end."""
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
        where=f"{where_of(first)} to {where_of(last)}",
        evidence=(
            f"The rms of the gradient goes from {number_words(start)} to "
            f"{number_words(stretch.rms[-1])}: the product of {counted(len(gains), 'gain')} is "
            f"{number_words(stretch.product)}, {decades:+.1f} decades, "
            f"{decades / len(gains):+.2g} a layer; a factor of 10 is passed at {where_of(tenth)}."
        ),
        try_=(
            "Lower the gain of the initialisation, add normalisation, or clip the gradient."
            if decades > 0
            else "Raise the gain of the initialisation, use an activation that does not saturate, "
            "or add residual connections or normalisation."
        ),
    )
