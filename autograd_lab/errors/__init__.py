"""Every exception: what happened, where, how to fix it; its facts as attributes; a stable code."""

from __future__ import annotations

from .base import AutogradLabError, file_label, lines_of_the_user
from .machine import (
    DeviceError,
    UnsupportedTorchError,
    UserFunctionError,
)
from .pytrees import (
    EndlessTreeError,
    HiddenTensorError,
    PytreeError,
)
from .recording import (
    DamagedFileError,
    ForeignFileError,
    MissingValuesError,
    NewerSchemaError,
    NodeNotFoundError,
    OutputError,
    RecordingError,
    StepError,
)
from .teaching import (
    ExerciseError,
    GuessError,
    LessonError,
    ProgressFileError,
)

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
    "file_label",
    "lines_of_the_user",
]
