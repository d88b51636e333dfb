"""Turn the lessons' notebooks into the list of their tasks, in the order a learner meets them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from autograd_lab.errors import LessonError
from autograd_lab.teach.lessons import find_lessons

__all__ = ["Lesson", "Task", "syllabus"]

# A lesson asks `lesson.first_node.ask()` and checks `lesson.max_rule.check(...)`.
_TASK = re.compile(r"\blesson\.(\w+)\.(ask|check)\(")
_KINDS = {"ask": "prediction", "check": "exercise"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One prediction or exercise."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A lesson's number and title, and its tasks in order."""

    title: str
    tasks: tuple[Task, ...]


def syllabus() -> list[Lesson]:
    """Return all lessons in the order of their numbers; none where no lessons are found."""
    try:
        files = find_lessons()
    except LessonError:
        return []
    return [
        _lesson(file.name.partition("_")[0], json.loads(file.read_text(encoding="utf-8"))["cells"])
        for file in files
    ]


def _lesson(number: str, cells: list[dict[str, Any]]) -> Lesson:
    sources = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    text = "\n".join(source for kind, source in sources if kind == "markdown")
    code = "\n".join(source for kind, source in sources if kind == "code")
    heading = re.search(r"^# (.+)$", text, re.MULTILINE)
    found = dict.fromkeys(_TASK.findall(code))  # a task that is checked twice counts once
    tasks = tuple(Task(name=name, kind=_KINDS[verb]) for name, verb in found)
    return Lesson(title=f"{number} {heading[1]}" if heading else number, tasks=tasks)
