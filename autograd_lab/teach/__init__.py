"""Exercises, predictions, progress, digits and two small models: all that lessons are made of."""

from autograd_lab.teach.brief import brief
from autograd_lab.teach.compare import compare, expect_error
from autograd_lab.teach.digits import Digits, digits
from autograd_lab.teach.exercise import Exercise
from autograd_lab.teach.lessons import write_lessons
from autograd_lab.teach.open_lab import open_lab
from autograd_lab.teach.prediction import Prediction
from autograd_lab.teach.progress import Progress, progress
from autograd_lab.teach.setup_check import check_setup
from autograd_lab.teach.specimens import Trained, convnet, train, transformer
from autograd_lab.teach.verdict import Verdict

__all__ = [
    "Digits",
    "Exercise",
    "Prediction",
    "Progress",
    "Trained",
    "Verdict",
    "brief",
    "check_setup",
    "compare",
    "convnet",
    "digits",
    "expect_error",
    "open_lab",
    "progress",
    "train",
    "transformer",
    "write_lessons",
]
