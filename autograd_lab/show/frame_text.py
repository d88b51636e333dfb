"""Turn a Frame into words: what runs by which rule, what waits, what is kept, which `.grad`."""

from __future__ import annotations

from typing import assert_never

from autograd_lab.recording import (
    BackwardFinished,
    BackwardStarted,
    Event,
    GradAccumulated,
    GradNode,
    NodeFinished,
    NodeStarted,
    NotSeen,
    OpCalled,
    OptimizerStepped,
    ProblemSeen,
    Snapshot,
    SourceLine,
)
from autograd_lab.replay import Cursor, Frame

from .numbers import count, format_nbytes, format_number, format_shape
from .rules import formula_lines
from .tables import shorten
from .words import HIDDEN, Words, amount

__all__ = [
    "cursor_text",
    "event_words",
    "frame_text",
    "number_rows",
    "statistics",
    "step_line",
    "value_lines",
]

LISTED = 6
SMALL = 36


def frame_text(frame: Frame) -> str:
    """The text of a frame."""
    words = Words(frame.recording)
    lines = [step_line(frame, words)]
    lines += [f"  {line}" for line in _event_lines(frame, words)]
    waiting = [
        f"{words.node_of(node)} has {got} of {of} gradients"
        for node, (got, of) in sorted(frame.waiting.items())
    ]
    saved = [f"{words.node_of(kept.node)} {kept.slot}" for kept in frame.saved_alive]
    grads = [f"{words.tensor(leaf)} {amount(grad)}" for leaf, grad in sorted(frame.grads.items())]
    lines.append(f"Done so far: {count(frame.ops_done, 'forward call')}{_done(frame)}")
    if frame.pass_id is not None:
        lines.append(f"Waiting: {_listed(waiting)}")
    if frame.ready:
        ready = [words.node_of(node) for node in sorted(frame.ready)]
        lines.append(f"Ready to run: {_listed(ready)}")
    alive = f"{count(len(saved), 'tensor')}, {format_nbytes(frame.saved_nbytes)}" if saved else ""
    lines.append(f"Saved for backward: {alive}{f' ({_listed(saved)})' if saved else 'nothing'}")
    lines.append(f".grad{_since(frame)}: {_listed(grads)}")
    return "\n".join(lines)


def step_line(frame: Frame, words: Words) -> str:
    """Where a frame stands and what just happened, in one line."""
    place = f"Step {frame.index} of {len(frame.recording.events)}"
    if frame.event is None:
        return f"{place}: nothing has run yet"
    phase = "" if frame.phase == "between" else f", {frame.phase}"
    return f"{place}{phase}: {event_words(frame.event, words)}"


def cursor_text(cursor: Cursor) -> str:
    """The text of a cursor is that of the frame it stands at."""
    return frame_text(cursor.frame)


def event_words(event: Event, words: Words) -> str:
    """What just happened, in a few words."""
    match event:
        case OpCalled():
            op = words.recording.op(event.op)
            return f"called {words.call(op)}{' again, by checkpoint' if op.recomputed else ''}"
        case BackwardStarted():
            call = "backward()" if event.accumulates else "autograd.grad()"
            return f"{call} starts pass {event.pass_id}"
        case BackwardFinished():
            ended = f"raised {shorten(event.error, 72)}" if event.error else "is finished"
            return f"pass {event.pass_id} {ended}"
        case NodeStarted():
            return f"{words.node_of(event.node)} starts"
        case NodeFinished():
            return f"{words.node_of(event.node)} is finished"
        case GradAccumulated():
            gone = " and is None again" if event.after is None else ""
            return f"{words.tensor(event.leaf)}.grad gains {_in_words(event.added)}{gone}"
        case OptimizerStepped():
            return f"{event.optimizer} wrote {count(len(event.parameters), 'parameter')}"
        case ProblemSeen():
            return f"problem, {event.kind}"
        case NotSeen():
            return f"not seen, {event.reason}"
    assert_never(event)


def number_rows(snapshot: Snapshot) -> list[list[str]]:
    """The numbers of a small tensor, row by row, where all are known; else nothing."""
    values = snapshot.values
    if values is None or values.sampled_from is not None or not 0 < values.array.size <= SMALL:
        return []
    array = values.array
    rows = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)
    return [[format_number(number.item()) for number in row] for row in rows]


def value_lines(snapshot: Snapshot) -> list[str]:
    """The numbers of a small tensor, aligned, a line a row."""
    cells = number_rows(snapshot)
    width = max((len(cell) for row in cells for cell in row), default=0)
    return ["  ".join(cell.rjust(width) for cell in row) for row in cells]


