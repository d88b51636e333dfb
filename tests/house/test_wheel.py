"""A wheel built from the source distribution carries lessons, data and pages, and works alone."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def build(target, source, out):
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    build("sdist", ROOT, out)
    (archive,) = out.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(out, filter="data")
    build("wheel", out / archive.name.removesuffix(".tar.gz"), out)
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def names(wheel):
    return set(zipfile.ZipFile(wheel).namelist())


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The wheel's files in a folder of their own, as pip would put them."""
    folder = tmp_path_factory.mktemp("installed")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def python(installed, cwd, *arguments):
    """Run Python where the wheel's files come before the repository's own."""
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("folder", "pattern", "place"),
    [
        ("notebooks", "*.ipynb", "autograd_lab/teach/lessons"),
        ("notebooks/solutions", "*.py", "autograd_lab/teach/lessons/solutions"),
        ("autograd_lab/teach/data", "*", "autograd_lab/teach/data"),
        ("autograd_lab/show/static", "*", "autograd_lab/show/static"),
        ("autograd_lab", "*.py", "autograd_lab"),
    ],
    ids=["lessons", "solutions", "data", "page", "code"],
)
def test_the_wheel_carries(names, folder, pattern, place):
    wanted = {f"{place}/{path.name}" for path in (ROOT / folder).glob(pattern) if path.is_file()}
    assert wanted
    assert wanted <= names


def test_the_wheel_carries_nothing_else(names):
    assert {name.split("/")[0].split("-")[0] for name in names} == {"autograd_lab"}
    assert not [name for name in names if "build.py" in name or "/src/" in name]


def test_the_lessons_of_the_wheel_are_written_for_a_learner(installed, tmp_path):
    run = python(installed, tmp_path, "-m", "autograd_lab.cli", "notebooks", "learn")
    assert (run.returncode, run.stderr) == (0, "")
    lessons = {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert {path.name for path in (tmp_path / "learn").iterdir()} == lessons


SHOW_A_SOLUTION = """
import autograd_lab
from autograd_lab.teach.exercises import tape

print(autograd_lab.__file__)
print(tape.two_paths.solution(force=True).text)
"""


def test_an_exercise_of_the_wheel_finds_its_written_solution(installed, tmp_path):
    run = python(installed, tmp_path, "-c", SHOW_A_SOLUTION)
    assert (run.returncode, run.stderr) == (0, "")
    file, _, said = run.stdout.partition("\n")
    assert Path(file).is_relative_to(installed)
    written = (ROOT / "notebooks/solutions/01_tape.py").read_text("utf-8")
    _, _, solution = said.partition("one solution:\n")
    assert solution.strip()
    assert solution.strip() in written
