"""Every exception of the package: what happened, where, how to fix it.

The same facts are attributes. `code` is stable: lessons, logs and tests may rely on it. Wording
may improve between releases. In a notebook an error is shown by the user's own lines and its words:
the lines of this package between them explain nothing.
"""

from __future__ import annotations

import os
import sysconfig
import textwrap
import traceback
from pathlib import Path
from typing import ClassVar

__all__ = [
    "AutogradLabError",
    "DamagedFileError",
    "DeviceError",
    "EndlessTreeError",
    "ExerciseError",
    "ForeignFileError",
    "GuessError",
    "HiddenTensorError",
    "LessonError",
    "MissingValuesError",
    "NewerSchemaError",
    "NodeNotFoundError",
    "OutputError",
    "ProgressFileError",
    "PytreeError",
    "RecordingError",
    "StepError",
    "UnsupportedTorchError",
    "UserFunctionError",
    "lines_of_the_user",
]

_WIDTH = 72  # what fits beside an open file browser in a window of 1024 px
_MOST_LINES = 4
_NOT_THE_USERS = (
    "<frozen",
    *(
        os.path.join(folder, "")  # noqa: PTH118 (Path drops the last separator)
        for folder in {
            str(Path(__file__).parent),
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


class RecordingError(AutogradLabError):
    """A recording was asked for where there is none, or was set up wrongly."""

    code = "AL100"


class StepError(AutogradLabError):
    """A step outside the recording was asked for."""

    code = "AL110"


class NodeNotFoundError(StepError):
    """No step matches what was asked for; `facts["near"]` has the nearest names."""

    code = "AL111"


class ForeignFileError(AutogradLabError):
    """The file is not a recording of this package."""

    code = "AL200"


class DamagedFileError(ForeignFileError):
    """The file was a recording once: it is truncated, or its parts contradict each other."""

    code = "AL201"


class NewerSchemaError(ForeignFileError):
    """The file was written by a newer release of this package."""

    code = "AL202"


class MissingValuesError(DamagedFileError):
    """The values file that belongs to a recording is missing or belongs to another one."""

    code = "AL203"


class OutputError(AutogradLabError):
    """A file or folder named for a command's results can't be written."""

    code = "AL210"


class UnsupportedTorchError(AutogradLabError):
    """This torch is too old, or lacks a private name without which nothing can be recorded."""

    code = "AL300"


class DeviceError(AutogradLabError):
    """The device asked for is not there."""

    code = "AL310"


class UserFunctionError(AutogradLabError):
    """A function named by the user can't be found or called."""

    code = "AL400"


class ExerciseError(AutogradLabError):
    """An exercise, prediction or check was set up wrongly by the author of the lesson."""

    code = "AL500"


class GuessError(AutogradLabError):
    """A guess is of the wrong kind, or not among the choices; the stored guess is untouched."""

    code = "AL510"


class ProgressFileError(AutogradLabError):
    """A file handed to `progress().load` or `.export` can't be read or written."""

    code = "AL520"


class LessonError(AutogradLabError):
    """The lessons can't be found, or the folder for the learners' copy can't be used."""

    code = "AL530"


class PytreeError(AutogradLabError):
    """A tree can't be saved on this ctx, or can't be rebuilt from what is there."""

    code = "AL600"


class HiddenTensorError(PytreeError):
    """An object that is no container holds tensors; `facts` has its `path` and their `names`."""

    code = "AL601"


class EndlessTreeError(PytreeError):
    """A container holds itself, or a tree has too many entries."""

    code = "AL602"


def lines_of_the_user(error: BaseException) -> list[traceback.FrameSummary]:
    """Return where an exception passed, the raising line last: without Python, packages, and us."""
    return [
        seen
        for seen in traceback.extract_tb(error.__traceback__)
        if seen.line and not seen.filename.startswith(_NOT_THE_USERS)
    ]


def _place(seen: traceback.FrameSummary) -> str:
    """`line 2` of a notebook cell, `train.py:14` of a file."""
    file = Path(seen.filename)
    is_cell = file.parent.name.startswith("ipykernel_") or file.name.startswith("<ipython-input")
    return f"line {seen.lineno}" if is_cell else f"{file.name}:{seen.lineno}"
