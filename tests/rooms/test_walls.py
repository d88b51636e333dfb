"""The rooms' contracts hold, and each of them can fail."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
LADDER, NO_TORCH, NO_DRAWING = CONFIG["contracts"]
ROOMS = {
    path.stem
    for path in (ROOT / "autograd_lab").iterdir()
    if (path.suffix == ".py" or (path / "__init__.py").is_file()) and path.stem[0] != "_"
}
LINT = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"


def python(code, cwd=ROOT):
    uncoloured = {name: text for name, text in os.environ.items() if name != "FORCE_COLOR"}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=cwd, env=uncoloured, capture_output=True, text=True, check=False
    )


@pytest.fixture
def empty_house(tmp_path):
    """Every room as an empty package, under the real contracts."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for room in [".", *ROOMS]:
        (tmp_path / "autograd_lab" / room).mkdir()
        (tmp_path / "autograd_lab" / room / "__init__.py").touch()
    return tmp_path


def test_the_contracts_hold():
    linted = python(LINT)
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_an_empty_house_keeps_the_contracts(empty_house):
    linted = python(LINT, empty_house)
    assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.mark.parametrize(
    ("room", "line", "contract"),
    [
        ("recording", "from autograd_lab import replay", LADDER),
        ("replay", "import autograd_lab.capture", LADDER),
        ("views", "from autograd_lab import torch_private", LADDER),
        ("room_without_a_place", "", LADDER),
        ("show", "import torch", NO_TORCH),
        ("replay", "import torch.nn", NO_TORCH),
        ("capture", "from matplotlib.figure import Figure", NO_DRAWING),
        ("cli", "import ipywidgets", NO_DRAWING),
        ("commands", "from IPython.display import HTML", NO_DRAWING),
    ],
)
def test_a_planted_import_breaks_its_contract(empty_house, room, line, contract):
    (empty_house / "autograd_lab" / room).mkdir(exist_ok=True)
    (empty_house / "autograd_lab" / room / "__init__.py").write_text(line)
    linted = python(LINT, empty_house)
    assert linted.returncode == 1
    assert f"{contract['name']} BROKEN" in linted.stdout


def test_torch_through_another_room_breaks_the_contract(empty_house):
    (empty_house / "autograd_lab/torch_private/__init__.py").write_text("import torch")
    (empty_house / "autograd_lab/recording/__init__.py").write_text(
        "from autograd_lab import torch_private"
    )
    assert f"{NO_TORCH['name']} BROKEN" in python(LINT, empty_house).stdout


def test_every_room_is_named_by_the_contracts_it_must_keep():
    without_torch = ROOMS & {"errors", "views", "recording", "schedules", "replay", "show"}
    without_drawing = ROOMS - {"show", "doors", "teach"}
    assert {f"autograd_lab.{room}" for room in without_torch} == set(NO_TORCH["source_modules"])
    assert {f"autograd_lab.{room}" for room in without_drawing} == set(NO_DRAWING["source_modules"])


@pytest.mark.parametrize(
    ("imported", "strangers"),
    [
        (
            "autograd_lab",
            {"torch", "numpy", "matplotlib", "ipywidgets", "anywidget", "IPython"},
        ),
        ("autograd_lab.recording, autograd_lab.replay", {"torch", "matplotlib", "ipywidgets"}),
        ("autograd_lab.show", {"torch", "ipywidgets", "anywidget", "IPython"}),
    ],
    ids=["package", "recorded and framed", "shown"],
)
def test_importing_a_room_leaves_the_heavy_packages_alone(imported, strangers):
    loaded = python(f"import {imported}, sys; print(*sys.modules)")
    assert loaded.returncode == 0, loaded.stderr
    assert not strangers & set(loaded.stdout.split())
