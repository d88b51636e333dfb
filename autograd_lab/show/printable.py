"""Turn a finished text into one that every encoding, terminal and XML reader takes.

Names, paths and messages come from the user's program: a lone surrogate (a file name that is not
UTF-8) can't be encoded, and XML has no control characters, not even escaped.
"""

from __future__ import annotations

import re

__all__ = ["is_printable", "printable"]

UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    r"""Write what can't be shown as Python's repr does.

    >>> print(printable("a\udc80 b\x00"))
    a\udc80 b\x00
    """
    return UNPRINTABLE.sub(lambda found: repr(found[0])[1:-1], text)


def is_printable(text: str) -> bool:
    """Nothing in a text has to be written in another way."""
    return UNPRINTABLE.search(text) is None
