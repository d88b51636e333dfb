"""Turn a ledger of saved values into its text and its table."""

from __future__ import annotations

import html

from autograd_lab.recording import SavedEntry, SavedLedger

from .numbers import count, format_nbytes, format_shape
from .static_view import static_html
from .tables import Table, column, html_table, text_table

__all__ = ["ledger_headline", "ledger_html", "ledger_table", "ledger_text"]

ROWS = 50
UNKNOWN = "unknown"


def ledger_text(ledger: SavedLedger) -> str:
    """The text of a ledger in at most about 60 lines: a headline, then one line a leaf."""
    lines = [ledger_headline(ledger)]
    if ledger.entries:
        lines += text_table(ledger_table(ledger), ROWS, more="more; .entries has all")
    return "\n".join(lines)


def ledger_html(ledger: SavedLedger) -> str:
    """The table of a ledger, for places that drop style sheets."""
    if not ledger.entries:
        return static_html(f"<p>{html.escape(ledger_headline(ledger))}</p>")
    return static_html(html_table(ledger_table(ledger), ROWS, style=True))


def ledger_headline(ledger: SavedLedger) -> str:
    """One sentence: how many leaves were saved, and how much memory they keep alive."""
    if not ledger.entries:
        return "Saved for backward: nothing"
    tensors = len(ledger.tensors)
    said = [count(tensors, "tensor")]
    if len(ledger.entries) > tensors:
        said.append(count(len(ledger.entries) - tensors, "constant"))
    if not tensors:
        return f"Saved for backward: {', '.join(said)}"
    kept = [f"{format_nbytes(ledger.storage_nbytes)} kept alive"]
    if any(entry.role == "intermediate" for entry in ledger.entries):
        kept.append(f"{format_nbytes(ledger.intermediate_nbytes)} by intermediates")
    if ledger.unknown_count:
        kept.append(f"{count(ledger.unknown_count, 'tensor')} of unknown size left out")
    return f"Saved for backward: {', '.join(said)}; {', '.join(kept)}"


def ledger_table(ledger: SavedLedger) -> Table:
    """One row a leaf: where it is in the tree, what it is, and the memory that it keeps alive."""
    columns = (
        column("path", code=True, width=36, keep_end=True),
        column("what", width=32),
        column("shape", width=20),
        column("dtype", width=16),
        column("device", width=12),
        column("bytes", number=True),
        column("keeps alive", number=True),
        column("version", number=True),
        column("note", width=60),
    )
    rows = tuple(_row(ledger, entry) for entry in ledger.entries)
    return Table(caption=ledger_headline(ledger), columns=columns, rows=rows)


def _row(ledger: SavedLedger, entry: SavedEntry) -> tuple[str, ...]:
    if entry.role == "constant":
        what = f"constant {entry.text}" if entry.text else f"constant, a {entry.kind}"
        return (entry.path, what, *[""] * 7)
    return (
        entry.path,
        entry.origin or (f"role {UNKNOWN}" if entry.role == "unknown" else entry.role),
        UNKNOWN if entry.shape is None else format_shape(entry.shape),
        entry.dtype or UNKNOWN,
        "" if entry.device == "cpu" else entry.device or UNKNOWN,
        _size(entry.nbytes),
        _size(entry.storage_nbytes),
        UNKNOWN if entry.version is None else str(entry.version),
        _note(ledger, entry),
    )


def _size(nbytes: int | None) -> str:
    return UNKNOWN if nbytes is None else format_nbytes(nbytes)


def _note(ledger: SavedLedger, entry: SavedEntry) -> str:
    """The class of an unusual tensor, and the first entry whose memory it shares."""
    notes = [] if entry.kind == "Tensor" else [f"a {entry.kind}"]
    sharing = [other for other in ledger.entries if other.storage == entry.storage is not None]
    if sharing and sharing[0] is not entry:
        notes.append(f"same memory as {sharing[0].path}")
    return "; ".join(notes)