def statistics(snapshot: Snapshot) -> list[str]:
    """Norm and what else is known of a tensor."""
    if snapshot.note == HIDDEN:
        return [HIDDEN]
    if snapshot.norm is None:
        return [f"no number: {snapshot.note or 'unknown'}"]
    detail = snapshot.detail
    parts = [f"norm {format_number(snapshot.norm)}", f"rms {format_number(snapshot.rms)}"]
    if detail is not None:
        parts += [
            f"{word} {format_number(value)}"
            for word, value in (("min", detail.min), ("max", detail.max))
            if value is not None
        ]
        counts = ((detail.zeros, "zero"), (detail.nans, "NaN"), (detail.infs, "Inf"))
        parts += [f"{number} {word} of {snapshot.numel}" for number, word in counts if number]
    return parts


def _event_lines(frame: Frame, words: Words) -> list[str]:
    event = frame.event
    match event:
        case None:
            return []
        case OpCalled():
            op = frame.recording.op(event.op)
            lines = _tensors("takes", event.inputs, words) + _tensors(
                "returns", event.outputs, words
            )
            where = f"{words.module(op.module)} ({op.module_type})" if op.module_type else ""
            return [*([f"module   {where}"] if where else []), *_source(op.source), *lines]
        case BackwardStarted():
            return [*_source(event.source), *_tensors("starts with", event.grad_outputs, words)]
        case NodeStarted():
            return [
                *_node(frame.recording.node(event.node)),
                *_tensors("receives", event.grad_outputs, words),
            ]
        case NodeFinished():
            node = frame.recording.node(event.node)
            received = _received(frame)
            lines = [] if node.leaf is not None else _tensors("returns", event.grad_inputs, words)
            return [*_node(node), *_tensors("received", received, words), *lines]
        case GradAccumulated():
            return [
                *_tensors("before", (event.before,), words),
                *_tensors("added", (event.added,), words),
                *_tensors("after", (event.after,), words),
            ]
        case OptimizerStepped():
            return [
                *_source(event.source),
                f"wrote    {_listed([words.tensor(one) for one in event.parameters])}",
            ]
        case ProblemSeen():
            return [*_source(event.source), event.text]
        case NotSeen():
            return [event.text]
        case BackwardFinished():
            return []
    assert_never(event)


def _received(frame: Frame) -> tuple[Snapshot | None, ...]:
    """What the node that just finished had received: in the newest start of it before this step."""
    finished = frame.event
    assert isinstance(finished, NodeFinished)
    for event in reversed(frame.recording.events[: frame.index]):
        if isinstance(event, NodeStarted) and (event.node, event.pass_id) == (
            finished.node,
            finished.pass_id,
        ):
            return event.grad_outputs
    return ()


def _node(node: GradNode) -> list[str]:
    rule = [f"rule     {node.rule}"] if node.rule else []
    word = "in torch" if rule else "rule"
    formula = enumerate(formula_lines(node))
    lines = [f"{'' if number else word:<8} {text}" for number, text in formula]
    return [*rule, *lines, *_source(node.source)]


def _source(source: SourceLine | None) -> list[str]:
    return [f"source   {source.place}  {source.text.strip()}".rstrip()] if source else []


def _tensors(word: str, snapshots: tuple[Snapshot | None, ...], words: Words) -> list[str]:
    """A line for each tensor: its shape and statistics; small ones show their numbers."""
    lines: list[str] = []
    for number, snapshot in enumerate(snapshots):
        lead = f"{word if number == 0 else '':<8} "
        if snapshot is None:
            lines.append(f"{lead}none")
            continue
        shape = format_shape(words.recording.tensor(snapshot.tensor).shape)
        dtype = words.dtypes((snapshot,))
        shape = f"{shape} {dtype}" if dtype else shape
        small = value_lines(snapshot)
        if len(small) == 1:
            is_plain = snapshot.numel == 1 and not dtype
            lines.append(f"{lead}{'' if is_plain else f'{shape} '}{small[0]}")
            continue
        lines.append(f"{lead}{shape} {', '.join(statistics(snapshot))}")
        lines += [f"{'':<11}{row}" for row in small]
    return lines


def _in_words(snapshot: Snapshot | None) -> str:
    if snapshot is None:
        return "nothing"
    shown = amount(snapshot)
    return shown.removeprefix("= ") if shown.startswith("= ") else f"norm {shown}"


def _since(frame: Frame) -> str:
    """From when `.grad` is known: what clears it between passes is not seen."""
    in_pass = frame.pass_id is None or frame.phase.startswith("backward")
    return " exists" if in_pass else " exists, as the passes so far left it"


def _done(frame: Frame) -> str:
    return (
        f", {count(len(frame.done), 'backward node')} of pass {frame.pass_id}"
        if frame.pass_id is not None
        else ""
    )


def _listed(texts: list[str]) -> str:
    if not texts:
        return "none"
    more = [f"{len(texts) - LISTED} more"] if len(texts) > LISTED else []
    return ", ".join([*(shorten(text, 48) for text in texts[:LISTED]), *more])
