"""Say where each backward pass begins in a drawing: from the loss to its first node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autograd_lab.recording import NodeId, OpId, PassId, Recording
from autograd_lab.replay import GraphLayout, PlacedNode

from .passes import BackwardPass, first_grad, loss_words

__all__ = ["PassStart", "Turn", "pass_starts", "turns_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassStart:
    """What one pass starts from: its first nodes, the calls that made them, loss and gradient.

    loss  "loss = 2.303", or "" where it is not known
    """

    pass_id: PassId
    roots: frozenset[NodeId]
    makers: frozenset[OpId]
    loss: str
    gradient: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Where one pass begins: its first node, and the call that made the loss if it is drawn."""

    start: PassStart
    root: PlacedNode
    loss: PlacedNode | None

    @property
    def loss_words(self) -> str:
        """The value of the loss beside its call."""
        return f"{self.start.loss} · " if self.loss and self.start.loss else ""

    @property
    def gradient(self) -> str:
        """The gradient that the pass starts from."""
        return f"gradient starts at {self.start.gradient}"


def pass_starts(recording: Recording, passes: Iterable[BackwardPass]) -> list[PassStart]:
    """What each pass starts from."""
    return [
        PassStart(
            pass_id=passed.started.pass_id,
            roots=frozenset(passed.started.roots),
            makers=frozenset(
                maker
                for root in passed.started.roots
                if (maker := recording.node(root).made_by) is not None
            ),
            loss=loss_words(recording, passed) or "",
            gradient=first_grad(passed),
        )
        for passed in passes
    ]


def turns_of(layout: GraphLayout, starts: Sequence[PassStart]) -> list[Turn]:
    """The passes whose first node is drawn."""
    lanes = {lane.pass_id: lane.index for lane in layout.lanes if lane.pass_id is not None}
    found: list[Turn] = []
    for start in starts:
        lane = lanes.get(start.pass_id)
        own = (box for box in layout.nodes if box.lane == lane and lane is not None)
        root = next((box for box in own if not start.roots.isdisjoint(box.nodes)), None)
        if root is None:
            continue
        forward = (box for box in layout.nodes if box.lane == 0)
        loss = next((box for box in forward if not start.makers.isdisjoint(box.ops)), None)
        found.append(Turn(start=start, root=root, loss=loss))
    return found
