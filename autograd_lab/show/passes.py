"""Turn the events of a recording into its backward passes, each with the runs of its nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from autograd_lab.recording import (
    BackwardFinished,
    BackwardStarted,
    GradAccumulated,
    NodeFinished,
    NodeId,
    NodeStarted,
    OpCalled,
    PassId,
    ProblemSeen,
    Recording,
    Snapshot,
    TensorId,
)
from autograd_lab.replay import require_recording

from .words import amount, is_bad

__all__ = [
    "BackwardPass",
    "NodeRun",
    "backward_passes",
    "first_grad",
    "loss_words",
    "losses_of",
    "parameters_with_grad",
]


@dataclass(slots=True, kw_only=True)
class NodeRun:
    """One run of a node, from step `step` to step `finish`: what it received, returned, added.

    finish  0 where it did not finish
    """

    node: NodeId
    step: int = 0
    received: tuple[Snapshot | None, ...] = ()
    returned: tuple[Snapshot | None, ...] = ()
    accumulated: GradAccumulated | None = None
    finish: int = 0
    bad: bool = False

    @property
    def finished(self) -> bool:
        """It returned."""
        return self.finish > 0


@dataclass(slots=True, kw_only=True)
class BackwardPass:
    """One call of the engine and the runs of its nodes, in order of execution.

    failed  (step, node) where it raised, in a node that may have no run: it never started
    """

    started: BackwardStarted
    runs: list[NodeRun]
    error: str | None = None
    failed: tuple[int, NodeId] | None = None

    @property
    def title(self) -> str:
        """What was called, where."""
        call = "backward()" if self.started.accumulates else "autograd.grad()"
        place = f" at {self.started.source.place}" if self.started.source else ""
        kept = ", ".join(
            name for name in ("retain_graph", "create_graph") if getattr(self.started, name)
        )
        return f"Backward pass {self.started.pass_id}, {call}{place}{f' ({kept})' if kept else ''}"


def backward_passes(recording: Recording) -> list[BackwardPass]:
    """The backward passes in order of their start, each with the runs of its nodes."""
    require_recording(recording, "autograd_lab.show")
    passes: dict[PassId, BackwardPass] = {}
    open_runs: dict[tuple[PassId, NodeId], NodeRun] = {}
    for step, event in enumerate(recording.events, 1):
        match event:
            case BackwardStarted():
                passes[event.pass_id] = BackwardPass(started=event, runs=[])
            case NodeStarted(pass_id=pass_id) if pass_id in passes:
                run = NodeRun(node=event.node, step=step, received=event.grad_outputs)
                run.bad = any(map(is_bad, event.grad_outputs))
                open_runs[pass_id, event.node] = run
                passes[pass_id].runs.append(run)
            case NodeFinished():
                run = open_runs.get((event.pass_id, event.node))
                if run is not None:
                    run.returned, run.finish = event.grad_inputs, step
                    run.bad = run.bad or any(map(is_bad, event.grad_inputs))
            case GradAccumulated():
                run = open_runs.get((event.pass_id, event.node))
                if run is not None:
                    run.accumulated = event
            case ProblemSeen(kind="exception", pass_id=int(pass_id), node=node) if (
                pass_id in passes
            ):
                passes[pass_id].failed = None if node is None else (step, node)
            case BackwardFinished(pass_id=pass_id, error=error) if pass_id in passes:
                passes[pass_id].error = error
            case _:
                pass
    return list(passes.values())


def first_grad(passed: BackwardPass) -> str:
    """The gradient that a pass starts from: "1" when torch made it."""
    given = passed.started.grad_outputs
    if not given or given[0] is None:
        return "1"
    return amount(given[0]).removeprefix("= ")


def loss_words(recording: Recording, passed: BackwardPass) -> str | None:
    """The loss of one pass, as losses_of has it."""
    return losses_of(recording, [passed]).get(passed.started.pass_id)


def losses_of(recording: Recording, passes: Iterable[BackwardPass]) -> dict[PassId, str]:
    """The loss of each pass where a recorded call made it and its value is known.

    By its name, "loss = 2.303"; one without a name by the call that made it, "#7 sum = 2.303".
    """
    starts: dict[NodeId, list[PassId]] = {}
    for passed in passes:
        for root in passed.started.roots[:1]:
            starts.setdefault(root, []).append(passed.started.pass_id)
    losses: dict[PassId, str] = {}
    for step, event in enumerate(recording.events, 1):
        if not isinstance(event, OpCalled) or not event.outputs:
            continue
        op = recording.op(event.op)
        begun = [pass_id for node in op.nodes for pass_id in starts.get(node, ())]
        shown = amount(event.outputs[0]) if begun else ""
        if shown.startswith("= "):
            name = recording.tensor(event.outputs[0].tensor).name or f"#{step} {op.name}"
            for pass_id in begun:
                losses.setdefault(pass_id, f"{name} {shown}")
    return losses


def parameters_with_grad(recording: Recording) -> set[TensorId]:
    """Leaves whose `.grad` gained something that was still there when the last gain was over."""
    last = {event.leaf: event.after for event in recording.events_of(GradAccumulated)}
    return {leaf for leaf, grad in last.items() if grad is not None}
