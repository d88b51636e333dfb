"""What every graph's SVG has: colours, arrowheads, legend, caption."""

from __future__ import annotations

import html

from autograd_lab.recording import Recording

from .frame_text import event_words
from .palette import DARK, LIGHT, THEMES, Theme, css_variables
from .tables import shorten
from .text_width import sans_width
from .words import Words

__all__ = ["LINE_HEIGHT", "MARGIN", "badge", "caption", "legend", "markers", "svg_style"]

LINE_HEIGHT = 20.0
MARGIN = 12.0
BADGES = {
    "p birth": "M0 -8L2 -3L7.6 -2.5L3.3 1.2L4.7 6.6L0 3.7L-4.7 6.6L-3.3 1.2L-7.6 -2.5L-2 -3z",
    "x": "M-7 -4L-4 -7L0 -3L4 -7L7 -4L3 0L7 4L4 7L0 3L-4 7L-7 4L-3 0z",
}
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
.al-graph .n{{font-weight:700;paint-order:stroke}}
.al-graph .n.r{{text-anchor:end}}
.al-graph .n{{stroke:var(--al-surface);stroke-width:4px}}
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
.al-graph .x rect.b{{fill:var(--al-problem-now);stroke:var(--al-problem-text);stroke-width:2.4}}
.al-graph .x text{{fill:var(--al-on-now)}}
.al-graph .badge{{fill:var(--al-background);stroke:var(--al-problem-text);stroke-width:1.8}}
.al-graph .now rect.b{{stroke-width:2.4}}
.al-graph .f.now rect.b{{fill:var(--al-forward-now)}}
.al-graph .r.now rect.b{{fill:var(--al-backward-now)}}
.al-graph .now text{{fill:var(--al-on-now)}}
.al-graph .wait rect.b{{stroke-dasharray:4 3;fill:var(--al-background)}}
.al-graph .ready rect.b{{fill:var(--al-background);stroke-width:2.4}}
.al-graph .later rect.b{{fill:var(--al-background);stroke:var(--al-later-stroke)}}
.al-graph .later rect.b{{stroke-dasharray:4 3}}
.al-graph .later text{{fill:var(--al-later-text)}}
.al-graph .e.later{{stroke:var(--al-later-stroke);stroke-dasharray:4 3}}
.al-graph .hf{{fill:var(--al-forward-stroke)}}
.al-graph .hr{{fill:var(--al-backward-stroke)}}
.al-graph .hl{{fill:var(--al-later-stroke)}}
"""


def svg_style(theme: Theme) -> str:
    """The style sheet of a graph, with the colours of a theme."""
    if theme != "auto":
        return f".al-graph{{{css_variables(THEMES[theme])}}}{STYLE}"
    dark = f"@media (prefers-color-scheme:dark){{.al-graph{{{css_variables(DARK)}}}}}"
    return f".al-graph{{{css_variables(LIGHT)}}}{dark}{STYLE}"


def markers() -> str:
    """The arrowheads: forward, backward and not yet run."""
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


def caption(recording: Recording, step: int | None) -> str:
    """What happens at a step, in words above the picture."""
    if step is None:
        return ""
    event = recording.events[step - 1] if step else None
    words = event_words(event, Words(recording)) if event else "nothing has run yet"
    text = shorten(f"Step {step} of {len(recording.events)}: {words}", 66)
    return f'<text class="h" x="{MARGIN:.0f}" y="24">{html.escape(text)}</text>'


def badge(kind: str, x: float, y: float) -> str:
    """A mark at the corner of a box: a star where NaN or Inf begins, a cross where it raised."""
    return f'<path class="badge" transform="translate({x:.1f} {y:.1f})" d="{BADGES[kind]}"/>'


def legend(
    width: float,
    top: float,
    *,
    at_step: bool,
    has_ready: bool,
    has_later: bool,
    has_problem: bool,
    has_birth: bool,
    has_error: bool,
) -> list[str]:
    """The legend, wrapped into lines that fit."""
    entries = [("f", "forward call ↓"), ("r", "backward node ↑"), ("t", "leaf and its .grad")]
    entries += STEP_LEGEND if at_step else []
    entries += [("r ready", "ready to run")] if has_ready else []
    entries += [("later", "did not run")] if has_later and not at_step else []
    entries += [("p", "NaN or Inf")] if has_problem else []
    entries += [("p birth", "NaN or Inf begins")] if has_birth else []
    entries += [("x", "raised")] if has_error else []
    lines, x, y = [], MARGIN, top + 16.0
    for kind, text in entries:
        size = 32 + sans_width(text)
        if x > MARGIN and x + size > width - MARGIN:
            x, y = MARGIN, y + LINE_HEIGHT
        if x == MARGIN:
            lines.append("")
        box = f'<rect class="b" x="{x:.0f}" y="{y - 5:.0f}" width="16" height="12" rx="3"/>'
        mark = badge(kind, x + 19, y - 5) if kind in BADGES else ""
        after = 32 if mark else 24
        lines[-1] += f'<g class="{kind}">{box}{mark}</g>'
        lines[-1] += f'<text x="{x + after:.0f}" y="{y + 5:.0f}">{text}</text>'
        x += size + 10
    return lines
