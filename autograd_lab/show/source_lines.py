"""Turn a recording's source into lines that say what was recorded on each of them."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

from autograd_lab.recording import BackwardStarted, OptimizerStepped, Recording, SourceText

from .numbers import count, format_number
from .passes import BackwardPass, backward_passes

__all__ = ["MarkedLine", "MarkedText", "marked_texts"]

Place = tuple[str, int]


@dataclass(slots=True, kw_only=True)
class MarkedLine:
    """One line of source: calls recorded on it, nodes they made, largest gradient that arrived.

    kind  "called", "started" (a backward or an optimizer step was called here) or ""
    """

    number: int
    text: str
    kind: str = ""
    calls: int = 0
    nodes: int = 0
    largest_grad: float | None = None
    extra: list[str] = field(default_factory=list)

    @property
    def mark(self) -> str:
        """What was recorded here, in words."""
        parts = [count(self.calls, "call")] if self.calls else []
        parts += [count(self.nodes, "node")] if self.nodes else []
        if self.largest_grad is not None:
            parts.append(f"gradient norm up to {format_number(self.largest_grad)}")
        return ", ".join([*parts, *self.extra])


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedText:
    """A function or notebook cell with its marked lines."""

    file: str
    function: str
    lines: tuple[MarkedLine, ...]


def marked_texts(recording: Recording) -> list[MarkedText]:
    """The source stretches of a recording with their marks, in stored order."""
    marks = _marks(recording, backward_passes(recording))
    return [_marked(text, marks) for text in recording.sources]


def _marked(text: SourceText, marks: dict[Place, MarkedLine]) -> MarkedText:
    lines = []
    for number, content in enumerate(text.lines, text.first_line):
        line = marks.get((text.file, number))
        lines.append(
            MarkedLine(number=number, text=content)
            if line is None
            else MarkedLine(
                number=number,
                text=content,
                kind=line.kind,
                calls=line.calls,
                nodes=line.nodes,
                largest_grad=line.largest_grad,
                extra=line.extra,
            )
        )
    return MarkedText(file=text.file, function=text.function, lines=tuple(lines))


def _marks(recording: Recording, passes: list[BackwardPass]) -> dict[Place, MarkedLine]:
    marks: dict[Place, MarkedLine] = defaultdict(lambda: MarkedLine(number=0, text=""))
    for op in recording.ops:
        if op.source is not None:
            line = marks[op.source.file, op.source.line]
            line.kind = line.kind or "called"
            line.calls += 1
            line.nodes += len(op.nodes)
    for passed in passes:
        for run in passed.runs:
            source = recording.node(run.node).source
            for grad in run.received if source is not None else ():
                if source is not None and grad is not None and grad.norm is not None:
                    line = marks[source.file, source.line]
                    line.largest_grad = _larger(line.largest_grad, grad.norm)
    for event in recording.events:
        if isinstance(event, (BackwardStarted, OptimizerStepped)) and event.source is not None:
            line = marks[event.source.file, event.source.line]
            line.kind = "started"
            is_pass = isinstance(event, BackwardStarted)
            line.extra.append(
                f"starts backward pass {event.pass_id}" if is_pass else f"{event.optimizer} step"
            )
    return marks


def _larger(one: float | None, other: float) -> float:
    """The larger norm; NaN counts as larger than any number, since it must not be hidden."""
    if one is None or math.isnan(other):
        return other
    return one if math.isnan(one) else max(one, other)
