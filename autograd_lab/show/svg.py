"""Turn a recording into the SVG of its graph: forward down, backward up, at a step or whole."""

from __future__ import annotations

import html
from collections.abc import Sequence

from autograd_lab.recording import Recording
from autograd_lab.replay import GraphLayout, PlacedEdge, PlacedNode, layout_graph

from .box_words import BoxWords, Status
from .frame_text import event_words
from .palette import DARK, LIGHT, THEMES, Theme, css_variables
from .recording_text import headline
from .tables import shorten
from .words import Words

__all__ = ["DRAWN_NODES", "graph_svg"]

DRAWN_NODES = 300
MARGIN = 16.0
HEAD = 46.0
FOOT = 46.0
LINE_HEIGHT = 20.0
STEP_LEGEND = [("r now", "runs now"), ("r wait", "waits for more"), ("later", "not yet run")]
SANS = 'system-ui,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif'
MONO = 'ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace'
STYLE = f"""
.al-graph text{{font:12px {SANS};fill:var(--al-text)}}
.al-graph .l{{font:600 12px {MONO};text-anchor:middle}}
.al-graph .s{{text-anchor:middle}}
.al-graph .bg{{fill:var(--al-background)}}
.al-graph .h{{font-size:14px;font-weight:650}}
.al-graph .q{{fill:var(--al-dim)}}
.al-graph .c{{text-anchor:middle}}
.al-graph .lane{{fill:var(--al-surface)}}
.al-graph .e{{fill:none;stroke-width:1.6}}
.al-graph .tie{{fill:none;stroke:var(--al-line);stroke-width:1.6}}
.al-graph .tie{{stroke-dasharray:1 5;stroke-linecap:round}}
.al-graph rect.b{{stroke-width:1.6}}
.al-graph .f rect.b{{fill:var(--al-forward-fill);stroke:var(--al-forward-stroke)}}
.al-graph .f text,.al-graph text.f{{fill:var(--al-forward-text)}}
.al-graph .e.f{{stroke:var(--al-forward-stroke)}}
.al-graph .r rect.b{{fill:var(--al-backward-fill);stroke:var(--al-backward-stroke)}}
.al-graph .r text,.al-graph text.r{{fill:var(--al-backward-text)}}
.al-graph .e.r{{stroke:var(--al-backward-stroke)}}
.al-graph .t rect.b{{fill:var(--al-leaf-fill);stroke:var(--al-leaf-stroke)}}
.al-graph .t text{{fill:var(--al-leaf-text)}}
.al-graph .i rect.b{{fill:var(--al-background);stroke:var(--al-dim)}}
.al-graph .p rect.b{{fill:var(--al-problem-fill);stroke:var(--al-problem-stroke);stroke-width:2.4}}
.al-graph .p text{{fill:var(--al-problem-text)}}
.al-graph .now rect.b{{stroke-width:2.4}}
.al-graph .f.now rect.b{{fill:var(--al-forward-now)}}
.al-graph .r.now rect.b{{fill:var(--al-backward-now)}}
.al-graph .now text{{fill:var(--al-on-now)}}
.al-graph .wait rect.b{{stroke-dasharray:4 3;fill:var(--al-background)}}
.al-graph .later rect.b{{fill:var(--al-background);stroke:var(--al-later-stroke)}}
.al-graph .later rect.b{{stroke-dasharray:4 3}}
.al-graph .later text{{fill:var(--al-later-text)}}
.al-graph .e.later{{stroke:var(--al-later-stroke);stroke-dasharray:4 3}}
.al-graph .hf{{fill:var(--al-forward-stroke)}}
.al-graph .hr{{fill:var(--al-backward-stroke)}}
.al-graph .hl{{fill:var(--al-later-stroke)}}
"""


