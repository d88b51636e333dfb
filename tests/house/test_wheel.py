"""A wheel built from the source distribution carries lessons, data and the pages' files."""

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
def names(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    build("sdist", ROOT, out)
    (archive,) = out.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(out, filter="data")
    build("wheel", out / archive.name.removesuffix(".tar.gz"), out)
    (wheel,) = out.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


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
