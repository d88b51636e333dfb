"""Every exception of the package: what happened, where, how to fix it.

The same facts are attributes. `code` is stable: lessons, logs and tests may rely on it. Wording
may improve between releases.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "AutogradLabError",
    "DamagedFileError",
    "DeviceError",
    "ExerciseError",
    "ForeignFileError",
    "GuessError",
    "LessonError",
    "MissingValuesError",
    "NewerSchemaError",
    "NodeNotFoundError",
    "OutputError",
    "ProgressFileError",
    "RecordingError",
    "StepError",
    "UnsupportedTorchError",
    "UserFunctionError",
]


class AutogradLabError(Exception):
    """Base of all errors of this package; `facts` holds what the message says, by name."""

    code: ClassVar[str] = "AL000"

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.facts = facts


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
