"""Turn the parts of a recording into the sections of its page."""

from __future__ import annotations

import base64
import html
import io
import re

from PIL import Image

from autograd_lab.recording import Recording
from autograd_lab.replay import GradientFlow, gradient_flow

from .figures import FlowFigure, flow_figure
from .flow_text import flow_table, parameter_table
from .numbers import count
from .pack import NOTHING_DRAWN, pack_of
from .passes import backward_passes
from .recording_tables import (
    backward_table,
    forward_table,
    optimizer_lines,
    saved_table,
)
from .rules import rule_table
from .source_lines import MarkedLine, MarkedText, marked_texts
from .stepper_page import stepper_html
from .svg import graph_svg
from .tables import Table, html_table
from .words import Words

__all__ = [
    "flow_section",
    "graph_section",
    "source_section",
    "stepper_section",
    "tables_section",
]

OPEN_ROWS = 40
TABLE_ROWS = 40  # of a long table; the Stepper above has every step
GRAPH_NBYTES = 60_000
FEW_BOXES = 80
FIGURE_NBYTES = 60_000
FIGURE_DPI = 80
FIGURE_COLOURS = 32
SIZE = re.compile(r' width="(\d+)" height="(\d+)"')
GROWN = 1.25
PANE_VH = 75  # a little less than the pane's height in page.css
MORE = "more rows; the Stepper above has every step"
SIDEWAYS = "The {} is wider than this window: scroll it sideways →"
READING = (
    "Blue runs down: the forward calls in order. Orange runs up: the backward nodes, each beside "
    "the call that made it; where one call made several, they follow each other up. Green boxes "
    "are leaves; a gradient ends there, in .grad. Point at a box for its numbers and its rule."
)


def stepper_section(recording: Recording, step: int, hide: str) -> str:
    """The Stepper: it runs in the page itself."""
    return stepper_html(pack_of(recording, hide=hide), step=step, hide=hide)


def graph_section(recording: Recording) -> str:
    """The graph in a pane of its own: grown as far as it fits, never shrunk but scrolled."""
    if not recording.ops and not recording.nodes:
        return f"<p>{NOTHING_DRAWN}</p>"
    svg = graph_svg(recording)
    if len(svg) > GRAPH_NBYTES:
        svg = graph_svg(recording, max_nodes=FEW_BOXES)
    found = SIZE.search(svg)
    assert found is not None
    width, height = map(int, found.groups())
    most = f"min({GROWN * width:.0f}px,{PANE_VH * width / height:.0f}vh)"
    return (
        f"<p>{READING}</p>"
        f"<style>#graph svg{{min-width:{width}px;max-width:{most}}}"
        f"@container(max-width:{width + 1}px){{#graph .sideways{{display:block}}}}</style>"
        f'<div class="frame"><p class="sideways">{SIDEWAYS.format("graph")}</p>'
        '<div class="pane" tabindex="0" role="region" aria-label="Graph, scrollable">'
        f"{svg}</div></div>"
    )


def flow_section(recording: Recording) -> str:
    """Findings, the figure in the reader's theme and its two tables."""
    flow = gradient_flow(recording)
    if not flow.rows:
        return f"<p>{html.escape(flow.note or 'No backward ran.')}</p>"
    findings = "".join(
        f'<li class="finding"><b>{html.escape(one.what)}</b>{html.escape(one.where)}'
        f"<small>{html.escape(one.evidence)} {html.escape(one.try_)}</small></li>"
        for one in flow.findings
    )
    notes = f'<ul class="notes">{findings}</ul>' if findings else ""
    if flow.note:
        notes += f"<p>{html.escape(flow.note)}</p>"
    elif not findings and not recording.problems:
        notes = "<p>No finding: the flow looks healthy.</p>"
    tables = [flow_table(flow), parameter_table(flow)]
    return (
        notes
        + '<div class="frame"><p class="sideways">'
        + SIDEWAYS.format("figure")
        + '</p><div class="wide" tabindex="0" role="region" aria-label="Gradient-flow figure">'
        + _figure(flow)
        + "</div></div>"
        + "".join(_folded(table, open_rows=0) for table in tables if len(table))
    )


def _figure(flow: GradientFlow) -> str:
    """The figure as vectors, or where they are many as two small images, light and dark."""
    figure = flow_figure(flow)
    vectors = figure.img('class="picture"')
    if len(vectors) <= FIGURE_NBYTES:
        return vectors
    light, dark = (_png(flow_figure(flow, theme=theme)) for theme in ("light", "dark"))
    return (
        f'<picture><source media="(prefers-color-scheme:dark)" srcset="{dark}">'
        f'<img class="picture" alt="{html.escape(figure.alt)}" src="{light}"></picture>'
    )


def _png(figure: FlowFigure) -> str:
    """A figure as a PNG of few colours: a third of the bytes, and nobody sees it."""
    buffer = io.BytesIO()
    with Image.open(io.BytesIO(figure.png(FIGURE_DPI))) as image:
        image.convert("RGB").quantize(FIGURE_COLOURS).save(buffer, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def source_section(recording: Recording) -> str:
    """The source around recorded lines, the lines marked."""
    return "".join(_source(text) for text in marked_texts(recording))


def tables_section(recording: Recording) -> str:
    """Forward calls, backward steps of each pass, optimizer steps, rules, saved tensors."""
    words = Words(recording)
    tables = [forward_table(recording, words)]
    tables += [backward_table(recording, one, words) for one in backward_passes(recording)]
    tables += [rule_table(recording), saved_table(recording, words)]
    steps = "".join(f"<p>{html.escape(line)}.</p>" for line in optimizer_lines(recording))
    return steps + "".join(_folded(table) for table in tables if len(table))


def _folded(table: Table, open_rows: int = OPEN_ROWS) -> str:
    """A table in a details element, open when it is short."""
    is_open = " open" if len(table) <= open_rows else ""
    summary = f"{html.escape(table.caption)} ({count(len(table), 'row')})"
    body = html_table(table, TABLE_ROWS, more=MORE)
    return (
        f"<details{is_open}><summary>{summary}</summary>"
        f'<div class="wide" tabindex="0" role="region" aria-label="{html.escape(table.caption)}">'
        f"{body}</div></details>"
    )


def _source(text: MarkedText) -> str:
    rows = "".join(map(_source_row, text.lines))
    name = text.file if text.function == "<module>" else f"{text.file}, {text.function}"
    return (
        f'<h3>{html.escape(name)}</h3><div class="code" tabindex="0" role="region"'
        f' aria-label="Source of {html.escape(name)}"><table>'
        '<thead class="hidden"><tr><th scope="col">line</th><th scope="col">source</th>'
        f'<th scope="col">recorded here</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _source_row(line: MarkedLine) -> str:
    kind = f' class="{line.kind}"' if line.kind else ""
    return (
        f'<tr{kind}><th class="number" scope="row">{line.number}</th>'
        f'<td><pre style="--indent:{_indent(line.text) + 4}ch">{html.escape(line.text)}</pre></td>'
        f'<td class="mark">{html.escape(line.mark)}</td></tr>'
    )


def _indent(text: str) -> int:
    """Columns before the first letter: a line that is wrapped goes on to the right of there."""
    text = text.expandtabs(8)
    return min(len(text) - len(text.lstrip()), 24)