def graph_svg(
    recording: Recording,
    step: int | None = None,
    *,
    theme: Theme = "auto",
    max_nodes: int | None = DRAWN_NODES,
) -> str:
    """Draw the graph of a recording; the same recording gives the same text.

    step       None draws what happened in the end; a step number also says what is done, what runs
               now and what has not run yet (frame `step` of the recording)
    theme      "auto" follows the reader's light or dark setting
    max_nodes  above this many boxes the layout folds modules and repeats; None folds nothing
    """
    layout = layout_graph(recording, max_nodes=max_nodes)
    words = BoxWords(recording, layout, step)
    width = max(layout.width, 470.0) + 2 * MARGIN
    shift = (width - layout.width) / 2
    caption = _caption(recording, step)
    top = LINE_HEIGHT + 6 if caption else 0.0
    legend = _legend(width, top, step is not None)
    head = HEAD + top + LINE_HEIGHT * (len(legend) - 1)
    height = head + layout.height + FOOT
    label = html.escape(_label(recording, layout, step))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="al-graph" role="graphics-document"'
        f' aria-label="{label}" viewBox="0 0 {width:.0f} {height:.0f}"'
        f' width="{width:.0f}" height="{height:.0f}">',
        f"<style>{_colours(theme)}{STYLE}</style>",
        _markers(),
        f'<rect class="bg" width="{width:.0f}" height="{height:.0f}" rx="10"/>',
        caption,
        *legend,
        f'<g transform="translate({shift:.1f} {head:.1f})">',
        *_lanes(layout),
        *_ties(layout, words),
        *(_edge(edge, words) for edge in layout.edges),
        *_turns(layout, words),
        *(_box(node, words) for node in layout.nodes),
        "</g></svg>",
    ]
    return "".join(part for part in parts if part)


def _label(recording: Recording, layout: GraphLayout, step: int | None) -> str:
    where = "" if step is None else f", at step {step} of {len(recording.events)}"
    folded = f"; {layout.hidden} are folded" if layout.hidden else ""
    return f"Graph of forward and backward{where}: {headline(recording)}{folded}"


def _colours(theme: Theme) -> str:
    if theme != "auto":
        return f".al-graph{{{css_variables(THEMES[theme])}}}"
    dark = f"@media (prefers-color-scheme:dark){{.al-graph{{{css_variables(DARK)}}}}}"
    return f".al-graph{{{css_variables(LIGHT)}}}{dark}"


def _markers() -> str:
    return (
        "<defs>"
        + "".join(
            f'<marker id="al-{name}" viewBox="0 0 8 8" refX="7.2" refY="4" markerWidth="7.5"'
            f' markerHeight="7.5" markerUnits="userSpaceOnUse" orient="auto">'
            f'<path d="M0 .4L8 4L0 7.6z" class="{name}"/></marker>'
            for name in ("hf", "hr", "hl")
        )
        + "</defs>"
    )


def _caption(recording: Recording, step: int | None) -> str:
    """What happens at a step, in words above the picture."""
    if step is None:
        return ""
    event = recording.events[step - 1] if step else None
    words = event_words(event, Words(recording)) if event else "nothing has run yet"
    text = shorten(f"Step {step} of {len(recording.events)}: {words}", 66)
    return f'<text class="h" x="{MARGIN:.0f}" y="24">{html.escape(text)}</text>'


def _legend(width: float, top: float, at_step: bool) -> list[str]:
    """The legend, wrapped into lines that fit."""
    entries = [("f", "forward call ↓"), ("r", "backward node ↑"), ("t", "leaf and its .grad")]
    entries += STEP_LEGEND if at_step else []
    lines, x, y = [], MARGIN, top + 16.0
    for kind, text in entries:
        size = 30 + 7.2 * len(text)
        if x > MARGIN and x + size > width - MARGIN:
            x, y = MARGIN, y + LINE_HEIGHT
        if x == MARGIN:
            lines.append("")
        box = f'<rect class="b" x="{x:.0f}" y="{y - 5:.0f}" width="16" height="12" rx="3"/>'
        lines[-1] += (
            f'<g class="{kind}">{box}</g><text x="{x + 22:.0f}" y="{y + 5:.0f}">{text}</text>'
        )
        x += size + 14
    return lines


def _lanes(layout: GraphLayout) -> list[str]:
    parts = []
    for lane in layout.lanes:
        colour = "r" if lane.pass_id is not None else "f"
        arrow = "↑" if lane.pass_id is not None else "↓"
        parts.append(
            f'<rect class="lane" x="{lane.x - 8:.1f}" y="-8" width="{lane.width + 16:.1f}"'
            f' height="{layout.height + 40:.1f}" rx="12"/>'
            f'<text class="h c {colour}" x="{lane.x + lane.width / 2:.1f}" y="15">'
            f"{html.escape(lane.title)} {arrow}</text>"
        )
    return parts


