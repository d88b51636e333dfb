"""Turn a backward that starts into the saved tensors that it needs and can't have any more.

They were written in place since, or an earlier backward freed them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autograd_lab.recording import (
    BackwardStarted,
    GradNode,
    NodeId,
    Op,
    OpCalled,
    OpId,
    ProblemSeen,
    SavedSlot,
)

from .cures import FREED, cure_of_write
from .wording import Wording

__all__ = ["SpentGraphs"]


class SpentGraphs:
    """Which saved tensors can't be read, each told once.

    writes  (storage number, op) of the in-place calls
    """

    def __init__(self, wording: Wording, writes: Sequence[tuple[int, OpId]]) -> None:
        self.wording, self.writes = wording, writes
        self.called = -1
        self.told: set[tuple[NodeId, str]] = set()

    def after_op(self, event: OpCalled) -> None:
        """Remember the last call: a later one wrote too late to be to blame."""
        self.called = event.op

    def after_backward_started(self, event: BackwardStarted) -> list[ProblemSeen]:
        """What the nodes of this pass can't have: each that was modified, all freed in one line."""
        found: list[ProblemSeen] = []
        freed: list[tuple[GradNode, SavedSlot]] = []
        for node, slot in self._spent(event):
            writer = self._writer(slot.storage, node.made_by)
            if writer is None and slot.problem and "modified" not in slot.problem:
                freed.append((node, slot))
                continue
            by = f", by {self.wording.call(writer)}. {cure_of_write(writer)}" if writer else "."
            found.append(
                ProblemSeen(
                    kind="saved tensor modified",
                    text=f"{self._needs(node, slot)}{by}",
                    node=node.id,
                    op=None if writer is None else writer.id,
                    pass_id=event.pass_id,
                    source=node.source if writer is None else writer.source,
                    thread=event.thread,
                )
            )
        if freed:
            (node, slot), *others = freed
            more = f"; so {'was' if len(others) == 1 else 'were'} {len(others)} more"
            found.append(
                ProblemSeen(
                    kind="saved tensor freed",
                    text=f"{self._needs(node, slot)}{more if others else ''}. {FREED}",
                    node=node.id,
                    pass_id=event.pass_id,
                    source=node.source,
                    thread=event.thread,
                )
            )
        return found

    def _spent(self, event: BackwardStarted) -> Iterator[tuple[GradNode, SavedSlot]]:
        stack, seen = list(event.roots), set(event.roots)
        while stack:
            for edge in self.wording.nodes[stack.pop()].edges:
                if edge is not None and edge.node not in seen:
                    seen.add(edge.node)
                    stack.append(edge.node)
        for number in sorted(seen):
            node = self.wording.nodes[number]
            for slot in node.saved:
                if slot.problem is not None and (number, slot.name) not in self.told:
                    self.told.add((number, slot.name))
                    yield node, slot

    def _needs(self, node: GradNode, slot: SavedSlot) -> str:
        return f"{self.wording.node(node)} needs its saved {slot.name}, which was {slot.problem}"

    def _writer(self, storage: int | None, after: OpId | None) -> Op | None:
        """The last in-place call on a storage between the node and this backward."""
        found = [
            op
            for written, op in self.writes
            if written == storage and op <= self.called and (after is None or op > after)
        ]
        return self.wording.ops[found[-1]] if found and storage is not None else None
