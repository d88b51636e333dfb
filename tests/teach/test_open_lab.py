"""JupyterLab on the learners' copy: the command, what is written first, and what is missing."""

import importlib.util
import os
import sys

import pytest

from autograd_lab.errors import LessonError
from autograd_lab.teach import open_lab
from autograd_lab.teach.open_lab import lab_command


@pytest.fixture
def started(monkeypatch):
    """What would have been run in place of this process."""
    calls = []
    monkeypatch.setattr(os, "execv", lambda path, command: calls.append(command))
    monkeypatch.setattr("subprocess.call", lambda command: calls.append(command) or 0)
    return calls


def test_it_opens_at_the_first_lesson_of_the_folder():
    assert lab_command("learn", ["--no-browser"]) == [
        *(sys.executable, "-m", "jupyterlab", "learn"),
        "--LabApp.default_url=/lab/tree/00_start.ipynb",
        "--no-browser",
    ]


@pytest.mark.parametrize("can_become", [True, False])
def test_the_lessons_are_written_before_it_starts(started, folder, monkeypatch, can_become):
    monkeypatch.setattr(sys.modules[lab_command.__module__], "CAN_BECOME", can_become)
    open_lab(folder / "learn")
    assert [command[3] for command in started] == [str(folder / "learn")]
    assert (folder / "learn" / "00_start.ipynb").exists()


def test_without_jupyterlab_nothing_is_written_and_the_cure_is_named(started, folder, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LessonError, match=r"not installed. Run: pip install 'autograd-lab\[lab\]'"):
        open_lab("learn")
    assert started == []
    assert list(folder.iterdir()) == []


def test_a_file_in_place_of_the_folder_is_refused(started, folder):
    (folder / "learn").write_text("mine", "utf-8")
    with pytest.raises(LessonError, match="it is a file"):
        open_lab("learn")
    assert started == []
