"""Turn one backward pass of a recording into what each of its nodes received and returned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from autograd_lab.errors import StepError
from autograd_lab.recording import (
    BackwardFinished,
    BackwardStarted,
    GradAccumulated,
    NodeFinished,
    NodeId,
    NodeStarted,
    PassId,
    Recording,
    Snapshot,
    TensorId,
)

__all__ = ["PassRun", "default_pass", "feeders", "main_path", "run_of_pass"]

Grads = tuple[Snapshot | None, ...]
# They move elements, or copy them: what flows through one of these into a leaf is the leaf's.
_MOVES = frozenset(
    (
        "AliasBackward0",
        "CloneBackward0",
        "ExpandBackward0",
        "PermuteBackward0",
        "ReshapeAliasBackward0",
        "SqueezeBackward0",
        "TBackward0",
        "ToCopyBackward0",
        "TransposeBackward0",
        "UnsafeViewBackward0",
        "UnsqueezeBackward0",
        "ViewBackward0",
    )
)


@dataclass(slots=True, kw_only=True)
class PassRun:
    """One engine call, with the accumulations of those that ran inside its nodes.

    received, returned  grad_outputs and grad_inputs by node, in order of execution
    added               what each leaf's `.grad` gained, one entry for each time
    error               why it stopped half-way, or None
    """

    event: BackwardStarted
    recording: Recording
    received: dict[NodeId, Grads] = field(default_factory=dict[NodeId, Grads])
    returned: dict[NodeId, Grads] = field(default_factory=dict[NodeId, Grads])
    added: dict[TensorId, list[Snapshot | None]] = field(
        default_factory=dict[TensorId, list[Snapshot | None]]
    )
    error: str | None = None

    def sent(self, node: NodeId) -> Iterator[tuple[NodeId, Snapshot]]:
        """The gradients that a node returned, with the nodes they went to."""
        for edge, grad in zip(
            self.recording.nodes[node].edges, self.returned.get(node, ()), strict=False
        ):
            if edge is not None and grad is not None:
                yield edge.node, grad


def default_pass(recording: Recording) -> PassId | None:
    """The last pass that accumulates, else the last; one inside a node only where all are."""
    passes = sorted(
        recording.events_of(BackwardStarted),
        key=lambda event: (event.inside is None, event.accumulates),
    )
    return passes[-1].pass_id if passes else None


def run_of_pass(recording: Recording, pass_id: int) -> PassRun:
    """Collect one pass; raises StepError that names the passes there are."""
    run: PassRun | None = None
    open_ids: set[PassId] = set()
    for event in recording.events:
        match event:
            case BackwardStarted() if event.pass_id == pass_id:
                run = PassRun(event=event, recording=recording)
                open_ids.add(event.pass_id)
            case BackwardStarted() if open_ids and event.inside is not None:
                open_ids.add(event.pass_id)
            case BackwardFinished() if event.pass_id == pass_id and run is not None:
                run.error = event.error
                open_ids.clear()
            case NodeStarted() if event.pass_id == pass_id and run is not None:
                run.received[event.node] = event.grad_outputs
            case NodeFinished() if event.pass_id == pass_id and run is not None:
                run.returned[event.node] = event.grad_inputs
            case GradAccumulated() if event.pass_id in open_ids and run is not None:
                run.added.setdefault(event.leaf, []).append(event.added)
            case _:
                pass
    if run is None:
        known = [event.pass_id for event in recording.events_of(BackwardStarted)]
        message = (
            f"There is no backward pass {pass_id}.\n"
            f"The recording has {', '.join(map(str, known)) or 'none'}.\n"
            "Ask for one of these, or leave it out for the last that accumulates."
        )
        raise StepError(message, pass_id=pass_id, passes=tuple(known))
    return run


def feeders(run: PassRun) -> set[NodeId]:
    """Nodes that only hand a gradient to a leaf: AccumulateGrad, and views and copies before."""
    nodes = run.recording.nodes
    found = {node.id for node in nodes if node.leaf is not None}
    for node in reversed(run.received):
        targets = [edge.node for edge in nodes[node].edges if edge is not None]
        if nodes[node].name in _MOVES and len(targets) == 1 and targets[0] in found:
            found.add(node)
    return found


def main_path(run: PassRun, without: set[NodeId]) -> tuple[NodeId, ...]:
    """The longest way that gradients took from a root, leaving out the nodes `without`."""
    depth: dict[NodeId, int] = {}
    came_from: dict[NodeId, NodeId] = {}
    for node in run.received:  # in order of execution every sender comes before its receivers
        if node in without:
            continue
        depth.setdefault(node, 0)
        for target, _ in run.sent(node):
            if (
                target in run.received
                and target not in without
                and depth.get(target, -1) <= depth[node]
            ):
                depth[target] = depth[node] + 1
                came_from[target] = node
    if not depth:
        return ()
    path = [max(depth, key=lambda node: depth[node])]
    while path[-1] in came_from:
        path.append(came_from[path[-1]])
    return tuple(reversed(path))
