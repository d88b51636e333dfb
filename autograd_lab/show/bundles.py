"""Turn a record into what Jupyter shows: text, and HTML or PNG fit for untrusted notebooks."""

from __future__ import annotations

import html
from typing import Any

from autograd_lab.recording import Recording, SavedLedger
from autograd_lab.replay import Cursor, Frame, GradientFlow

from .describing import describe
from .figures import flow_figure
from .frame_text import frame_text
from .ledger_text import ledger_html
from .recording_text import headline, setting
from .static_view import notes_html, picture_html, static_html, tables_html

__all__ = ["mimebundle"]

Bundle = tuple[dict[str, Any], dict[str, Any]]


def mimebundle(record: object) -> Bundle:
    """Return (data, metadata) by MIME type; text/plain is always there.

    A recording, frame or cursor has text/html: a picture as `<img>`, since inline SVG, style and
    script are removed from untrusted notebooks, then tables and words; a ledger has its table. A
    gradient flow has an
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
        case SavedLedger():
            data["text/html"] = ledger_html(record)
        case GradientFlow() if record.rows:
            shown, metadata = flow_figure(record)._repr_mimebundle_()
            return {**shown, **data}, metadata
        case _:
            pass
    return data, {}


def _recording_html(recording: Recording) -> str:
    title = html.escape(f"Recording{setting(recording)}: {headline(recording)}")
    notes, picture = notes_html(recording), picture_html(recording, None)
    return static_html(f"<p>{title}</p>{notes}{picture}{tables_html(recording)}")


def _frame_html(frame: Frame) -> str:
    picture = picture_html(frame.recording, frame.index)
    return static_html(f"{picture}<pre>{html.escape(frame_text(frame))}</pre>")
