"""Turn rows of words into an aligned text table and an accessible HTML table: both say the same."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Column", "Table", "column", "fold", "html_table", "shorten", "text_table"]

GAP = "  "
WRAPPED = 60  # a column that wide is wrapped in HTML, never cut
CAPTION = "text-align:left;font-weight:600"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: its title, whether it is aligned to the right, the widest cell that text shows.

    is_code  the cells are names from a program, set in a fixed-width font in HTML
    keep_end a cell that is too wide loses its beginning, not its end (module paths)
    """

    title: str
    is_number: bool = False
    is_code: bool = False
    max_width: int = 40
    keep_end: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A caption, columns and rows of words, as they are shown.

    rows     the lines of a cell after its first are set smaller in HTML
    classes  CSS class of each row ("problem"), aligned with `rows`; () for none
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...] = ()
    classes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.rows)


def column(
    title: str, *, number: bool = False, code: bool = False, width: int = 40, keep_end: bool = False
) -> Column:
    """Shorthand for a Column."""
    return Column(title=title, is_number=number, is_code=code, max_width=width, keep_end=keep_end)


def shorten(text: str, width: int, *, keep_end: bool = False) -> str:
    """Cut a text to `width` characters, an ellipsis marking the place."""
    if len(text) <= width:
        return text
    return f"…{text[len(text) - width + 1 :]}" if keep_end else f"{text[: width - 1]}…"


def fold(count: int, keep: int | None) -> tuple[int, int]:
    """How many of `count` rows to show at the start and at the end, so that `keep` lines do.

    One of the lines says how many rows were left out. None keeps all.
    """
    if keep is None or count <= keep:
        return count, 0
    shown = max(keep - 1, 2)
    tail = shown // 3
    return shown - tail, tail


def text_table(table: Table, keep: int | None = None, *, more: str = "more") -> list[str]:
    """Return the lines of a table: titles, then at most `keep` lines of rows, the middle folded.

    Columns whose cells are all empty are left out. `more` follows the count of the rows left out.
    """
    head, tail = fold(len(table), keep)
    shown = (
        [*table.rows[:head], *table.rows[len(table) - tail :]]
        if head < len(table)
        else list(table.rows)
    )
    used = [i for i in range(len(table.columns)) if any(row[i] for row in shown)]
    cells = [[_cell(row[i], table.columns[i]) for i in used] for row in shown]
    titles = [table.columns[i].title for i in used]
    widths = [max(map(len, entries)) for entries in zip(titles, *cells, strict=True)]
    numbers = [table.columns[i].is_number for i in used]
    lines = [_line(row, widths, numbers) for row in (titles, *cells)]
    if head < len(table):
        hidden = len(table) - head - tail
        lines.insert(1 + head, f"{' ' * widths[0] if widths else ''}{GAP}... {hidden} {more}")
    return [f"{GAP}{line}".rstrip() for line in lines]


def html_table(
    table: Table, keep: int | None = None, *, style: bool = False, more: str = "more rows"
) -> str:
    """Return the `<table>` with caption, scopes and escaped cells.

    style  inline styles, for places that drop style sheets (untrusted notebooks)
    """
    head, tail = fold(len(table), keep)
    used = [i for i in range(len(table.columns)) if any(row[i] for row in table.rows)]
    columns = [table.columns[i] for i in used]
    classes = table.classes or ("",) * len(table)
    numbered = list(zip(table.rows, classes, strict=True))
    parts = [
        _open_table(style),
        f"<caption{_inline(style, CAPTION)}>{html.escape(table.caption)}</caption>",
    ]
    parts.append("<thead><tr>")
    parts += [f'<th scope="col"{_align(c, style)}>{html.escape(c.title)}</th>' for c in columns]
    parts.append("</tr></thead><tbody>")
    parts += [
        _html_row([row[i] for i in used], columns, kind, style) for row, kind in numbered[:head]
    ]
    if head < len(table):
        hidden = len(table) - head - tail
        parts.append(f'<tr><td colspan="{len(used)}">… {hidden} {html.escape(more)}</td></tr>')
        parts += [
            _html_row([row[i] for i in used], columns, kind, style)
            for row, kind in numbered[len(table) - tail :]
        ]
    parts.append("</tbody></table>")
    return "".join(parts)


def _cell(text: str, column: Column) -> str:
    return shorten(" ".join(text.split()), column.max_width, keep_end=column.keep_end)


def _line(cells: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]) -> str:
    pairs = zip(cells, widths, numbers, strict=True)
    return GAP.join(
        cell.rjust(width) if number else cell.ljust(width) for cell, width, number in pairs
    )


def _html_row(cells: Sequence[str], columns: Sequence[Column], kind: str, style: bool) -> str:
    parts = [f'<tr class="{kind}">' if kind else "<tr>"]
    for number, (cell, col) in enumerate(zip(cells, columns, strict=True)):
        first, *others = html.escape(cell).split("\n")
        text = f"<code>{first}</code>" if col.is_code and first else first
        text += "".join(f"<small>{line}</small>" for line in others if line)
        parts.append(
            f'<th scope="row"{_align(col, style)}>{text}</th>'
            if number == 0
            else f"<td{_align(col, style)}>{text}</td>"
        )
    parts.append("</tr>")
    return "".join(parts)


def _open_table(style: bool) -> str:
    return (
        '<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
        if style
        else "<table>"
    )


def _align(column: Column, style: bool) -> str:
    if style:
        return f' style="text-align:{"right" if column.is_number else "left"};padding:2px 8px"'
    if column.max_width >= WRAPPED:
        return ' class="wrap"'
    return ' class="num"' if column.is_number else ""


def _inline(style: bool, css: str) -> str:
    return f' style="{css}"' if style else ""
