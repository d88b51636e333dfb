"""Every test of this room runs in an empty folder, so that progress files don't meet."""

import pytest


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUTOGRAD_LAB_VARIANT", "0")
    return tmp_path


@pytest.fixture(params=range(20))
def variant(request, monkeypatch):
    """Twenty learners, one after the other."""
    monkeypatch.setenv("AUTOGRAD_LAB_VARIANT", str(request.param))
