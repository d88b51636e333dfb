"""Turn the lessons into a learner's copy, an open JupyterLab, or pages for any browser."""

from __future__ import annotations

import argparse
import importlib

from autograd_lab import doors, teach
from autograd_lab.commands.demos import write_demos
from autograd_lab.commands.outputs import make_folder, writing
from autograd_lab.errors import LessonError

__all__ = ["lab", "notebooks", "pages"]


def notebooks(options: argparse.Namespace) -> int:
    """Write the learner's copy of the lessons."""
    teach.write_lessons(options.folder, options.with_outputs)
    return 0


def lab(options: argparse.Namespace) -> int:
    """Write the learner's copy of the lessons and open JupyterLab on it."""
    return teach.open_lab(options.folder, options.jupyter)


def pages(options: argparse.Namespace) -> int:
    """Write the lessons and the demo's recordings as pages, with an index."""
    try:
        writer = importlib.import_module("autograd_lab.teach.pages")
    except ModuleNotFoundError as error:
        message = (
            f"Pages were not written. {error.name} is not installed, which comes with JupyterLab. "
            "Run: pip install 'autograd-lab[lab]'."
        )
        raise LessonError(message, missing=error.name) from error
    folder = options.folder
    make_folder(folder)
    with writing(folder):
        lessons = writer.write_lesson_pages(folder)
    demos = write_demos(folder / "demo", doors.device())
    recordings = [(f"A training step of the {name}", page) for name, page in demos]
    with writing(folder):
        index = writer.write_index(
            folder, "autograd_lab", [("Lessons", lessons), ("Recordings", recordings)]
        )
    print(f"\nOpen {index} in a browser.")
    return 0
