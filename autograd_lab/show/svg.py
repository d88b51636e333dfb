"""Turn a recording into the SVG of its graph: forward down, backward up, at a step or whole."""

from __future__ import annotations

import html
from collections.abc import Sequence

from autograd_lab.recording import Recording
from autograd_lab.replay import GraphLayout, PlacedEdge, PlacedNode, layout_graph

from .box_state import BoxState, Status
from .box_words import BoxWords
from .palette import Theme
from .printable import printable
from .recording_text import headline
from .svg_style import LINE_HEIGHT, MARGIN, badge, caption, legend, markers, svg_style

__all__ = ["DRAWN_NODES", "graph_svg"]

DRAWN_NODES = 300
HEAD = 46.0
FOOT = 46.0


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
    state = BoxState(recording, layout, step)
    words = BoxWords(recording, state)
    width = max(layout.width, 470.0) + 2 * MARGIN
    shift = (width - layout.width) / 2
    title = caption(recording, step)
    top = LINE_HEIGHT + 6 if title else 0.0
    legend_lines = legend(
        width,
        top,
        at_step=step is not None,
        has_ready=any(state.status(box) is Status.READY for box in layout.nodes),
        has_later=any(state.status(box) is Status.LATER for box in layout.nodes),
        has_problem=any(map(state.is_bad, layout.nodes)),
        has_birth=any(map(state.is_birth, layout.nodes)),
        has_error=any(state.status(box) is Status.FAILED for box in layout.nodes),
    )
    head = HEAD + top + LINE_HEIGHT * (len(legend_lines) - 1)
    height = head + layout.height + FOOT
    label = html.escape(_label(recording, layout, step))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="al-graph" role="graphics-document"'
        f' aria-label="{label}" viewBox="0 0 {width:.0f} {height:.0f}"'
        f' width="{width:.0f}" height="{height:.0f}">',
        f"<style>{svg_style(theme)}</style>",
        markers(),
        f'<rect class="bg" width="{width:.0f}" height="{height:.0f}" rx="10"/>',
        title,
        *legend_lines,
        f'<g transform="translate({shift:.1f} {head:.1f})">',
        *_lanes(layout),
        *_ties(layout, words),
        *(_edge(edge, state) for edge in sorted(layout.edges, key=lambda edge: edge.times)),
        *_turns(layout, words, state),
        *(_box(node, words) for node in layout.nodes),
        "</g></svg>",
    ]
    return printable("".join(part for part in parts if part))


def _label(recording: Recording, layout: GraphLayout, step: int | None) -> str:
    where = "" if step is None else f", at step {step} of {len(recording.events)}"
    folded = f"; {layout.hidden} are folded" if layout.hidden else ""
    return f"Graph of forward and backward{where}: {headline(recording)}{folded}"


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
        made_by = words.maker(box)
        maker = makers.get(made_by) if made_by is not None else None
        if maker is not None and maker.row == box.row and box.lane == 1:
            y = box.y + box.height / 2
            parts.append(
                f'<path class="tie" d="M{maker.x + maker.width:.1f} {y:.1f}H{box.x:.1f}"/>'
            )
    return parts


def _edge(edge: PlacedEdge, state: BoxState) -> str:
    colour = "f" if edge.kind == "forward" else "r"
    kind, head = f"e {colour}", f"h{colour}"
    if state.edge_status(edge) is Status.LATER:
        kind, head = "e later", "hl"
    path = f'<path class="{kind}" marker-end="url(#al-{head})" d="{_curve(edge.points)}"/>'
    if edge.times == 1:
        return path
    x, y = edge.middle
    side = 6 if edge.kind == "forward" else -6  # the inner one: lines past boxes run on the outer
    place = f'x="{x + side:.1f}" y="{y + 4:.1f}"'
    return f'{path}<text class="n {colour}" {place}>&#215;{edge.times}</text>'


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


def _turns(layout: GraphLayout, words: BoxWords, state: BoxState) -> list[str]:
    """The way from the loss to the first backward node of each pass, with both numbers."""
    parts = []
    for turn in words.turns():
        loss, root = turn.loss, turn.root
        y = max(loss.y + loss.height if loss else 0.0, root.y + root.height)
        x1 = root.x + root.width / 2
        has_begun = turn.start.pass_id in state.started_passes
        gradient = html.escape(turn.gradient) if has_begun else ""
        if loss is None or y < layout.height - 60:
            parts.append(
                f'<text class="r c" x="{x1:.1f}" y="{root.y + root.height + 16:.1f}">'
                f"{gradient}</text>"
            )
            continue
        is_known = state.status(loss) in (Status.DONE, Status.NOW)
        value = html.escape(turn.loss_words) if is_known else ""
        x0 = loss.x + loss.width / 2
        low = y + 20
        kind, head = ("e r", "hr") if has_begun else ("e later", "hl")
        parts.append(
            f'<path class="{kind}" marker-end="url(#al-{head})"'
            f' d="M{x0:.1f} {loss.y + loss.height:.1f}'
            f"V{low - 10:.1f}Q{x0:.1f} {low:.1f} {x0 + 10:.1f} {low:.1f}H{x1 - 10:.1f}"
            f'Q{x1:.1f} {low:.1f} {x1:.1f} {low - 10:.1f}V{root.y + root.height + 2:.1f}"/>'
            f'<text class="c" x="{x1 if turn.is_again else (x0 + x1) / 2:.1f}" y="{low + 17:.1f}">'
            f"{value}{' · ' if value and gradient else ''}"
            f'<tspan class="r">{gradient}</tspan></text>'
        )
    return parts


def _box(box: PlacedNode, words: BoxWords) -> str:
    status = words.state.status(box)
    classes = {"op": "f", "node": "r", "leaf": "t", "input": "i"}.get(box.kind) or (
        "f" if box.lane == 0 else "r"
    )
    mark = "x" if status is Status.FAILED else "p birth" if words.state.is_birth(box) else ""
    if mark or words.state.is_bad(box):
        classes += f" {mark or 'p'}"
    classes += {
        Status.DONE: "",
        Status.FAILED: "",
        Status.NOW: " now",
        Status.WAITING: " wait",
        Status.READY: " ready",
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
        f"{second if sublabel else ''}{badge(mark, box.width + 3, -2) if mark else ''}</g>"
    )
