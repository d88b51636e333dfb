"""Turn `module:function` into the user's function, or into what to write instead."""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from autograd_lab.errors import UserFunctionError

__all__ = ["load_function"]

_FILES = (".py", ".ipynb")  # what is named in place of a module


def load_function(text: str) -> Callable[[], object]:
    """The user's function named as module:function.

    The working directory is importable, as with `python -m`.
    """
    module_name, colon, path = text.partition(":")
    if not colon or not module_name or not path:
        raise _no_function(text, "it names no function", _with_colon(text))
    is_name = all(part.isidentifier() for part in module_name.split("."))
    if not is_name or module_name.endswith(_FILES):
        fix = _as_in_an_import(module_name, path)
        raise _no_function(text, f"{module_name!r} is not a module's name", fix)
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the user's module is there; something that it imports is not
        why = f"there is no module {error.name!r} in {Path.cwd().name}/ or in the environment"
        files = [file.stem for file in Path.cwd().glob("*.py") if file.stem.isidentifier()]
        fix = _nearest(module_name, files) or "Run from the folder that holds it"
        raise _no_function(text, why, fix) from error
    for name in path.split("."):
        if not hasattr(found, name):
            why = f"module {module_name!r} has no {path!r}"
            raise _no_function(text, why, _nearest(name, dir(found)) or "Look at its spelling")
        found = getattr(found, name)
    problem = _why_not_callable(found, path)
    if problem:
        raise _no_function(text, *problem)
    return found


def _why_not_callable(found: Any, path: str) -> tuple[str, str] | None:  # noqa: ANN401 (anything)
    """What keeps it from being called without arguments, and what to do."""
    if not callable(found):
        kind = "None" if found is None else f"of type {type(found).__name__}"
        return f"it is {kind}, not a function", "Name a function that does forward and backward"
    if inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found):
        return "it is async, so that a call runs nothing", "Name a plain function that runs it"
    if inspect.isgeneratorfunction(found):
        return (
            "it is a generator, so that a call runs nothing",
            "Name a function that loops over it",
        )
    called = found.forward if isinstance(found, torch.nn.Module) else found
    try:
        inspect.signature(called).bind()
    except TypeError:
        why = f"it needs arguments: {path}{inspect.signature(called)}"
        return why, "Name a function that needs none and calls this one"
    except ValueError:  # a C function without a signature: calling it will tell
        return None
    return None


def _with_colon(text: str) -> str:
    """What to write instead of a name without a function: `train.one_step`, `train.py`."""
    module, dot, name = text.strip(":").rpartition(".")
    if dot and name.isidentifier() and module and name != "py":
        return f"Put a colon before the function: {module}:{name}"
    return "Write MODULE:FUNCTION"


def _as_in_an_import(module_name: str, function: str) -> str:
    """What to write instead of a path: what an import from its folder would say."""
    file = Path(module_name if "/" in module_name else module_name.lstrip("."))
    stem = file.stem if file.suffix in _FILES else file.name
    if file.suffix == ".ipynb":
        return "A notebook can't be imported: write `with al.record() as rec:` in it"
    if not stem.isidentifier():
        new = re.sub(r"\W", "_", stem)
        return f"Python can't import that name. Rename the file, for example {new}.py"
    parts = (*file.parent.parts, stem)
    if all(part.isidentifier() for part in parts):
        return f"Write it as in an import: {'.'.join(parts)}:{function}"
    return f"Run in the folder {file.parent} and write {stem}:{function}"


def _nearest(name: str, known: Iterable[str]) -> str | None:
    near = difflib.get_close_matches(name, known, 3)
    return f"Nearest: {', '.join(near)}" if near else None


def _no_function(text: str, why: str, fix: str) -> UserFunctionError:
    message = f"{text!r} can't be called: {why}.\n{fix}.\nFor example: train:one_step"
    return UserFunctionError(message, function=text)
