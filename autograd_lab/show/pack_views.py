"""Turn the drawings of a recording into boxes, lines and turns that a page draws."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from autograd_lab.recording import NodeId, OpId, PassId, Recording, TensorId
from autograd_lab.replay import GraphView, PlacedNode, layout_views

from .bad_steps import BadSteps
from .box_words import PADDING
from .turns import PassStart, turns_of
from .words import Words

__all__ = ["PackViews"]

MOST_TWINS = 16  # of one call: above, each knows its call alone


class PackViews:
    """All drawings, and how much room a call, a node run or a leaf has in its box."""

    def __init__(
        self, recording: Recording, words: Words, bad: BadSteps, starts: Sequence[PassStart]
    ) -> None:
        self.recording = recording
        self.words = words
        self.bad = bad
        self.starts = starts
        self.op_rooms: dict[OpId, float] = {}
        self.node_rooms: dict[tuple[PassId | None, NodeId], float] = {}
        self.leaf_rooms: dict[TensorId, float] = {}
        self.views = [self._view(view) for view in layout_views(recording)]

    @property
    def is_empty(self) -> bool:
        """There is no box."""
        return not self.views[0]["boxes"]

    def _view(self, view: GraphView) -> dict[str, Any]:
        layout = view.layout
        lanes = {lane.index: at for at, lane in enumerate(layout.lanes)}
        passes = {lane.index: lane.pass_id for lane in layout.lanes}
        twins = self._twins(layout.nodes)
        boxes = []
        for number, box in enumerate(layout.nodes):
            shown = self._box(box, passes[box.lane])
            shown["lane"] = lanes[box.lane]
            shown["twins"] = twins[number]
            if box.key in view.opens:
                shown["opens"] = view.opens[box.key]
            boxes.append(shown)
        place = {box.key: number for number, box in enumerate(layout.nodes)}
        return {
            "title": view.title,
            "parent": view.parent,
            "width": round(layout.width),
            "height": round(layout.height),
            "lanes": [
                {
                    "title": f"{lane.title} {'↓' if lane.pass_id is None else '↑'}",
                    "x": round(lane.x),
                    "width": round(lane.width),
                    "pass": lane.pass_id or 0,
                }
                for lane in layout.lanes
            ],
            "boxes": boxes,
            "edges": [
                {
                    "from": place[edge.source],
                    "to": place[edge.target],
                    "kind": edge.kind[0],
                    "points": [round(number) for point in edge.points for number in point],
                    **({"times": edge.times} if edge.times > 1 else {}),
                }
                for edge in layout.edges
            ],
            "turns": [
                {
                    "from": place[turn.loss.key] if turn.loss else -1,
                    "to": place[turn.root.key],
                    "loss": turn.loss_words,
                    "again": turn.is_again,
                    "gradient": turn.gradient,
                    "pass": turn.start.pass_id,
                }
                for turn in turns_of(layout, self.starts)
            ],
        }

    def _box(self, box: PlacedNode, pass_id: PassId | None) -> dict[str, Any]:
        self._note_room(box, pass_id)
        members = box.ops, box.nodes, box.tensors
        more = {
            "bad": self.bad.bad_step(pass_id, *members),
            "birth": self.bad.birth_step(pass_id, *members),
            "note": self._note(box),
        }
        return {
            "kind": box.kind,
            "lane": box.lane,
            "x": round(box.x),
            "y": round(box.y),
            "w": round(box.width),
            "h": round(box.height),
            "label": box.label,
            "sub": box.sublabel,
            "tip": self._tip(box),
            "ops": list(box.ops),
            "nodes": list(box.nodes),
            "tensors": list(box.tensors),
            **{name: value for name, value in more.items() if value},
        }

    def _note_room(self, box: PlacedNode, pass_id: PassId | None) -> None:
        room = box.width - PADDING
        if box.kind == "op":
            self.op_rooms[box.ops[0]] = room
        elif box.kind == "node":
            self.node_rooms[pass_id, box.nodes[0]] = room
        elif box.kind in ("leaf", "input"):
            self.leaf_rooms[box.tensors[0]] = room

    def _note(self, box: PlacedNode) -> str:
        if box.kind not in ("leaf", "input"):
            return ""
        ref = self.recording.tensor(box.tensors[0])
        return "" if ref.is_leaf and ref.requires_grad else "no gradient wanted"

    def _tip(self, box: PlacedNode) -> str:
        """What a box stands for, in full: no number, since numbers may be hidden."""
        if box.kind == "op":
            op = self.recording.op(box.ops[0])
            module, source, line = op.module, op.source, self.words.call(op)
        elif box.kind == "node":
            node = self.recording.node(box.nodes[0])
            module, source = node.module, node.source
            line = node.name if node.leaf is None else self.words.node(node)
        elif box.kind == "fold":
            return f"{box.label}, {box.sublabel}" if box.sublabel else box.label
        else:
            return self.words.tensor(box.tensors[0])
        where = f"module {self.words.module(module)}" if module is not None else ""
        place = f"{source.place}  {source.text.strip()}" if source else ""
        return "\n".join(part for part in (line, where, place) if part)

    def _twins(self, boxes: Sequence[PlacedNode]) -> list[list[int]]:
        """By box the others that belong to the same call or leaf."""
        of_op = {op: at for at, box in enumerate(boxes) for op in box.ops}
        of_leaf = {tensor: at for at, box in enumerate(boxes) for tensor in box.tensors}
        groups: dict[int, dict[int, None]] = defaultdict(dict)
        for at, box in enumerate(boxes):
            for node_id in box.nodes:
                node = self.recording.node(node_id)
                owner = of_op.get(node.made_by) if node.made_by is not None else None
                if owner is None and node.leaf is not None:
                    owner = of_leaf.get(node.leaf)
                if owner is not None:
                    groups[owner][at] = None
        twins: list[list[int]] = [[] for _ in boxes]
        for owner, members in groups.items():
            together = dict.fromkeys([owner, *members])
            known = together if len(together) <= MOST_TWINS else dict.fromkeys([owner])
            for at in together:
                twins[at] += [other for other in known if other != at and other not in twins[at]]
        return twins
