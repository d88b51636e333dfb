"""The public names of the package and of show load when they are asked for."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import autograd_lab
from autograd_lab import show

PACKAGES = pytest.mark.parametrize("package", [autograd_lab, show], ids=["package", "show"])
PLACES = [(package, name) for package in (autograd_lab, show) for name in package._HOMES]


@pytest.mark.parametrize(("package", "name"), PLACES, ids=[name for _, name in PLACES])
def test_a_public_name_is_the_object_of_its_room(package, name):
    home = importlib.import_module(f"{package.__name__}.{package._HOMES[name]}")
    assert getattr(package, name) is getattr(home, name)
    assert name in home.__all__


@PACKAGES
def test_names_offered_for_completion_are_the_public_ones(package):
    assert dir(package) == package.__all__ == sorted(package.__all__)
    assert set(package._HOMES) <= set(package.__all__)


@PACKAGES
def test_a_wrong_name_is_an_attribute_error_that_lists_the_names(package):
    with pytest.raises(AttributeError, match=r"no attribute 'recrod'.*Public names: .*"):
        _ = package.recrod


@PACKAGES
def test_hasattr_and_getattr_with_a_default_work(package):
    assert not hasattr(package, "recrod")
    assert getattr(package, "recrod", 7) == 7


def test_a_star_import_brings_every_public_name():
    code = (
        "from autograd_lab import *; import autograd_lab as al; print(set(al.__all__) <= {*dir()})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "True\n"


def test_the_version_stands_once():
    text = Path(autograd_lab.__file__).read_text("utf-8")
    assert text.count(f'__version__ = "{autograd_lab.__version__}"') == 1


def test_stub_tells_editors_the_same_names_from_the_same_rooms():
    stub = Path(autograd_lab.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    told = {
        name: room
        for room, name in re.findall(r"from autograd_lab\.(\w+) import \w+ as (\w+)", stub)
    }
    assert told == autograd_lab._HOMES
