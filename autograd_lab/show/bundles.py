"""Turn a record into what Jupyter shows: text, and HTML or PNG fit for untrusted notebooks."""

from __future__ import annotations

import base64
import html
from typing import Any

from autograd_lab.recording import Recording
from autograd_lab.replay import Cursor, Frame, GradientFlow, layout_graph

from .describing import describe
from .figures import flow_figure
from .frame_text import frame_text
from .passes import backward_passes
from .printable import printable
from .recording_tables import backward_table, forward_table, problem_line
from .recording_text import headline, setting
from .svg import DRAWN_NODES, graph_svg
from .tables import html_table
from .words import Words

__all__ = ["mimebundle"]

Bundle = tuple[dict[str, Any], dict[str, Any]]
ROWS = 30
PICTURE_NBYTES = 400_000


def mimebundle(record: object) -> Bundle:
    """Return (data, metadata) by MIME type; text/plain is always there.

    A recording, frame or cursor has text/html: a picture as `<img>`, since inline SVG, style and
    script are removed from untrusted notebooks, then tables and words. A gradient flow has an
    `<img>` that follows the reader's theme, and image/png for places that show no HTML.
    """
    data: dict[str, Any] = {"text/plain": describe(record)}
    match record:
        case Recording():
            data["text/html"] = _recording_html(record)
        case Frame():
            data["text/html"] = _frame_html(record)
        case Cursor():
            data["text/html"] = _frame_html(record.frame)
        case GradientFlow() if record.rows:
            shown, metadata = flow_figure(record)._repr_mimebundle_()
            return {**shown, **data}, metadata
        case _:
            pass
    return data, {}


def _recording_html(recording: Recording) -> str:
    words = Words(recording)
    title = f"Recording{setting(recording)}: {headline(recording)}"
    problems = "".join(
        f"<li><strong>Problem</strong> {html.escape(problem_line(one))}</li>"
        for one in recording.problems[:ROWS]
    )
    unseen = "".join(f"<li>Not seen: {html.escape(one.text)}</li>" for one in recording.not_seen)
    tables = [forward_table(recording, words)]
    tables += [backward_table(recording, one, words) for one in backward_passes(recording)[:4]]
    shown = "".join(
        f"<details><summary>{html.escape(table.caption)}</summary>"
        f"{html_table(table, ROWS, style=True)}</details>"
        for table in tables
        if len(table)
    )
    notes = f"<ul>{problems}{unseen}</ul>" if problems or unseen else ""
    return _static(f"<p>{html.escape(title)}</p>{notes}{_image(recording, None)}{shown}")


def _frame_html(frame: Frame) -> str:
    text = html.escape(frame_text(frame))
    return _static(f"{_image(frame.recording, frame.index)}<pre>{text}</pre>")


def _static(body: str) -> str:
    return printable(f'<div class="autograd-lab-static">{body}</div>')


def _image(recording: Recording, step: int | None) -> str:
    """The graph as an image; folded when there are many boxes, none when nothing ran."""
    if not recording.ops and not recording.nodes:
        return ""
    svg = graph_svg(recording, step)
    if len(svg) > PICTURE_NBYTES:
        return "<p>The graph is too large for a picture here; to_html() writes a page with it.</p>"
    where = "" if step is None else f" at step {step} of {len(recording.events)}"
    hidden = layout_graph(recording, max_nodes=DRAWN_NODES).hidden
    folded = f" {hidden} of them are folded." if hidden else ""
    alt = f"Graph of forward calls and backward nodes{where}: {headline(recording)}.{folded}"
    uri = base64.b64encode(svg.encode()).decode()
    return (
        '<div style="max-height:45em;overflow:auto">'
        f'<img alt="{html.escape(alt)}" style="max-width:none"'
        f' src="data:image/svg+xml;base64,{uri}"></div>'
    )
