"""Turn the events of a recording, in one walk, into columns: a line and the panels of each step."""

from __future__ import annotations

from typing import Any, assert_never

from autograd_lab.recording import (
    BackwardFinished,
    BackwardStarted,
    Event,
    GradAccumulated,
    GradNode,
    NodeFinished,
    NodeId,
    NodeStarted,
    NotSeen,
    Op,
    OpCalled,
    OptimizerStepped,
    PassId,
    ProblemSeen,
    Snapshot,
    SourceLine,
    TensorId,
)
from autograd_lab.replay import Cursor

from .frame_text import step_line
from .pack_cards import Cards
from .pack_sources import PackSources
from .rules import formula_lines
from .turns import PassStart
from .words import Words

__all__ = ["PackSteps"]

FREED = "freed: this pass keeps none (retain_graph=True would)"

Panel = list[Any]  # head, numbers of cards or None, text or None


class PackSteps:
    """The columns of a pack; entry i is step i, entry 0 is before anything.

    phases  that of each step, from step 1 on
    """

    def __init__(self, cursor: Cursor, words: Words, starts: dict[PassId, PassStart]) -> None:
        recording = self.recording = cursor.recording
        self.passes = cursor.frame.history.passes
        self.words = words
        self.starts = starts
        self.cards = Cards(words)
        self.sources = PackSources(recording)
        self.subject = [""]
        self.panels: list[list[Panel]] = [[]]
        self.source = [-1]
        self.text = [step_line(cursor.seek(0), words)]
        self.phases: list[str] = []
        self._values: dict[TensorId, Snapshot] = {}
        self._received: dict[tuple[PassId, NodeId], tuple[Snapshot | None, ...]] = {}
        for step, event in enumerate(recording.events, 1):
            frame = cursor.seek(step)
            self.text.append(step_line(frame, words))
            self.phases.append(frame.phase)
            subject, source, panels = self._told(event)
            self.subject.append(subject)
            self.source.append(self.sources.add(source, step))
            self.panels.append(panels)

    def columns(self) -> dict[str, Any]:
        """The columns by name."""
        return {
            "subject": self.subject,
            "text": self.text,
            "source": self.source,
            "panels": self.panels,
        }

    def _told(self, event: Event) -> tuple[str, SourceLine | None, list[Panel]]:
        """What a step is about, its line and its panels."""
        match event:
            case OpCalled():
                op = self.recording.op(event.op)
                return f"o{event.op}", op.source, self._call(op, event)
            case BackwardStarted():
                return f"b{event.pass_id}", event.source, [self._start(event)]
            case BackwardFinished():
                raised: list[Panel] = [["raised", None, event.error]] if event.error else []
                why: list[Panel] = [
                    ["problem", None, one.text]
                    for one in self.recording.problems
                    if event.error and one.pass_id == event.pass_id and one.kind != "exception"
                ]
                return f"e{event.pass_id}", None, [*why, *raised]
            case NodeStarted():
                node = self.recording.node(event.node)
                self._received[event.pass_id, event.node] = event.grad_outputs
                panels = self._node(node, event.grad_outputs)
                return f"n{event.node}@{event.pass_id}", node.source, panels
            case NodeFinished():
                node = self.recording.node(event.node)
                received = self._received.get((event.pass_id, event.node), ())
                is_freed = self.passes[event.pass_id].frees
                panels = self._node(node, received, event.grad_inputs, is_freed=is_freed)
                return f"m{event.node}@{event.pass_id}", node.source, panels
            case GradAccumulated():
                name = f"{self.words.tensor(event.leaf)}.grad"
                held = (("before", event.before), ("added", event.added), ("after", event.after))
                panels = [
                    [head, [self.cards.add(one, "" if head == "added" else name)], None]
                    for head, one in held
                ]
                source = self.recording.node(event.node).source
                return f"g{event.node}@{event.pass_id}", source, panels
            case OptimizerStepped():
                wrote = ", ".join(map(self.words.tensor, event.parameters))
                return "s", event.source, [["wrote", None, wrote or "nothing"]]
            case ProblemSeen():
                return "p", event.source, [["problem", None, event.text]]
            case NotSeen():
                return "q", None, [["not seen", None, event.text]]
        assert_never(event)

    def _call(self, op: Op, event: OpCalled) -> list[Panel]:
        for one in event.inputs:
            self._values[one.tensor] = one
        inputs = [
            self.cards.add(self._values[tensor], self.words.tensor(tensor))
            for tensor in dict.fromkeys(op.inputs)
            if tensor in self._values
        ]
        outputs = [self.cards.add(one, self.words.tensor(one.tensor)) for one in event.outputs]
        for one in event.outputs:
            self._values[one.tensor] = one
        panels: list[Panel] = [["inputs", inputs, None]] if inputs else []
        return [*panels, ["outputs", outputs, None]] if outputs else panels

    def _start(self, event: BackwardStarted) -> Panel:
        start = self.starts[event.pass_id]
        given = [one for one in event.grad_outputs if one is not None]
        loss = f"{start.loss}, " if start.loss else ""
        text = f"{loss}starts with gradient {start.gradient}"
        return ["receives", self.cards.add_all(given) if given else None, text]

    def _node(
        self,
        node: GradNode,
        received: tuple[Snapshot | None, ...],
        returned: tuple[Snapshot | None, ...] | None = None,
        *,
        is_freed: bool = False,
    ) -> list[Panel]:
        """By which rule a node works, what it received and returned, and what it keeps.

        The rule is short and comes first: pictures may push what follows out of sight. Torch's own
        lines come last: they are long.
        """
        panels: list[Panel] = [["rule", None, node.rule]] if node.rule else []
        panels.append(["receives", self.cards.add_all(received), None])
        if returned and node.leaf is None:
            panels.append(
                ["returns", self.cards.add_all(returned, self._targets(node, returned)), None]
            )
        if node.saved and is_freed:
            panels.append(["saved", None, FREED])
        elif node.saved:
            saved = [
                self.cards.add_saved(slot, self._saved_value(slot.tensor)) for slot in node.saved
            ]
            panels.append(["saved", saved, None])
        formula = "\n".join(formula_lines(node))
        return [*panels, ["torch", None, formula]] if formula else panels

    def _saved_value(self, tensor: TensorId | None) -> Snapshot | None:
        return self._values.get(tensor) if tensor is not None else None

    def _targets(self, node: GradNode, returned: tuple[Snapshot | None, ...]) -> list[str]:
        """Where each gradient goes, where there is more than one."""
        if sum(one is not None for one in returned) < 2 or len(node.edges) != len(returned):
            return ["" for _ in returned]
        return [
            f"to {self.words.node_of(edge.node)}" if edge is not None else "" for edge in node.edges
        ]
