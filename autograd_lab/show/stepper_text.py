"""Turn the state of a Stepper into words and static HTML: what is there without its view."""

from __future__ import annotations

import html
from collections.abc import Iterable

from autograd_lab.recording import Recording
from autograd_lab.replay import Frame

from .frame_text import frame_text
from .pack import undrawn
from .printable import printable
from .static_view import notes_html, picture_html, static_html, tables_html

__all__ = ["NO_ANYWIDGET", "stepper_static", "stepper_text"]

NO_ANYWIDGET = (
    "The interactive view needs anywidget, which is not installed. "
    "Run: pip install anywidget, then restart the kernel; "
    "in JupyterHub it belongs in the server's environment too."
)
HIDDEN = "Values are hidden; .reveal() shows them."
LARGE = 300  # calls or nodes; above, less is sent with the view, which has it all
FULL, SHORT = (300, 30), (60, 10)  # boxes of the picture, rows of a table


def stepper_text(frame: Frame, notes: Iterable[str], *, is_hidden: bool) -> str:
    """The text of a Stepper: that of its frame; notes: said below."""
    first, *others = frame_text(frame).splitlines()
    lines = [f"Stepper at step {first.removeprefix('Step ')}"]
    lines += [f"  {HIDDEN}"] if is_hidden else []
    return printable("\n".join([*lines, *others, *(f"! {note}" for note in notes)]))


def stepper_static(recording: Recording, step: int, text: str) -> str:
    """A picture with its caption, tables and the text, fit for untrusted notebooks."""
    boxes, rows = FULL if max(len(recording.ops), len(recording.nodes)) <= LARGE else SHORT
    picture = f"<p>{undrawn(recording)}</p>"
    if undrawn(recording) is None:
        caption = f"Picture of step {step} of {len(recording.events)}. Run this cell to step."
        picture = f"<p>{caption}</p>{picture_html(recording, step, max_nodes=boxes)}"
    notes, tables = notes_html(recording), tables_html(recording, rows)
    return static_html(f"{picture}{notes}{tables}<pre>{html.escape(text)}</pre>")
