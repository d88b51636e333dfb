"""The errors of lessons: exercises, guesses, progress, the learners' copy."""

from __future__ import annotations

from .base import AutogradLabError

__all__ = [
    "ExerciseError",
    "GuessError",
    "LessonError",
    "ProgressFileError",
]


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
