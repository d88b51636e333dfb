"""No file passes a wall where import-linter cannot look: by private names, late, or by string."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "autograd_lab"
FILES = sorted(PACKAGE.rglob("*.py"))
MAY_IMPORT_BY_STRING = {
    "__init__.py": "loads the public names lazily",
    "show/__init__.py": "loads widgets and figures lazily",
    "views.py": "is the one upward door",
    "torch_private.py": "probes torch's private modules",
    "cli.py": "loads the commands below it once one is asked for: --help then needs no torch",
    "commands/functions.py": "loads the user's own module",
    "commands/lessons.py": "loads what writes pages: it needs nbconvert, which not everybody has",
}

# Torch's own names on values that no import shows. `_version` of a tensor is none of them: torch's
# documentation of in-place checks names it, and it is read too often for a call.
ATTRIBUTES_OF_TORCH = {
    *("_forward_cls", "_orig_mod", "_parameters", "_buffers", "_modules"),
    *("_sequence_nr", "_raw_saved_tensors"),
}


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def dotted(node):
    """`a.b.c` as ["a", "b", "c"], or [] when it does not start at a plain name."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute) and (front := dotted(node.value)):
        return [*front, node.attr]
    return []


def private_torch_names(tree):
    """Underscored names reached through anything that was imported from torch, with their lines."""
    from_torch, found = set(), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                path = alias.name.split(".")
                if path[0] == "torch":
                    from_torch.add(alias.asname or "torch")
                    found += [(node.lineno, alias.name) for part in path if is_private(part)]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
            for alias in node.names:
                from_torch.add(alias.asname or alias.name)
                path = f"{node.module}.{alias.name}"
                found += [(node.lineno, path) for part in path.split(".") if is_private(part)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            path = dotted(node)
            if path and path[0] in from_torch:
                found.append((node.lineno, ".".join(path)))
    return found


def attributes_of_torch(tree):
    """Torch's underscored attributes of a value that is not `self`, also by string."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES_OF_TORCH:
            found += [(node.lineno, node.attr)] if dotted(node)[:1] != ["self"] else []
        elif isinstance(node, ast.Constant) and node.value in ATTRIBUTES_OF_TORCH:
            found.append((node.lineno, node.value))
    return found


def imports_inside_functions(tree):
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    inner = (node for function in functions for node in ast.walk(function))
    return [node.lineno for node in inner if isinstance(node, ast.Import | ast.ImportFrom)]


def imports_by_string(tree):
    loaders = {"import_module", "__import__", "resolve_name"}
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if loaders & set(dotted(call.func)[-1:])]


def imports_of_the_facade(tree):
    """`import autograd_lab` and `from autograd_lab import record`: they lead through every wall."""
    rooms = {path.stem for path in PACKAGE.iterdir()} | {"__version__"}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, a.name) for a in node.names if a.name == "autograd_lab"]
        elif isinstance(node, ast.ImportFrom) and node.module == "autograd_lab":
            found += [(node.lineno, a.name) for a in node.names if a.name not in rooms]
    return found


def parse(path):
    return ast.parse(path.read_text("utf-8"), str(path))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_stay_in_sight(path):
    name = path.relative_to(PACKAGE).as_posix()
    tree = parse(path)
    if name != "torch_private.py":
        assert private_torch_names(tree) == []
        assert attributes_of_torch(tree) == []
    if name not in MAY_IMPORT_BY_STRING:
        assert imports_by_string(tree) == []
    assert imports_inside_functions(tree) == []
    assert imports_of_the_facade(tree) == []


@pytest.mark.parametrize(
    "code",
    [
        "import torch\ntorch._C._functions",
        "import torch as t\nt.autograd._engine_run_backward",
        "import torch.nn.functional as F\nF._canonical_mask",
        "from torch.autograd import graph\ngraph._MultiHandle",
        "import torch._dynamo",
        "from torch import _C",
        "from torch._C import DispatchKey",
    ],
)
def test_a_private_torch_name_is_seen(code):
    assert private_torch_names(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    ["child._parameters.items()", "getattr(model, '_orig_mod', model)", "type(node)._sequence_nr"],
)
def test_a_private_attribute_of_a_torch_value_is_seen(code):
    assert attributes_of_torch(ast.parse(code))


def test_an_attribute_of_ones_own_is_left_alone():
    assert attributes_of_torch(ast.parse("self._parameters.clear()")) == []


@pytest.mark.parametrize(
    "code", ["import torch\ntorch.__version__", "import torch\ntorch.nn.init.ones_", "self._x"]
)
def test_a_public_name_is_left_alone(code):
    assert private_torch_names(ast.parse(code)) == []


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    import torch",
        "class A:\n    async def f(self):\n        from torch import nn",
    ],
)
def test_an_import_inside_a_function_is_seen(code):
    assert imports_inside_functions(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    [
        "import importlib\nimportlib.import_module('torch')",
        "from importlib import import_module\nimport_module('torch')",
        "import pkgutil\npkgutil.resolve_name('torch:nn')",
        "__import__('torch')",
    ],
)
def test_an_import_by_string_is_seen(code):
    assert imports_by_string(ast.parse(code))


@pytest.mark.parametrize("code", ["import autograd_lab as al", "from autograd_lab import record"])
def test_an_import_of_the_facade_is_seen(code):
    assert imports_of_the_facade(ast.parse(code))
