"""Turn a recording into one self-contained HTML page: the Stepper, then what can be read."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from autograd_lab.recording import Recording
from autograd_lab.replay import Cursor, require_recording

from .hiding import with_values_hidden
from .numbers import count, format_nbytes
from .page_parts import (
    flow_section,
    graph_section,
    source_section,
    stepper_section,
    tables_section,
)
from .palette import DARK, LIGHT, css_variables
from .passes import backward_passes, loss_words, losses_of, parameters_with_grad
from .printable import printable
from .recording_tables import problem_line
from .recording_text import headline

__all__ = ["page_html", "to_html"]


def to_html(
    recording: Recording, path: str | os.PathLike[str], *, step: int = 0, hide: str = ""
) -> Path:
    """Write the page of a recording and return its path; folders on the way are made.

    step  where its Stepper stands
    hide  "values" shows numbers as ?, in the Stepper until they are revealed

    The page holds the whole Stepper and needs no kernel, no network and no other file; where
    scripts are off the graph, tables and words below it remain. It is written whole under another
    name first, so a crash leaves the old file.
    """
    require_recording(recording, "to_html")
    path = Path(path)
    data = page_html(recording, step=step, hide=hide).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


def page_html(recording: Recording, *, step: int = 0, hide: str = "") -> str:
    """The page as text; the same recording gives the same text."""
    stepper = stepper_section(recording, step, hide)
    if hide:
        recording = with_values_hidden(recording)
    title = _title(recording)
    sections = [
        ("stepper", "Step through it", stepper),
        ("problems", "Problems", _problems(recording)),
        ("numbers", "In numbers", _tiles(recording)),
        ("graph", "The graph", graph_section(recording)),
        ("flow", "How the gradient flows", flow_section(recording)),
        ("source", "Where it happened", source_section(recording)),
        ("tables", "Everything that was recorded", tables_section(recording)),
        ("unseen", "What could not be seen", _not_seen(recording)),
        ("setting", "How it was recorded", _setting(recording)),
    ]
    shown = [(name, words, body) for name, words, body in sections if body]
    links = "".join(f'<li><a href="#{name}">{words}</a></li>' for name, words, _ in shown)
    bodies = "".join(
        f'<section id="{name}" aria-labelledby="{name}-h">'
        f'<h2 id="{name}-h">{words}</h2>{body}</section>'
        for name, words, body in shown
    )
    return printable(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{html.escape(title)}</title><style>{_css()}</style></head><body>"
        '<a class="skip" href="#main">Skip to the content</a>'
        f"<header><h1>{html.escape(title)}</h1>"
        f'<p class="lead">{html.escape(_lead(recording))}</p>'
        f'<nav aria-label="Contents"><ul>{links}</ul></nav></header>'
        f'<main id="main">{bodies}</main>'
        "<footer><p>Made by autograd_lab from what PyTorch ran. Numbers are 2-norms where nothing "
        "else is said; step i is frame i of the recording.</p></footer></body></html>\n"
    )


def _title(recording: Recording) -> str:
    passes = backward_passes(recording)
    if not passes:
        return "Recorded forward, no backward"
    loss = loss_words(recording, passes[-1])
    name = loss.split(" = ")[0] if loss else None
    source = passes[-1].started.source
    return f"Backward{f' of {name}' if name else ''}{f' at {source.place}' if source else ''}"


def _lead(recording: Recording) -> str:
    text = f"{headline(recording)}."
    return text[:1].upper() + text[1:]


def _tiles(recording: Recording) -> str:
    passes = backward_passes(recording)
    steps = sum(len(passed.runs) for passed in passes)
    cursor = Cursor(recording)
    saved = max(cursor.seek(step).saved_nbytes for step in range(len(cursor)))
    losses = losses_of(recording, passes)
    loss = next((losses[number] for number in sorted(losses)), "")
    name, _, value = loss.partition(" = ")
    calls = len([op for op in recording.ops if op.nodes]) if passes else len(recording.ops)
    problems = len(recording.problems)
    tiles = [
        ("forward", value, name) if value else None,
        (
            "forward",
            str(calls),
            "forward calls that backward reaches" if passes else "forward calls",
        ),
        ("backward", str(steps), "backward steps"),
        ("leaf", str(len(parameters_with_grad(recording))), "leaves with a new gradient"),
        ("backward", format_nbytes(saved), "at most saved for backward at once"),
        ("problem", str(problems), "problem" if problems == 1 else "problems")
        if problems
        else None,
    ]
    items = (
        f'<li class="{kind}"><b>{html.escape(number)}</b> {html.escape(words)}</li>'
        for kind, number, words in filter(None, tiles)
    )
    return f'<ul class="tiles">{"".join(items)}</ul>'


def _problems(recording: Recording) -> str:
    return _notes("problem", (problem_line(problem) for problem in recording.problems))


def _not_seen(recording: Recording) -> str:
    return _notes("", (event.text for event in recording.not_seen))


def _notes(kind: str, texts: Iterable[str]) -> str:
    items = "".join(f'<li class="{kind}">{html.escape(text)}</li>' for text in texts)
    return f'<ul class="notes">{items}</ul>' if items else ""


def _setting(recording: Recording) -> str:
    meta = recording.meta
    facts = [
        ("PyTorch", meta.torch_version or "unknown"),
        ("Device", meta.device),
        ("Values kept", f'values="{meta.values}"'),
        ("Byte budget", format_nbytes(meta.budget_nbytes) if meta.budget_nbytes else "none"),
        ("Events", count(len(recording.events), "event")),
        ("Schema", f"version {meta.schema_version}"),
    ]
    items = "".join(f"<dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd>" for k, v in facts)
    return f"<dl>{items}</dl>"


def _css() -> str:
    dark = f"@media (prefers-color-scheme:dark){{:root{{{css_variables(DARK)}}}}}"
    paper = f"@media print{{:root{{{css_variables(LIGHT)}}}}}"
    sheet = files("autograd_lab.show").joinpath("static", "page.css").read_text(encoding="utf-8")
    return f":root{{{css_variables(LIGHT)}}}{dark}{paper}\n{sheet}"
