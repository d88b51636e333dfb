"""The build: in step with its sources, the same bytes each time, edits in JupyterLab come back."""

import os
import shutil

import nbformat
import pytest

from notebooks import build
from tests.notebooks.lessons import HOME, each_lesson


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A copy of the lessons' folder that the build takes for its own."""
    home = tmp_path / "notebooks"
    shutil.copytree(HOME, home, ignore=shutil.ignore_patterns("*.json", "__pycache__"))
    monkeypatch.setattr(build, "HERE", home)
    return home


def run_build(copy, *options):
    return build.main([*options, "--out", str(copy)])


def test_the_stored_notebooks_are_in_step_with_their_sources(capsys):
    assert build.main(["--check"]) == 0
    assert "OUT OF STEP" not in capsys.readouterr().out


def change_source(path):
    path.write_text(path.read_text(encoding="utf-8") + "\n# %%\n1 + 1\n", encoding="utf-8")


def test_check_notices_a_changed_source(copy, capsys):
    change_source(copy / "src" / "01_tape.py")
    assert run_build(copy, "--check") == 1
    assert "01_tape.ipynb: OUT OF STEP" in capsys.readouterr().out


def test_check_notices_a_missing_notebook(copy):
    (copy / "01_tape.ipynb").unlink()
    assert run_build(copy, "--check") == 1


def test_check_notices_a_lost_tag(copy):
    path = copy / "01_tape.ipynb"
    path.write_text(path.read_text("utf-8").replace("exercise:max_rule", "other"), "utf-8")
    assert run_build(copy, "--check") == 1


def test_syncing_back_an_unchanged_notebook_changes_no_byte(copy):
    source = copy / "src" / "01_tape.py"
    before = source.read_bytes()
    run_build(copy, "--sync-back")
    assert source.read_bytes() == before


def test_a_cell_edited_in_jupyterlab_comes_back_into_the_source(copy):
    path = copy / "01_tape.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[1].source += "\nedited = True"
    notebook.cells[1].metadata["execution"] = {"iopub.execute_input": "2030-01-01"}
    nbformat.write(notebook, path)
    run_build(copy, "--sync-back")
    source = (copy / "src" / "01_tape.py").read_text(encoding="utf-8")
    assert "edited = True" in source
    assert "2030" not in source
    assert run_build(copy, "--check") == 0


@each_lesson
def test_a_rebuild_gives_the_stored_bytes(path, tmp_path):
    build.main(["build", "--only", path.stem, "--out", str(tmp_path)])
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_the_kernel_stores_no_views_and_the_process_that_builds_is_left_alone():
    cell = nbformat.v4.new_code_cell("import os\nos.environ['AUTOGRAD_LAB_STATIC']")
    built = build.run(nbformat.v4.new_notebook(cells=[cell]))
    assert built.cells[0].outputs[0].data["text/plain"] == "'1'"
    assert "AUTOGRAD_LAB_STATIC" not in os.environ


def test_a_lesson_lies_there_with_its_new_tasks_while_it_runs(copy, monkeypatch):
    """teach.progress() lists the tasks of the stored lessons; else two builds would differ."""
    seen = []
    monkeypatch.setattr(
        build, "run", lambda notebook: seen.append(run_build(copy, "--check")) or notebook
    )
    change_source(copy / "src" / "01_tape.py")
    run_build(copy, "build", "--only", "01_tape")
    assert seen == [0]


def test_normalising_drops_what_no_two_runs_share():
    output = nbformat.v4.new_output("display_data", {"text/plain": "w", build.WIDGET_VIEW: {}})
    error = nbformat.v4.new_output("error", ename="E", evalue="v", traceback=["/home/x \x1b[0m"])
    cell = nbformat.v4.new_code_cell("1", outputs=[output, error], metadata={"execution": {}})
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"widgets": {}})
    build.normalised(notebook)
    assert cell.outputs[0].data == {"text/plain": "w"}
    assert cell.outputs[1].traceback == ["E: v"]
    assert "execution" not in cell.metadata
    assert "widgets" not in notebook.metadata
