"""Turn the outcome of a check into words, the same in plain text and in a notebook."""

from __future__ import annotations

import html
from dataclasses import dataclass

__all__ = ["Verdict"]

# The mark and the words say the same without the colours: Okabe-Ito, and a grey that is seen on
# white and on black.
_RIGHT, _WRONG, _NEUTRAL = ("#009E73", "✓"), ("#D55E00", "✗"), ("#6B7F94", "○")
# JupyterLab would break a long line of <pre> inside a word.
_LINES = "margin:4px 0 0 0;white-space:pre-wrap;word-break:normal"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verdict:
    """What a check found: `name: text`.

    `ok` is True for a right answer, a passed check or a change that was made, else False. `wrong`
    is True only for what has to be mended: a blank, a kept guess and a hint are neither.
    `details` holds what differs between machines (versions, sizes). It is in `html`, and not in
    what a notebook shows by itself: stored outputs are compared character by character.
    """

    name: str
    text: str
    ok: bool = False
    wrong: bool = False
    details: str = ""

    def __repr__(self) -> str:
        """`cube: not yet: that is the value, not the derivative`."""
        return f"{self.name}: {self.text}"

    @property
    def html(self) -> str:
        """The verdict with its details as an HTML fragment; everything in it is escaped."""
        if not self.details:
            return self._repr_html_()
        inner = f"<summary>details</summary><pre>{html.escape(self.details)}</pre>"
        return f"{self._repr_html_()}<details>{inner}</details>"

    def _repr_html_(self) -> str:
        """The same words; colours are inherited, so that both themes keep their contrast."""
        colour, mark = _RIGHT if self.ok else _WRONG if self.wrong else _NEUTRAL
        headline, _, rest = self.text.partition("\n")
        name = f'<span aria-hidden="true">{mark}</span> <strong>{html.escape(self.name)}</strong>'
        body = f"{name}: {html.escape(headline)}"
        if rest:
            body += f'<pre style="{_LINES}">{html.escape(rest)}</pre>'
        style = f"border-left:4px solid {colour};padding:2px 10px;margin:4px 0"
        return f'<div style="{style}">{body}</div>'
