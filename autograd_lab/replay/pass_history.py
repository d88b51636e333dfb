"""Turn the events of each backward pass into when its nodes ran and what they waited for."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from autograd_lab.recording import (
    BackwardFinished,
    BackwardStarted,
    NodeFinished,
    NodeId,
    NodeStarted,
    PassId,
    Recording,
)

__all__ = ["PassHistory", "histories_of_passes", "reachable_from"]


@dataclass(slots=True, kw_only=True)
class PassHistory:
    """One call of the engine; all numbers are step numbers, the first frame that shows it.

    order     nodes in order of execution
    started   step at which a node received its gradients
    finished  (step, node) in order
    arrivals  steps at which a node got a gradient
    failed    it raised, or the recording ended inside it
    """

    event: BackwardStarted
    step: int
    order: list[NodeId] = field(default_factory=list[NodeId])
    started: dict[NodeId, int] = field(default_factory=dict[NodeId, int])
    finished: list[tuple[int, NodeId]] = field(default_factory=list[tuple[int, NodeId]])
    arrivals: dict[NodeId, list[int]] = field(default_factory=dict[NodeId, list[int]])
    expected: dict[NodeId, int] = field(default_factory=dict[NodeId, int])
    failed: bool = True

    @property
    def frees(self) -> bool:
        """Its nodes let go of their saved tensors.

        The engine asks for retain_graph alone; torch sets it to create_graph where it is not given.
        """
        return not self.event.retain_graph

    def done(self, index: int) -> frozenset[NodeId]:
        """Nodes finished by step `index`."""
        return frozenset(
            node for _, node in self.finished[: bisect_left(self.finished, (index + 1, -1))]
        )

    def waiting(self, index: int) -> dict[NodeId, tuple[int, int]]:
        """Nodes that have got some but not all gradients at step `index`: (received, expected)."""
        arrived = self._arrived(index)
        return {node: counts for node, counts in arrived.items() if counts[0] < counts[1]}

    def ready(self, index: int) -> frozenset[NodeId]:
        """Nodes that have all their gradients at step `index` and have not started."""
        arrived = self._arrived(index)
        return frozenset(node for node, (received, of) in arrived.items() if received >= of)

    def _arrived(self, index: int) -> dict[NodeId, tuple[int, int]]:
        """(received, expected) of nodes that have some gradient and have not started."""
        found: dict[NodeId, tuple[int, int]] = {}
        for node, steps in self.arrivals.items():
            received = bisect_left(steps, index + 1)
            if received and self.started.get(node, index + 1) > index:
                found[node] = (received, self.expected[node])
        return found


def reachable_from(recording: Recording, roots: Iterable[NodeId]) -> set[NodeId]:
    """Nodes to which the edges lead from `roots`, themselves included."""
    seen = set(roots)
    stack = list(seen)
    while stack:
        for edge in recording.nodes[stack.pop()].edges:
            if edge is not None and edge.node not in seen:
                seen.add(edge.node)
                stack.append(edge.node)
    return seen


def histories_of_passes(recording: Recording) -> dict[PassId, PassHistory]:
    """When the nodes of each pass ran."""
    passes: dict[PassId, PassHistory] = {}
    for step, event in enumerate(recording.events, start=1):
        match event:
            case BackwardStarted():
                passes[event.pass_id] = PassHistory(event=event, step=step)
            case NodeStarted() if event.pass_id in passes:
                passes[event.pass_id].order.append(event.node)
                passes[event.pass_id].started[event.node] = step
            case NodeFinished() if event.pass_id in passes:
                passes[event.pass_id].finished.append((step, event.node))
            case BackwardFinished() if event.pass_id in passes:
                passes[event.pass_id].failed = event.error is not None
            case _:
                pass
    for one in passes.values():
        _count_arrivals(recording, one)
    return passes


def _count_arrivals(recording: Recording, one: PassHistory) -> None:
    """Fill in what each node of the pass waits for: one gradient per edge into it, None or not.

    Roots get one from outside. In a pass that ended well a node that never ran was not asked for
    (`inputs=`, autograd.grad), so it does not wait.
    """
    expected = Counter(one.event.roots)
    for node in reachable_from(recording, one.event.roots):
        expected.update(edge.node for edge in recording.nodes[node].edges if edge is not None)
    asked = {node: count for node, count in expected.items() if one.failed or node in one.started}
    arrivals: dict[NodeId, list[int]] = {node: [] for node in asked}
    for root in one.event.roots:
        if root in arrivals:
            arrivals[root].append(one.step)
    for step, node in one.finished:
        for edge in recording.nodes[node].edges:
            if edge is not None and edge.node in arrivals:
                arrivals[edge.node].append(step)
    one.expected.update(asked)
    one.arrivals.update(arrivals)
