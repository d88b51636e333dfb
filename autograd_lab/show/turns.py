"""Say where each backward pass begins in a drawing: from the loss to its first node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autograd_lab.recording import NodeId, OpId, PassId, Recording
from autograd_lab.replay import GraphLayout, PlacedNode

from .passes import BackwardPass, first_grad, losses_of

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
    """Where one pass begins: its first node, and the call that made the loss if it is drawn.

    is_again  an earlier pass began at the same call: its value stands there already
    """

    start: PassStart
    root: PlacedNode
    loss: PlacedNode | None
    is_again: bool = False

    @property
    def loss_words(self) -> str:
        """The value of the loss, beside its call."""
        return self.start.loss if self.loss and not self.is_again else ""

    @property
    def gradient(self) -> str:
        """The gradient that the pass starts from."""
        return f"gradient starts at {self.start.gradient}"


def pass_starts(recording: Recording, passes: Sequence[BackwardPass]) -> list[PassStart]:
    """What each pass starts from."""
    losses = losses_of(recording, passes)
    return [
        PassStart(
            pass_id=passed.started.pass_id,
            roots=frozenset(passed.started.roots),
            makers=frozenset(
                maker
                for root in passed.started.roots
                if (maker := recording.node(root).made_by) is not None
            ),
            loss=losses.get(passed.started.pass_id, ""),
            gradient=first_grad(passed),
        )
        for passed in passes
    ]


def turns_of(layout: GraphLayout, starts: Sequence[PassStart]) -> list[Turn]:
    """The passes whose first node is drawn."""
    lanes = {lane.index: lane.pass_id for lane in layout.lanes}
    roots: dict[tuple[PassId | None, NodeId], int] = {}
    makers: dict[OpId, int] = {}
    for at, box in enumerate(layout.nodes):
        for node in box.nodes:
            roots.setdefault((lanes[box.lane], node), at)
        for op in box.ops if box.lane == 0 else ():
            makers.setdefault(op, at)
    found: list[Turn] = []
    begun: set[str] = set()
    for start in starts:
        drawn = [roots[start.pass_id, one] for one in start.roots if (start.pass_id, one) in roots]
        made = [makers[one] for one in start.makers if one in makers]
        if drawn:
            loss = layout.nodes[min(made)] if made else None
            again = loss is not None and loss.key in begun
            root = layout.nodes[min(drawn)]
            found.append(Turn(start=start, root=root, loss=loss, is_again=again))
            begun.update([loss.key] if loss else [])
    return found