def _ties(layout: GraphLayout, words: BoxWords) -> list[str]:
    """Dotted lines from a call to the nodes that it made, where they stand on its row."""
    makers = {op: box for box in layout.nodes if box.kind == "op" for op in box.ops}
    parts = []
    for box in layout.nodes:
        maker = makers.get(words.maker(box))
        if maker is not None and maker.row == box.row and box.lane == 1:
            y = box.y + box.height / 2
            parts.append(
                f'<path class="tie" d="M{maker.x + maker.width:.1f} {y:.1f}H{box.x:.1f}"/>'
            )
    return parts


def _edge(edge: PlacedEdge, words: BoxWords) -> str:
    colour = "f" if edge.kind == "forward" else "r"
    kind, head = f"e {colour}", f"h{colour}"
    if words.edge_status(edge) is Status.LATER:
        kind, head = "e later", "hl"
    return f'<path class="{kind}" marker-end="url(#al-{head})" d="{_curve(edge.points)}"/>'


def _curve(points: Sequence[tuple[float, float]]) -> str:
    """Vertical tangents at every point, so that lines leave and reach boxes straight."""
    (x, y), *rest = points
    path = [f"M{x:.1f} {y:.1f}"]
    for x1, y1 in rest:
        if abs(x1 - x) < 0.5:
            path.append(f"L{x1:.1f} {y1:.1f}")
        else:
            middle = (y + y1) / 2
            path.append(f"C{x:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}")
        x, y = x1, y1
    return "".join(path)


def _turns(layout: GraphLayout, words: BoxWords) -> list[str]:
    """The way from the loss to the first backward node of each pass, with both numbers."""
    parts = []
    for turn in words.turns():
        loss, root = turn.loss, turn.root
        y = max(loss.y + loss.height if loss else 0.0, root.y + root.height)
        x1 = root.x + root.width / 2
        if loss is None or y < layout.height - 60:
            parts.append(
                f'<text class="r c" x="{x1:.1f}" y="{root.y + root.height + 16:.1f}">'
                f"{html.escape(turn.gradient)}</text>"
            )
            continue
        x0 = loss.x + loss.width / 2
        low = y + 20
        kind, head = ("e later", "hl") if turn.later else ("e r", "hr")
        parts.append(
            f'<path class="{kind}" marker-end="url(#al-{head})"'
            f' d="M{x0:.1f} {loss.y + loss.height:.1f}'
            f"V{low - 10:.1f}Q{x0:.1f} {low:.1f} {x0 + 10:.1f} {low:.1f}H{x1 - 10:.1f}"
            f'Q{x1:.1f} {low:.1f} {x1:.1f} {low - 10:.1f}V{root.y + root.height + 2:.1f}"/>'
            f'<text class="c" x="{(x0 + x1) / 2:.1f}" y="{low + 17:.1f}">'
            f"{html.escape(turn.loss_words)}"
            f'<tspan class="r">{html.escape(turn.gradient)}</tspan></text>'
        )
    return parts


def _box(box: PlacedNode, words: BoxWords) -> str:
    status = words.status(box)
    classes = {"op": "f", "node": "r", "leaf": "t", "input": "i"}.get(box.kind) or (
        "f" if box.lane == 0 else "r"
    )
    if words.is_bad(box):
        classes += " p"
    classes += {
        Status.DONE: "",
        Status.NOW: " now",
        Status.WAITING: " wait",
        Status.LATER: " later",
    }[status]
    label, sublabel = words.labels(box)
    middle = box.width / 2
    low = box.height / 2 + 11.5
    first = box.height / 2 + 4 if not sublabel else low - 14
    second = f'<text class="s" x="{middle:.1f}" y="{low:.1f}">{html.escape(sublabel)}</text>'
    shade = (
        f'<rect class="b" x="4" y="-4" width="{box.width:.1f}" height="{box.height:.1f}" rx="7"/>'
        if box.kind == "fold"
        else ""
    )
    return (
        f'<g class="{classes}" transform="translate({box.x:.1f} {box.y:.1f})">'
        f"<title>{html.escape(words.tip(box))}</title>{shade}"
        f'<rect class="b" width="{box.width:.1f}" height="{box.height:.1f}" rx="7"/>'
        f'<text class="l" x="{middle:.1f}" y="{first:.1f}">{html.escape(label)}</text>'
        f"{second if sublabel else ''}</g>"
    )
