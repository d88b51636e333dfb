"""Turn a recording into its text: a headline, then one table a phase; long ones are folded."""

from __future__ import annotations

from collections.abc import Sequence

from autograd_lab.recording import NodeId, OpCalled, Recording
from autograd_lab.replay import FlowFinding, gradient_flow, require_recording

from .numbers import count
from .passes import (
    BackwardPass,
    backward_passes,
    first_grad,
    loss_words,
    parameters_with_grad,
)
from .printable import printable
from .recording_tables import backward_table, forward_table, optimizer_lines, problem_line
from .tables import Table, text_table
from .words import PLAIN, Words

__all__ = ["full_text", "headline", "recording_text", "setting"]

LINE_BUDGET = 60
MORE = "more; autograd_lab.show.full_text(recording) prints all"
LEGEND = (
    'Numbers are 2-norms; "= v" is the value of a one-element tensor; #n is what step n returned.'
)
LISTED_PASSES = 4
LISTED_NOTES = 8


def recording_text(recording: Recording) -> str:
    """The text of a recording in at most about 60 lines; what was left out is counted."""
    return _text(recording, LINE_BUDGET)


def full_text(recording: Recording) -> str:
    """The text of a recording with every row of its tables.

    Raises RecordingError for what is no Recording, such as a Recorder.
    """
    return printable(_text(require_recording(recording, "full_text"), None))


def headline(recording: Recording) -> str:
    """One sentence: how much was recorded, and whether there was a problem or a finding."""
    return _headline(recording, gradient_flow(recording).findings)


def _headline(recording: Recording, findings: Sequence[FlowFinding]) -> str:
    calls = sum(1 for _ in recording.events_of(OpCalled))
    passes = backward_passes(recording)
    runs = sum(len(passed.runs) for passed in passes)
    parts = [count(calls, "forward call"), count(runs, "backward step")]
    if len(passes) != 1:
        parts.append(count(len(passes), "backward pass", "backward passes"))
    parts.append(
        f"{count(len(parameters_with_grad(recording)), 'leaf', 'leaves')} with a new gradient"
    )
    if recording.problems or not findings:
        parts.append(count(len(recording.problems), "problem"))
    parts += [count(len(findings), "finding")] if findings else []
    return ", ".join(parts)


def setting(recording: Recording) -> str:
    """How it was recorded, as far as it is unusual: a device that is not the CPU, values kept."""
    meta = recording.meta
    parts = [] if meta.device == "cpu" else [f"on {meta.device}"]
    parts += [] if meta.values == "auto" else [f'values="{meta.values}"']
    return f" ({', '.join(parts)})" if parts else ""


def _text(recording: Recording, budget: int | None) -> str:
    words = Words(recording)
    passes = backward_passes(recording)
    shown = passes if budget is None else passes[:LISTED_PASSES]
    tables: list[tuple[Table, list[str]]] = []
    forward = forward_table(recording, words)
    if len(forward):
        tables.append((forward, []))
    for passed in shown:
        tables.append((backward_table(recording, passed, words), _around(recording, passed)))
    findings = gradient_flow(recording).findings
    before = [f"Recording{setting(recording)}: {_headline(recording, findings)}"]
    before += _noted("! ", [problem_line(problem) for problem in recording.problems], budget)
    if findings:
        found = "; ".join(f"{finding.what} at {finding.where}" for finding in findings)
        before.append(f"Findings: {found}. gradient_flow(recording) says more.")
    after = _noted("", optimizer_lines(recording), budget)
    after += _noted("Not seen: ", [event.text for event in recording.not_seen], budget)
    if len(passes) > len(shown):
        after.insert(
            0,
            f"... {count(len(passes) - len(shown), 'more backward pass', 'more backward passes')}",
        )
    if not recording.events:
        after.append("Nothing was recorded: no forward call and no backward ran inside the block.")
    elif not passes and tables:
        after.append("No backward ran inside the block.")
    keeps = _shares(tables, None if budget is None else budget - len(before) - len(after))
    lines = before
    for (table, notes), keep in zip(tables, keeps, strict=True):
        lines += ["", f"{table.caption}{f' — {notes[0]}' if notes else ''}"]
        lines += text_table(table, keep, more=MORE)
        lines += [f"  {note}" for note in notes[1:]]
    lines += ["", *after] if after else []
    if any("=" in cell for table, _ in tables for row in table.rows for cell in row):
        lines += ["", LEGEND]
    if any(_has_dtypes(table) for table, _ in tables):
        lines.append(f"A tensor without a dtype is {PLAIN}.")
    return "\n".join(lines)


def _has_dtypes(table: Table) -> bool:
    at = [column.title for column in table.columns].index("dtype")
    return any(row[at] for row in table.rows)


def _around(recording: Recording, passed: BackwardPass) -> list[str]:
    """What a pass started from, and how it ended when it raised: in full only where no problem is.

    Torch's messages fill several lines, and the problems stand above.
    """
    start = f"starts with gradient {first_grad(passed)}"
    loss = loss_words(recording, passed)
    notes = [f"{loss}, {start}" if loss else start]
    if not passed.error:
        return notes
    said = next((one for one in recording.problems if passed.error in one.text), None)
    if said is None:
        return [*notes, f"raised {passed.error}"]
    where = f" in {_failed(recording, said.node)}" if said.node is not None else ""
    return [*notes, f"raised {passed.error.partition(':')[0]}{where}, see above"]


def _failed(recording: Recording, number: NodeId) -> str:
    """The node in which a pass raised, with its call and line; it may have no row of its own."""
    words, node = Words(recording), recording.node(number)
    made = "" if node.made_by is None else f" of {words.maker(node.made_by)}"
    line = f" at {node.source.place}" if node.source else ""
    return f"{words.node(node)}{made}{line}"


def _noted(prefix: str, texts: list[str], budget: int | None) -> list[str]:
    """Each text on its own line; above a number of them the rest is counted."""
    shown = texts if budget is None else texts[:LISTED_NOTES]
    more = [f"{prefix}... {len(texts) - len(shown)} more"] if len(texts) > len(shown) else []
    return [*(f"{prefix}{' '.join(text.split())}" for text in shown), *more]


def _shares(tables: list[tuple[Table, list[str]]], budget: int | None) -> list[int | None]:
    """How many lines each table may use: short tables give what they don't need to long ones."""
    if budget is None:
        return [None for _ in tables]
    left = budget - sum(3 + max(len(notes) - 1, 0) for _, notes in tables)
    keeps: dict[int, int] = {}
    order = sorted(range(len(tables)), key=lambda at: len(tables[at][0]))
    for position, at in enumerate(order):
        fair = max(left // (len(tables) - position), 4)
        keeps[at] = min(len(tables[at][0]), fair)
        left -= keeps[at]
    return [keeps[at] for at in range(len(tables))]
