"""Turn the learners' copy of the lessons into an open JupyterLab, at the first lesson."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from autograd_lab.errors import LessonError
from autograd_lab.teach.lessons import find_lessons, write_lessons

__all__ = ["lab_command", "open_lab"]

CAN_BECOME = os.name == "posix"  # Windows would start another process and go on with the shell


def open_lab(folder: str | Path, options: Sequence[str] = ()) -> int:
    """Write the learners' copy into `folder` and run JupyterLab there; returns its exit code.

    options  handed on to JupyterLab, such as "--no-browser"

    Where the system can, this process becomes JupyterLab: PyTorch leaves its memory, and Ctrl-C and
    the exit code are JupyterLab's own. Raises LessonError where JupyterLab is not installed, or the
    folder can't be used.
    """
    command = lab_command(folder, options)
    write_lessons(folder)
    sys.stdout.flush()
    if not CAN_BECOME:
        return subprocess.call(command)
    os.execv(command[0], command)


def lab_command(folder: str | Path, options: Sequence[str] = ()) -> list[str]:
    """Return the command that runs JupyterLab in `folder` and opens the first lesson."""
    if importlib.util.find_spec("jupyterlab") is None:
        message = (
            "JupyterLab was not opened. It is not installed. Run: pip install 'autograd-lab[lab]'."
        )
        raise LessonError(message, folder=folder)
    first = f"--LabApp.default_url=/lab/tree/{find_lessons()[0].name}"
    return [sys.executable, "-m", "jupyterlab", os.fspath(folder), first, *options]
