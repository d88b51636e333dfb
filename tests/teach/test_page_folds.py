"""Which cells of a page are folded: reveals, tagged answers, the progress table, solutions."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograd_lab.teach.page_folds import fold_answers


def folds(*cells):
    """For each cell: the words on the fold that begins there, and whether one ends there."""
    folded = fold_answers(new_notebook(cells=[*cells])).cells
    return [(c.metadata.get("fold_start"), c.metadata.get("fold_end", False)) for c in folded]


def reveal(name="n"):
    return new_code_cell(f"lesson.{name}.reveal(3)")


def answer():
    return new_markdown_cell("It is 3.", metadata={"tags": ["answer"]})


def test_a_revealed_prediction_is_folded():
    (start, ends), other = folds(reveal(), new_code_cell("s.step()"))
    assert "guess first" in start
    assert ends
    assert other == (None, False)


def test_neighbours_fold_together():
    found = folds(reveal("a"), reveal("b"), answer())
    assert [bool(start) for start, _ in found] == [True, False, False]
    assert [ends for _, ends in found] == [False, False, True]


@pytest.mark.parametrize("source", ["cube.reveal()", "lesson.n.ask()", "lesson.n.check(...)"])
def test_other_cells_stay_open(source):
    assert folds(new_code_cell(source)) == [(None, False)]


def test_words_about_reveal_are_no_answer():
    assert folds(new_markdown_cell("Use `lesson.n.reveal(3)`, `teach.progress()`")) == [
        (None, False)
    ]


def test_the_progress_table_has_a_fold_of_its_own():
    found = folds(reveal(), new_code_cell('teach.progress("00")'))
    assert [bool(start) for start, _ in found] == [True, True]
    assert [ends for _, ends in found] == [True, True]


def test_the_solution_follows_its_exercise_folded():
    exercise = new_code_cell("answer = ...", metadata={"tags": ["exercise:slope"]})
    cells = fold_answers(new_notebook(cells=[exercise, new_code_cell("1")])).cells
    assert len(cells) == 3
    assert cells[1].metadata.fold_start == "One solution"
    assert "return x + x + 1" in cells[1].source
