"""Turn an exception of a learner's code into one line: class, message and the line that did it."""

from __future__ import annotations

from autograd_lab.errors import lines_of_the_user

__all__ = ["raised"]

_LONGEST = 200  # characters of a message
_LONGEST_LINE = 80


def raised(error: Exception) -> str:
    """Say what was raised and by which line of the learner; computing with a `...` is a blank."""
    if isinstance(error, (TypeError, AttributeError)) and "ellipsis" in str(error):
        return "not answered yet: a ... still stands in your code, or in what it uses"
    headline = _cut(next(iter(str(error).splitlines()), ""), _LONGEST)
    told = f"your code raised {type(error).__name__}" + (f": {headline}" if headline else "")
    lines = lines_of_the_user(error)
    return f"{told}; in your line `{_cut(str(lines[-1].line), _LONGEST_LINE)}`" if lines else told


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest] + " …"
