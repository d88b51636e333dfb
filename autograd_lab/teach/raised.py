"""Turn an exception of a learner's code into one line: class, message and the line that did it."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

__all__ = ["raised"]

_LONGEST = 200  # characters of a message
_LONGEST_LINE = 80
_NOT_THE_LEARNERS = tuple(
    {
        str(Path(__file__).parents[1]),
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    }
)


def raised(error: Exception) -> str:
    """Say what was raised and by which line of the learner; computing with a `...` is a blank."""
    if isinstance(error, (TypeError, AttributeError)) and "ellipsis" in str(error):
        return "not answered yet: a ... still stands in your code, or in what it uses"
    headline = _cut(next(iter(str(error).splitlines()), ""), _LONGEST)
    told = f"your code raised {type(error).__name__}" + (f": {headline}" if headline else "")
    line = _learners_line(error)
    return f"{told}; in your line `{line}`" if line else told


def _learners_line(error: Exception) -> str | None:
    """Text of the innermost line that is neither ours, torch's nor Python's own."""
    for place in reversed(traceback.extract_tb(error.__traceback__)):
        if place.line and not place.filename.startswith((*_NOT_THE_LEARNERS, "<frozen")):
            return _cut(place.line, _LONGEST_LINE)
    return None


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest] + " …"
