"""constraints.txt pins what pyproject.toml asks for, and only versions that it accepts."""

import sys
import tomllib
from importlib.metadata import distributions
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
PINS = {
    canonicalize_name(pin.name): pin.specifier
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line and not line.startswith("#")
    for pin in [Requirement(line)]
}
DIRECT = [
    Requirement(text)
    for text in chain(PROJECT["dependencies"], *EXTRAS.values())
    if not text.startswith(PROJECT["name"])
]


def test_every_pin_is_one_exact_version():
    operators = {name: [part.operator for part in pins] for name, pins in PINS.items()}
    assert {name for name, found in operators.items() if found != ["=="]} == set()


def test_torch_is_pinned_without_a_build_name():
    assert str(PINS["torch"]) == "==2.13.0"


@pytest.mark.parametrize("wanted", DIRECT, ids=str)
def test_a_direct_dependency_has_a_lower_bound_that_its_pin_satisfies(wanted):
    (pin,) = PINS[canonicalize_name(wanted.name)]
    assert [part.operator for part in wanted.specifier] == [">="]
    assert wanted.specifier.contains(pin.version)


@pytest.mark.skipif(sys.platform != "linux", reason="the pins were made on Linux")
def test_what_pinned_packages_ask_for_is_pinned():
    installed = {canonicalize_name(found.name): found for found in distributions()}
    waiting, reached = {canonicalize_name(wanted.name) for wanted in DIRECT}, set()
    while waiting:
        reached.add(name := waiting.pop())
        if name in installed and name in PINS and PINS[name].contains(installed[name].version):
            asked = map(Requirement, installed[name].requires or [])
            needed = (one for one in asked if not one.marker or one.marker.evaluate({"extra": ""}))
            waiting |= {canonicalize_name(one.name) for one in needed} - reached
    from_torch_alone = {name for name in reached if name.startswith(("nvidia-", "cuda-", "triton"))}
    assert reached - from_torch_alone <= set(PINS)
