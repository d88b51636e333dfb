"""Turn a recording into HTML that untrusted notebooks keep: an image, tables, words."""

from __future__ import annotations

import base64
import html

from autograd_lab.recording import Recording
from autograd_lab.replay import layout_graph

from .passes import backward_passes
from .printable import printable
from .recording_tables import backward_table, forward_table, problem_line
from .recording_text import headline
from .svg import DRAWN_NODES, graph_svg
from .tables import html_table
from .words import Words

__all__ = ["notes_html", "picture_html", "static_html", "tables_html"]

ROWS = 30
PICTURE_NBYTES = 400_000
SHOWN_PASSES = 4


def static_html(body: str) -> str:
    """The marked block around static HTML, so that a notebook check can find it."""
    return printable(f'<div class="autograd-lab-static">{body}</div>')


def picture_html(recording: Recording, step: int | None, *, max_nodes: int = DRAWN_NODES) -> str:
    """The graph as an image, folded above `max_nodes` boxes; nothing when nothing ran."""
    if not recording.ops and not recording.nodes:
        return ""
    svg = graph_svg(recording, step, max_nodes=max_nodes)
    if len(svg) > PICTURE_NBYTES:
        return "<p>The graph is too large for a picture here; to_html() writes a page with it.</p>"
    where = "" if step is None else f" at step {step} of {len(recording.events)}"
    hidden = layout_graph(recording, max_nodes=max_nodes).hidden
    folded = f" {hidden} of them are folded." if hidden else ""
    alt = f"Graph of forward calls and backward nodes{where}: {headline(recording)}.{folded}"
    uri = base64.b64encode(svg.encode()).decode()
    return (
        '<div style="max-height:45em;overflow:auto">'
        f'<img alt="{html.escape(alt)}" style="max-width:none"'
        f' src="data:image/svg+xml;base64,{uri}"></div>'
    )


def notes_html(recording: Recording) -> str:
    """Problems and what was not seen, as a list; nothing where there is none."""
    problems = "".join(
        f"<li><strong>Problem</strong> {html.escape(problem_line(one))}</li>"
        for one in recording.problems[:ROWS]
    )
    unseen = "".join(f"<li>Not seen: {html.escape(one.text)}</li>" for one in recording.not_seen)
    return f"<ul>{problems}{unseen}</ul>" if problems or unseen else ""


def tables_html(recording: Recording, rows: int = ROWS) -> str:
    """The forward calls and the backward steps of the first passes, each folded away."""
    words = Words(recording)
    tables = [forward_table(recording, words)]
    passes = backward_passes(recording)[:SHOWN_PASSES]
    tables += [backward_table(recording, one, words) for one in passes]
    return "".join(
        f"<details><summary>{html.escape(table.caption)}</summary>"
        f"{html_table(table, rows, style=True)}</details>"
        for table in tables
        if len(table)
    )
