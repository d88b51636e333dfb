"""No file of the package reads or writes pickles, by whatever door."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "autograd_lab"
FILES = sorted(PACKAGE.rglob("*.py"))
MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
CALLS = {"torch.load", "torch.save", "torch.jit.load", "torch.jit.save", "read_pickle", "to_pickle"}


def name_of(node):
    """`a.b.c` of an expression, as far as it is made of names."""
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def says_no_pickle(call):
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    allowed = keywords.get("allow_pickle")
    return isinstance(allowed, ast.Constant) and allowed.value is False


def pickles_in(source):
    """What in a source may pickle: imports, and calls of torch's and numpy's loaders."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found += sorted(names & CALLS) + [node.module] * (node.module in MODULES)
        elif isinstance(node, ast.Call):
            name = name_of(node.func)
            loads = name in ("np.load", "numpy.load") and not says_no_pickle(node)
            if loads or name in CALLS or name.rpartition(".")[2] in CALLS:
                found.append(name)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_file_pickles(path):
    assert pickles_in(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import joblib.numpy_pickle",
        "from torch import load",
        "torch.load(path, weights_only=True)",
        "torch.save(x, path)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "numpy.load(path, allow_pickle=unknown)",
        "pandas.read_pickle(path)",
    ],
)
def test_the_scan_finds_a_pickle(source):
    assert pickles_in(source)


@pytest.mark.parametrize(
    "source", ["np.load(path, allow_pickle=False)", "json.load(file)", "safetensors.numpy.load(b)"]
)
def test_the_scan_lets_other_loaders_pass(source):
    assert not pickles_in(source)
