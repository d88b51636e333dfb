"""check_setup says ok or what to do, the same words on every machine, and never raises."""

import importlib.metadata
import sys
from pathlib import Path

import pytest
import torch

from autograd_lab.teach import check_setup, setup_check

LIMITS = "_MEMORY_LIMITS"


def test_a_fine_machine_is_ok():
    verdict = check_setup()
    assert repr(verdict) == "setup: ok"
    assert verdict.ok


def test_versions_and_sizes_are_in_the_details_and_not_in_the_text():
    verdict = check_setup()
    for word in (torch.__version__, "cores", "memory", "device cpu"):
        assert word in verdict.details
        assert word in verdict.html
        assert word not in repr(verdict) + verdict._repr_html_()


def test_an_old_torch_is_told(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.9.1+cpu")
    assert "pip install 'torch>=2.10'" in check_setup().text


def test_an_old_python_is_told(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 10, 2))
    assert "Install Python 3.11" in check_setup().text


def test_missing_packages_are_told_in_one_line(monkeypatch):
    def version(name):
        if name in ("anywidget", "matplotlib"):
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert "pip install matplotlib anywidget" in check_setup().text


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (str(512 * 2**20), "Memory is short"),
        (str(2**31), "ok"),
        ("max", "ok"),
        (str(2**63 - 4096), "ok"),
    ],
)
def test_the_memory_limit_of_the_container_is_read(limit, text, monkeypatch):
    Path("limit").write_text(limit + "\n")
    monkeypatch.setattr(setup_check, LIMITS, ("limit", "not there"))
    assert text in check_setup().text


def test_a_device_that_is_not_there_is_told(monkeypatch):
    monkeypatch.setenv("AUTOGRAD_LAB_DEVICE", "nonsense")
    assert "asks for 'nonsense'" in check_setup().text


@pytest.mark.parametrize("device", ["auto", "cpu", ""])
def test_a_device_that_is_there_is_ok(device, monkeypatch):
    monkeypatch.setenv("AUTOGRAD_LAB_DEVICE", device)
    assert check_setup().ok


def test_it_never_raises_whatever_a_probe_meets(monkeypatch):
    Path("limit").write_bytes(b"\xff")
    monkeypatch.setattr(setup_check, LIMITS, ("limit",))
    verdict = check_setup()
    assert verdict.ok
    assert "memory: not found out (UnicodeDecodeError" in verdict.details
