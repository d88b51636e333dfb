"""The set-up of conftest.py bites: dead kernels, torn notebooks and changed outputs are noticed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from notebooks.build import PINNED

ROOT = Path(__file__).parents[2]


def run_pytest(path, *options):
    """Run pytest on a file outside the repository under the repository's own set-up."""
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-p", "conftest"]
    command += ["-p", "no:cacheprovider", "-q", "--rootdir", str(path.parent), *options, str(path)]
    environment = {name: text for name, text in os.environ.items() if "XDIST" not in name}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def notebook(path, source, stored):
    output = nbformat.v4.new_output("stream", name="stdout", text=stored)
    cell = nbformat.v4.new_code_cell(source, execution_count=1, outputs=[output])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    return path


def test_notebooks_are_built_and_tested_in_the_same_environment():
    assert PINNED.items() <= os.environ.items()


def test_what_a_test_starts_elsewhere_finds_this_package_first(tmp_path):
    code = "import autograd_lab; print(autograd_lab.__file__)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert Path(run.stdout.strip()).is_relative_to(ROOT)
    assert os.environ["PYTHONPATH"].split(os.pathsep)[0] == str(ROOT)


def test_a_notebook_with_its_outputs_passes(tmp_path):
    source = "import os; print(os.environ['OMP_NUM_THREADS'], os.environ['AUTOGRAD_LAB_VARIANT'])"
    run = run_pytest(notebook(tmp_path / "kept.ipynb", source, "1 0\n"))
    assert run.returncode == 0, run.stdout


def test_a_changed_output_fails(tmp_path):
    run = run_pytest(notebook(tmp_path / "changed.ipynb", "print(1)", "2\n"))
    assert run.returncode == 1
    assert "1 failed" in run.stdout


def test_a_dying_kernel_is_noticed_long_before_the_cell_times_out(tmp_path):
    start = time.monotonic()
    run = run_pytest(notebook(tmp_path / "dying.ipynb", "import os; os._exit(1)", ""))
    assert "kernel died" in run.stdout
    assert time.monotonic() - start < 30  # the cell's time-out is 60


def test_a_distribution_that_tears_notebooks_apart_is_refused(tmp_path):
    run = run_pytest(notebook(tmp_path / "torn.ipynb", "print(1)", "1\n"), "-n", "2")
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--dist loadfile" in run.stderr
