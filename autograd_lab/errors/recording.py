"""The errors of recordings: making one, going through one, reading and writing files."""

from __future__ import annotations

from .base import AutogradLabError

__all__ = [
    "DamagedFileError",
    "ForeignFileError",
    "MissingValuesError",
    "NewerSchemaError",
    "NodeNotFoundError",
    "OutputError",
    "RecordingError",
    "StepError",
]


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
