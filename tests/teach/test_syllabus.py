"""The list of tasks: that of the notebooks, and each task is an object of its lesson."""

import json

import pytest

from autograd_lab.teach import Exercise, Prediction, exercises, lessons
from autograd_lab.teach.syllabus import syllabus


def test_the_tasks_of_lesson_01_come_in_the_order_of_the_notebook():
    tape = syllabus()[1]
    assert tape.title == "01 A tape of your own"
    assert [task.name for task in tape.tasks] == [
        "first_node",
        "grad_of_a",
        "overwritten",
        "two_paths",
        "two_passes",
        "over_passes",
        "max_rule",
        "backward_order",
    ]


def test_every_task_is_an_object_of_its_kind_under_its_own_name():
    modules = [getattr(exercises, name) for name in exercises.__all__]
    made = {
        task.name: task
        for module in modules
        for task in vars(module).values()
        if isinstance(task, Exercise | Prediction)
    }
    listed = {task.name: task.kind for lesson in syllabus() for task in lesson.tasks}
    assert listed == {name: type(task).__name__.lower() for name, task in made.items()}


def test_no_lessons_are_an_empty_list(tmp_path, monkeypatch):
    monkeypatch.setattr(lessons, "_home", lambda: tmp_path)
    assert syllabus() == []


@pytest.mark.parametrize(
    "source", ["lesson.a.check(1)\nlesson.a.check(2)", ["lesson.a.che", "ck(1)"]]
)
def test_a_task_counts_once_and_a_source_may_be_lines(source, tmp_path, monkeypatch):
    cells = [{"cell_type": "code", "source": source}]
    (tmp_path / "07_x.ipynb").write_text(json.dumps({"cells": cells}))
    monkeypatch.setattr(lessons, "_home", lambda: tmp_path)
    (lesson,) = syllabus()
    assert (lesson.title, [task.name for task in lesson.tasks]) == ("07", ["a"])
