"""Turn a GradientFlow into a matplotlib figure (object API only) with a twin in words."""

from __future__ import annotations

import base64
import html
import io
import os
import re
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from autograd_lab.replay import GradientFlow

from .flow_panels import Panels, draw_flow
from .flow_text import finding_line, flow_headline, flow_table, parameter_table, trend
from .numbers import count
from .palette import LIGHT, THEMES, Theme
from .printable import printable
from .tables import text_table
from .themed import either_picture, follow_theme

__all__ = ["FlowFigure", "flow_figure"]

TEXT_ROWS = 40
VECTOR_ROWS = 200
HASHED_ID = re.compile(r'(?<=id=")[a-z]?[0-9a-f]{10}(?=")')


class FlowFigure:
    """The drawn gradient flow: `.figure` is matplotlib's; its text says what is drawn.

    figure  a matplotlib Figure that no pyplot state knows
    flow    what it shows
    panels  what was drawn, and how labels were folded
    theme   its colours; "auto" is drawn in light ones, but in a notebook follows the reader's
    """

    def __init__(self, figure: Figure, flow: GradientFlow, panels: Panels, theme: Theme) -> None:
        self.figure = figure
        self.flow = flow
        self.panels = panels
        self.theme: Theme = theme

    def table(self) -> list[dict[str, Any]]:
        """The drawn values as plain dicts, all of them."""
        return self.flow.table()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a PNG or SVG file, chosen by the suffix; the same flow gives the same bytes.

        Raises ValueError for another suffix.
        """
        path = Path(path)
        writers = {".png": self.png, ".svg": self.svg}
        if path.suffix.lower() not in writers:
            message = f"{path.name}: a figure is saved as .png or .svg, not {path.suffix!r}"
            raise ValueError(message)
        path.write_bytes(writers[path.suffix.lower()]())
        return path

    def png(self, dpi: int = 150) -> bytes:
        """The figure as a PNG image."""
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
        return buffer.getvalue()

    def svg(self) -> bytes:
        """The figure as SVG; matplotlib's random ids are numbered instead, so that bytes repeat."""
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        text = buffer.getvalue().decode()
        for number, name in enumerate(dict.fromkeys(HASHED_ID.findall(text))):
            text = text.replace(name, f"p{number}")
        return text.encode()

    def img(self, attributes: str = 'style="max-width:100%"') -> str:
        """The figure as an HTML `<img>` with its alt text: vectors, or pixels where it has much."""
        data, is_vector = self.svg(), len(self.flow.rows) + len(self.flow.parameters) <= VECTOR_ROWS
        kind = "svg+xml"
        if self.theme == "auto" and is_vector:
            data = follow_theme(data.decode()).encode()
        elif self.theme == "auto":
            dark = flow_figure(self.flow, theme="dark")
            width, height = (72 * inches for inches in self.figure.get_size_inches())
            data = either_picture(self.png(100), dark.png(100), width, height).encode()
        elif not is_vector:
            data, kind = self.png(100), "png"
        uri = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
        return f'<img {attributes} alt="{html.escape(self.alt)}" src="{uri}">'

    @property
    def alt(self) -> str:
        """One or two sentences for readers who don't see the picture."""
        findings = [finding_line(finding) for finding in self.flow.findings[:2]]
        return printable(" ".join([f"{flow_headline(self.flow)}.", *findings]))

    def __repr__(self) -> str:
        """Return titles, axes, scales and drawn values; long tables are folded."""
        nodes, leaves = self.panels.nodes_axis, self.panels.leaves_axis
        lines = [f"Figure: {trend(self.flow)}", *([self.flow.note] if self.flow.note else [])]
        lines += [f"! {finding_line(finding)}" for finding in self.flow.findings]
        for title, axis, table in (
            ("Left: gradient at each node", nodes, flow_table(self.flow)),
            ("Right: gradient of each leaf", leaves, parameter_table(self.flow)),
        ):
            lines += ["", f"{title}; {axis}"]
            rows = text_table(table, TEXT_ROWS, more="more; .table() has all")
            lines += rows if len(table) else [f"  {count(0, 'row')}"]
        return printable("\n".join(lines))

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        data = {
            "text/plain": repr(self),
            "text/html": self.img(),
            "image/png": base64.b64encode(self.png(100)).decode(),
        }
        return data, {"image/png": {"alt": self.alt}}


def flow_figure(flow: GradientFlow, *, theme: Theme = "auto") -> FlowFigure:
    """Draw a gradient flow: rms at each node with the gains below, and rms of each leaf's gradient.

    theme  "auto" follows the reader's light or dark setting in a notebook; files are light

    Never raises for what the flow holds: NaN, Inf, zeros, nothing at all.
    """
    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    palette = LIGHT if theme == "auto" else THEMES[theme]
    return FlowFigure(figure, flow, draw_flow(figure, flow, palette), theme)
