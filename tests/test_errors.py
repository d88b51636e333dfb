"""Every error of the package: codes, facts, and the few lines that a notebook shows of it."""

import traceback
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from autograd_lab import errors
from autograd_lab.teach import Prediction

ROOT = Path(__file__).parents[1]
CLASSES = [getattr(errors, name) for name in errors.__all__ if name.endswith("Error")]


def shown(call):
    """The lines that IPython would show of what a call raises."""
    with pytest.raises(errors.AutogradLabError) as caught:
        call()
    return caught.value._render_traceback_()


def test_each_class_has_a_code_of_its_own():
    assert len({kind.code for kind in CLASSES}) == len(CLASSES)


@pytest.mark.parametrize("kind", CLASSES)
def test_each_class_is_shown_by_the_users_line_and_its_words(kind):
    def fail():
        message = "It went wrong. Do this."
        raise kind(message, name="x")

    lines = shown(fail)
    assert lines[-1] == f"{kind.__name__}: It went wrong. Do this."
    assert lines[-2].startswith("test_errors.py:")
    assert lines[-2].endswith(': raise kind(message, name="x")')


def test_the_lines_of_this_package_are_left_out():
    lines = shown(lambda: Prediction("grad", number=True).guess("nonsense"))
    assert [line for line in lines if "autograd_lab" in line or "prediction.py" in line] == []
    assert lines[-2] == "GuessError: grad: this is not kept. The text 'nonsense' is no number."
    assert lines[-1] == "  Give a number. You have no guess yet."


def test_long_words_are_broken_between_words_and_line_ends_stay():
    def fail():
        raise errors.StepError("word " * 40 + "\nGo back.")

    lines = shown(fail)
    assert max(map(len, lines[2:])) <= 72
    assert lines[-1] == "Go back."
    assert lines[-2].startswith("  word")


def test_the_cause_is_named_in_one_line():
    def fail():
        try:
            {}["k"]
        except KeyError as error:
            raise errors.LessonError("No lesson.") from error  # noqa: EM101

    assert shown(fail)[-1] == "Caused by KeyError: 'k'"


def test_of_many_lines_of_the_user_the_last_four_are_shown():
    def dig(depth):
        if depth:
            dig(depth - 1)
        raise errors.StepError("deep")  # noqa: EM101

    assert len(shown(lambda: dig(9))) == 5


def test_an_error_that_was_never_raised_is_its_words():
    assert errors.StepError("quiet")._render_traceback_() == ["StepError: quiet"]


def test_outside_of_a_notebook_the_traceback_is_pythons_own():
    with pytest.raises(errors.GuessError) as caught:
        Prediction("grad", number=True).guess("nonsense")
    text = "".join(traceback.format_exception(caught.value))
    assert text.startswith("Traceback (most recent call last):")
    assert "prediction.py" in text


def test_a_folder_that_only_begins_like_the_package_is_the_users():
    package = Path(errors.__file__).parents[1]
    code = compile("raise ValueError", f"{package}_of_mine.py", "exec")
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        exec(code, {})
    assert errors.lines_of_the_user(caught.value)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "from autograd_lab import teach\nasked = teach.Prediction('grad', number=True)\n"
            "asked.guess('nonsense')",
            [
                "line 3: asked.guess('nonsense')",
                "GuessError: grad: this is not kept. The text 'nonsense' is no number.",
                "  Give a number. You have no guess yet.",
            ],
        ),
        (
            "import autograd_lab as al\ndef load():\n    return al.load_recording('my.json')\n"
            "load()",
            ["line 4: load()", "line 3: return al.load_recording('my.json')"],
        ),
    ],
    ids=["a guess", "inside a function"],
)
def test_a_notebook_shows_few_lines(source, expected, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "my.json").write_text("{}", "utf-8")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    client = NotebookClient(
        notebook, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    with pytest.raises(CellExecutionError):
        client.execute()
    lines = "\n".join(notebook.cells[0].outputs[-1]["traceback"]).splitlines()
    assert lines[: len(expected)] == expected
    assert len(lines) <= 6
