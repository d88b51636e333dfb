"""A lesson with its solutions filled in says "correct" everywhere, for two learners."""

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient

from tests.notebooks.lessons import HOME, ROOT, code_cells, each_lesson, tags


def exercise_tags(cell):
    return [tag for tag in tags(cell) if tag.startswith("exercise:")]


def with_solutions(path):
    """The lesson with each exercise cell replaced by the cell of the same tag in solutions/."""
    solutions = jupytext.read(HOME / "solutions" / f"{path.stem}.py", fmt="py:percent")
    answers = {tag: cell.source for cell in solutions.cells for tag in exercise_tags(cell)}
    notebook = nbformat.read(path, as_version=4)
    for cell in code_cells(notebook):
        for tag in exercise_tags(cell):
            cell.source = answers.pop(tag)
    assert not answers, "a solution without an exercise"
    return notebook


def run(notebook, folder):
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=60, kernel_name="python3", resources=resources).execute()
    return notebook


@each_lesson
@pytest.mark.parametrize("variant", ["0", "another learner"])
def test_the_solutions_are_correct(path, variant, tmp_path, monkeypatch):
    monkeypatch.setenv("AUTOGRAD_LAB_VARIANT", variant)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = run(with_solutions(path), tmp_path)
    exercises = [cell for cell in code_cells(notebook) if exercise_tags(cell)]
    shown = [cell.outputs[-1]["data"]["text/plain"] for cell in exercises]
    assert len(shown) >= 2
    assert all(text.endswith(": correct") for text in shown), shown
    assert (tmp_path / "autograd_lab_progress.json").exists()


@each_lesson
def test_a_blank_stands_in_every_exercise_cell(path):
    notebook = nbformat.read(path, as_version=4)
    exercises = [cell for cell in code_cells(notebook) if exercise_tags(cell)]
    assert exercises
    for cell in exercises:
        assert "..." in cell.source
        assert "not answered yet" in cell.outputs[-1]["data"]["text/plain"]


@each_lesson
def test_the_solutions_differ_from_the_lesson_only_in_exercise_cells(path):
    plain, solved = nbformat.read(path, as_version=4), with_solutions(path)
    different = [a for a, b in zip(plain.cells, solved.cells, strict=True) if a.source != b.source]
    assert all(exercise_tags(cell) for cell in different)
    assert not any(
        "= ..." in cell.source or "return ..." in cell.source
        for cell in code_cells(solved)
        if exercise_tags(cell)
    )


def test_shapes_that_do_not_fit_stop_no_lesson_and_become_a_verdict(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(HOME / "02_backprop_by_hand.ipynb", as_version=4)
    wanted = {"exercise:d_logits": "d_logits = p - y", "exercise:d_w2": "d_w2 = h @ d_logits"}
    for cell in code_cells(notebook):
        for tag in set(exercise_tags(cell)) & set(wanted):
            lines = cell.source.splitlines()
            cell.source = "\n".join([lines[0], f"    {wanted[tag]}", *lines[2:]])
    shown = {
        tag: cell.outputs[-1]["data"]["text/plain"]
        for cell in code_cells(run(notebook, tmp_path))
        for tag in exercise_tags(cell)
    }
    assert "the division by the batch is missing" in shown["exercise:d_logits"]
    assert "in your line `d_w2 = h @ d_logits`" in shown["exercise:d_w2"]
    assert "expected shape (16, 10): a gradient has the shape" in shown["exercise:d_w2"]
