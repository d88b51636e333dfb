"""Turn the rows of a gradient flow into findings in words: what, where, the evidence, what to try.

Relative rules first, and the numbers are always printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autograd_lab.recording import GradAccumulated, ProblemSeen

from .amount import amount_of
from .finding import FlowFinding, counted, listed, number_words, place_words, where_of
from .passes import PassRun
from .rows import FlowRow, ParameterRow
from .stretch import Stretch, vanishing_or_exploding
from .zeros import zero_findings

__all__ = ["find_all"]


def find_all(
    run: PassRun, rows: Sequence[FlowRow], parameters: Sequence[ParameterRow], stretch: Stretch
) -> tuple[FlowFinding, ...]:
    """All findings of a pass, the most urgent first; none for a healthy one."""
    return (
        *_non_finite(run, rows, parameters),
        *vanishing_or_exploding(stretch),
        *zero_findings(run, rows, parameters),
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
            f"It received a finite gradient (norm {number_words(born.grad_output_norm)}) and "
            f"returned norm {number_words(born.grad_input_norm)}"
        )
    else:
        evidence = "The gradient that came in was not finite already"
    others = len(bad) - 1
    if others:
        holds = "holds" if others == 1 else "hold"
        evidence += f"; {counted(others, 'other node')} of this pass {holds} NaN or Inf too"
    if hit := [row.name for row in parameters if row.state == "non-finite"]:
        do = "does the gradient" if len(hit) == 1 else "do the gradients"
        evidence += f", and so {do} of {listed(hit)}"
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
    yield FlowFinding(what="non-finite", where=where_of(born), evidence=evidence + ".", try_=advice)


def _unused(run: PassRun, parameters: Sequence[ParameterRow]) -> Iterable[FlowFinding]:
    """Parameters that no pass reached; a pass that stopped or did not accumulate proves nothing."""
    if run.error or not run.event.accumulates:
        return
    reached = {event.leaf for event in run.recording.events_of(GradAccumulated)}
    names = [row.name for row in parameters if row.state == "unused" and row.tensor not in reached]
    if names:
        yield FlowFinding(
            what="unused",
            where=listed(names),
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
            where=listed(names),
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
            return place_words(op.name if op else "a call", op.module if op else None, place)
    return None
