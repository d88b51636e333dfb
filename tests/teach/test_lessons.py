"""The learners' copy: no outputs, blanks blank, and no file of a learner is ever overwritten."""

import json
import re
from pathlib import Path

import pytest

import autograd_lab
from autograd_lab.errors import LessonError
from autograd_lab.teach import lessons, write_lessons
from autograd_lab.teach.lessons import solution_source

NAME = "01_tape.ipynb"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of lessons with one small lesson that a test may change."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setattr(lessons, "_home", lambda: home)
    write_lesson(home, "print(1)")
    return home


def write_lesson(home, source):
    output = {"output_type": "stream", "name": "stdout", "text": "1\n"}
    cell = {"cell_type": "code", "source": source, "execution_count": 1, "outputs": [output]}
    text = {"cells": [cell], "metadata": {"kernelspec": {"name": "python3"}}, "nbformat": 4}
    (home / NAME).write_text(json.dumps(text))


def edit(path, source):
    document = json.loads(path.read_text())
    document["cells"][0]["source"] = source
    path.write_text(json.dumps(document))


def test_the_copy_of_the_real_lessons_has_no_outputs():
    written = write_lessons("learn")
    assert Path("learn", NAME) in written
    for path in written:
        cells = [
            c for c in json.loads(path.read_text("utf-8"))["cells"] if c["cell_type"] == "code"
        ]
        assert cells
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


def test_the_exercise_cells_of_the_copy_hold_their_blanks():
    for path in write_lessons("learn"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        tagged = [c for c in cells if any("exercise:" in t for t in c["metadata"].get("tags", []))]
        assert tagged
        assert all("..." in "".join(cell["source"]) for cell in tagged)


def test_outputs_are_kept_on_request(home):
    (path,) = write_lessons("learn", with_outputs=True)
    (cell,) = json.loads(path.read_text())["cells"]
    assert cell["outputs"][0]["text"] == "1\n"
    assert cell["execution_count"] == 1


def test_a_learners_work_on_the_same_lesson_is_kept_and_nothing_is_written(home):
    (path,) = write_lessons("learn")
    edit(path, "my answer")
    said = []
    assert write_lessons("learn", say=said.append) == []
    assert "my answer" in path.read_text()
    assert said == [f"{path}: your file is kept, the lesson is the same"]


def test_a_changed_lesson_is_written_beside_the_learners_file(home):
    (path,) = write_lessons("learn")
    edit(path, "my answer")
    write_lesson(home, "print(2)")
    said = []
    (new,) = write_lessons("learn", say=said.append)
    assert new.name == "01_tape.new.ipynb"
    assert "my answer" in path.read_text()
    assert "print(2)" in new.read_text()
    assert said == [f"{new}: written; your {NAME} is kept, compare the two"]


def test_the_new_one_is_not_written_twice_nor_overwritten(home):
    (path,) = write_lessons("learn")
    for version in (2, 2, 3):
        write_lesson(home, f"print({version})")
        write_lessons("learn")
    names = sorted(p.name for p in path.parent.iterdir())
    assert names == ["01_tape.ipynb", "01_tape.new.ipynb", "01_tape.new2.ipynb"]


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"metadata": 3}', '{"metadata": {}}'])
def test_a_file_of_the_same_name_that_is_no_copy_is_kept(home, text):
    Path("learn").mkdir()
    Path("learn", NAME).write_text(text)
    write_lessons("learn")
    assert Path("learn", NAME).read_text() == text
    assert Path("learn/01_tape.new.ipynb").exists()


def test_a_folder_inside_folders_is_made(home):
    (path,) = write_lessons(Path("a/b/c"))
    assert path == Path("a/b/c", NAME)


def test_a_file_in_the_folders_place_is_a_clear_error(home):
    Path("learn").write_text("mine")
    with pytest.raises(LessonError, match=r"it is a file\. Choose another folder"):
        write_lessons("learn")
    assert Path("learn").read_text() == "mine"


def test_no_lessons_is_a_clear_error(home):
    (home / NAME).unlink()
    with pytest.raises(LessonError, match="No lessons found"):
        write_lessons("learn")


def test_in_an_installed_package_the_lessons_lie_inside_it(tmp_path, monkeypatch):
    site = tmp_path / "site" / "autograd_lab"
    (site / "teach" / "lessons" / "solutions").mkdir(parents=True)
    write_lesson(site / "teach" / "lessons", "print('installed')")
    answer = '# %% tags=["exercise:cube"]\nanswer = 3\n'
    (site / "teach" / "lessons" / "solutions" / "01.py").write_text(answer)
    monkeypatch.setattr("importlib.resources.files", lambda package: site)
    (path,) = write_lessons("learn")
    assert "installed" in path.read_text()
    assert solution_source("cube") == "answer = 3"


def test_each_exercise_of_a_lesson_has_its_own_written_solution():
    root = Path(autograd_lab.__file__).parents[1] / "notebooks"
    tags = [
        tag
        for path in root.glob("*.ipynb")
        for tag in re.findall(r'"exercise:(\w+)"', path.read_text("utf-8"))
    ]
    assert len(set(tags)) == len(tags) > 0
    solutions = [solution_source(tag) for tag in tags]
    assert all(solutions)
    assert not any("# %%" in solution for solution in solutions)


def test_an_unknown_exercise_has_no_written_solution():
    assert solution_source("no_such") is None
    assert solution_source("two_path") is None
    assert solution_source(".*") is None
