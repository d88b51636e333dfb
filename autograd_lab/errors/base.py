"""Turn a fault into an exception: what happened, where, how to fix it; shown short in a notebook.

`code` is stable: lessons, logs and tests may rely on it. Wording may improve between releases. In a
notebook an error is shown by the user's own lines and its words: the lines of this package between
them explain nothing.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import textwrap
import traceback
from pathlib import Path
from typing import ClassVar

__all__ = ["AutogradLabError", "file_label", "is_cell", "lines_of_the_user"]

_WIDTH = 72  # what fits beside an open file browser in a window of 1024 px
_MOST_LINES = 4
_NOT_THE_USERS = (
    "<frozen",
    *(
        os.path.join(folder, "")  # noqa: PTH118 (Path drops the last separator)
        for folder in {
            str(Path(__file__).parents[1]),
            *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")),
        }
    ),
)


class AutogradLabError(Exception):
    """Base of all errors of this package; `facts` holds what the message says, by name."""

    code: ClassVar[str] = "AL000"

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.facts = facts

    def _render_traceback_(self) -> list[str]:
        """The lines that IPython shows in place of a traceback; elsewhere nothing is changed."""
        lines = [f"{_place(seen)}: {seen.line}" for seen in lines_of_the_user(self)[-_MOST_LINES:]]
        told = f"{type(self).__name__}: {self}"
        for line in told.splitlines():
            lines += textwrap.wrap(line, _WIDTH, subsequent_indent="  ") or [""]
        if self.__cause__ is not None:
            first = next(iter(str(self.__cause__).splitlines()), "")
            lines.append(f"Caused by {type(self.__cause__).__name__}: {first}")
        return lines


def lines_of_the_user(error: BaseException) -> list[traceback.FrameSummary]:
    """Return where an exception passed, the raising line last: without Python, packages, and us."""
    return [
        seen
        for seen in traceback.extract_tb(error.__traceback__)
        if seen.line and not seen.filename.startswith(_NOT_THE_USERS)
    ]


def file_label(file: str) -> str:
    """How people name a file: "In[3]" for a notebook cell, else a path.

    The path is relative to the working directory or to site-packages, or the bare name.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is not None:
        number = getattr(shell.compile, "_filename_map", {}).get(file)
        if number is not None:
            return f"In[{number}]"
        if is_cell(file):
            return "In[?]"
    path = Path(file)
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        parts = path.parts
        inside = parts.index("site-packages") + 1 if "site-packages" in parts else len(parts) - 1
        return "/".join(parts[inside:])


def is_cell(file: str) -> bool:
    """Whether a code object's file is a notebook cell: its name passes with the kernel."""
    path = Path(file)
    return path.parent.name.startswith("ipykernel_") or path.name.startswith("<ipython-input")


def _place(seen: traceback.FrameSummary) -> str:
    """`line 2` of a notebook cell, `train.py:14` of a file."""
    if is_cell(seen.filename):
        return f"line {seen.lineno}"
    return f"{Path(seen.filename).name}:{seen.lineno}"
