"""Turn a recording into tables of words: forward calls, backward steps, saved tensors."""

from __future__ import annotations

from autograd_lab.recording import (
    OpCalled,
    OptimizerStepped,
    ProblemSeen,
    Recording,
    SourceLine,
)
from autograd_lab.replay import frame_at

from .numbers import count, format_nbytes, format_shape
from .passes import BackwardPass, NodeRun
from .tables import Table, column
from .words import PLAIN, Words, amount, amounts, is_bad

__all__ = [
    "backward_table",
    "forward_table",
    "optimizer_lines",
    "problem_line",
    "saved_table",
]


def forward_table(recording: Recording, words: Words) -> Table:
    """The forward calls in order: the call as written, its module, shape, norm and place."""
    rows: list[tuple[str, ...]] = []
    classes: list[str] = []
    for step, event in enumerate(recording.events, 1):
        if not isinstance(event, OpCalled):
            continue
        op = recording.op(event.op)
        marks = ["again, by checkpoint"] if op.recomputed else []
        marks += ["in place"] if op.is_inplace else []
        if not op.nodes:
            marks.append("not reached" if op.node_count else "no graph")
        shapes = ", ".join(format_shape(recording.tensor(out).shape) for out in op.outputs[:3])
        rows.append(
            (
                str(step),
                words.call(op),
                words.module(op.module),
                shapes,
                words.dtypes(event.outputs[:3]),
                amounts(event.outputs, 3),
                place(op.source),
                "; ".join(marks),
            )
        )
        classes.append("problem" if any(map(is_bad, event.outputs)) else "")
    columns = (
        column("step", number=True),
        column("call", code=True, width=38),
        column("module", code=True, width=24, keep_end=True),
        column("shape", width=20),
        column("dtype", width=22),
        column("norm", number=True, width=22),
        column("place", width=26, keep_end=True),
        column("note"),
    )
    return Table(
        caption="Forward calls, in order", columns=columns, rows=tuple(rows), classes=tuple(classes)
    )


def backward_table(recording: Recording, passed: BackwardPass, words: Words) -> Table:
    """The nodes of one backward pass in order of execution: what each received and returned."""
    rows: list[tuple[str, ...]] = []
    for run in passed.runs:
        node = recording.node(run.node)
        made = "" if node.made_by is None else words.maker(node.made_by)
        rows.append(
            (
                str(run.step),
                words.node(node),
                amounts(run.received),
                _outcome(run),
                _dtypes(run, words),
                made,
                words.module(node.module),
                place(node.source),
            )
        )
    columns = (
        column("step", number=True),
        column("node", code=True, width=32, keep_end=True),
        column("receives", number=True, width=24),
        column("returns", width=36),
        column("dtype", width=24),
        column("of call", width=24),
        column("module", code=True, width=24, keep_end=True),
        column("place", width=26, keep_end=True),
    )
    classes = tuple("problem" if run.bad else "" for run in passed.runs)
    return Table(caption=passed.title, columns=columns, rows=tuple(rows), classes=classes)


def saved_table(recording: Recording, words: Words) -> Table:
    """What each node keeps for backward: slot, tensor, shape, bytes; shared memory is marked."""
    rows: list[tuple[str, ...]] = []
    lifetimes = frame_at(recording, 0).history.lifetimes()
    seen: dict[int, tuple[int, str]] = {}  # by storage: until when, and which slot
    for node in recording.nodes:
        for slot in node.saved:
            notes = [f"packed by {slot.packed_by}"] if slot.packed_by else []
            notes += [slot.problem] if slot.problem else []
            if slot.storage is not None:
                born, end = lifetimes.get(node.id, (0, 0))
                until, other = seen.get(slot.storage, (0, ""))
                if born < until:  # else torch has given out the address again
                    notes.append(f"same memory as {other}")
                else:
                    other = f"{node.short_name} {slot.name}"
                seen[slot.storage] = max(until, end), other
            tensor = words.tensor(slot.tensor) if slot.tensor is not None else ""
            nbytes = format_nbytes(slot.nbytes) if slot.shape is not None else ""
            shape = format_shape(slot.shape)
            rows.append(
                (
                    words.node(node),
                    slot.name,
                    tensor,
                    shape,
                    slot.dtype or "",
                    nbytes,
                    "; ".join(notes),
                )
            )
    columns = (
        column("node", code=True, width=32),
        column("slot", code=True),
        column("tensor", code=True, width=24, keep_end=True),
        column("shape"),
        column("dtype"),
        column("bytes", number=True),
        column("note", width=60),
    )
    return Table(caption="Saved tensors, by node", columns=columns, rows=tuple(rows))


def optimizer_lines(recording: Recording) -> list[str]:
    """One sentence per optimizer step."""
    lines = []
    for event in recording.events_of(OptimizerStepped):
        where = f" at {event.source.place}" if event.source else ""
        written = count(len(event.parameters), "parameter")
        lines.append(
            f"{event.optimizer} stepped{where}: "
            f"{count(event.op_count, 'torch call')} wrote {written}"
        )
    return lines


def problem_line(problem: ProblemSeen) -> str:
    """A problem in words, with its place."""
    where = (
        f" ({problem.source.place})"
        if problem.source and problem.source.place not in problem.text
        else ""
    )
    return f"{problem.kind}: {problem.text}{where}"


def place(source: SourceLine | None) -> str:
    """The place of a source line, or nothing."""
    return source.place if source else ""


def _dtypes(run: NodeRun, words: Words) -> str:
    """The dtype received, and the one returned where that is another."""
    received, returned = words.dtypes(run.received), words.dtypes(run.returned)
    if received == returned or not any(run.returned):
        return received
    return f"{received or PLAIN} → {returned or PLAIN}"


def _outcome(run: NodeRun) -> str:
    gained = run.accumulated
    if gained is None:
        return amounts(run.returned) if run.finished else "did not finish"
    was = "" if gained.before is None else f", was {amount(gained.before)}"
    return f".grad now {amount(gained.after)}{was}"
