"""Where the lessons lie, how a test takes one apart, and how nbval is run on it in a subprocess."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
HOME = ROOT / "notebooks"
LESSONS = sorted(HOME.glob("*.ipynb"))

each_lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tags(cell):
    return set(cell.metadata.get("tags", []))


def texts(cell):
    """Every text of a cell's outputs that nbval compares."""
    for output in cell.outputs:
        if output.output_type == "stream":
            yield output.text
        if output.output_type == "error":
            yield output.evalue
        data = output.get("data", {})
        yield from (text for kind, text in data.items() if not kind.startswith("image/"))


def patterns():
    """What nbval folds before it compares: pairs of a regular expression and its replacement."""
    text = (HOME / "sanitize.cfg").read_text(encoding="ascii")
    return re.findall(r"^regex: (.*)\nreplace: (.*)$", text, re.MULTILINE)


def failed_cells(notebook, folder):
    """Run nbval on a notebook under the repository's set-up; the places of the cells that fail.

    nbval counts cells from 0 in its release and from 1 on its main branch: places are relative.
    """
    path = folder / "lesson.ipynb"
    nbformat.write(notebook, path)
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-p", "conftest"]
    command += ["-p", "no:cacheprovider", "-rA", "--color=no", "--rootdir", str(folder), str(path)]
    environment = {name: text for name, text in os.environ.items() if "XDIST" not in name}
    environment["PYTHONPATH"] = str(ROOT)  # the kernel runs elsewhere; nothing need be installed
    run = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    seen = re.findall(r"^(PASSED|FAILED) .*::Cell (\d+)", run.stdout, re.MULTILINE)
    assert len(seen) == len(code_cells(notebook)), run.stdout + run.stderr
    first = min(int(number) for _, number in seen)
    return {int(number) - first for word, number in seen if word == "FAILED"}
