"""Turn any value into the words a learner has for it: `the text '9'`, `a tensor of shape (2, 3)`.

Numbers are shown with four digits: the last ones differ between machines.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from numbers import Number

import numpy as np
import torch

__all__ = ["advice", "expected", "kind", "shape", "with_article"]

_LONGEST_TEXT = 40
_MOST_NAMES = 4


def kind(value: object) -> str:
    """Say what a value is: `7`, `None`, `a list of 3`, `a function`, `an object of class X`."""
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        return _kind_of_array(value)
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        cut = value if len(value) <= _LONGEST_TEXT else value[:_LONGEST_TEXT] + " …"
        return f"the text {cut!r}"
    if isinstance(value, Number):
        return _number(value)
    if isinstance(value, Mapping):
        return f"a dict with the keys {names(list(value))}" if value else "an empty dict"
    if isinstance(value, (list, tuple)):
        name = type(value).__name__ if type(value) in (list, tuple) else "list"
        return f"a {name} of {len(value)}" if value else f"an empty {name}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, set | frozenset | types.ModuleType | types.GeneratorType):
        return f"a {type(value).__name__}"
    if isinstance(value, types.FunctionType | types.BuiltinFunctionType | types.MethodType):
        return "a function"
    return f"an object of class {type(value).__name__}"


def expected(right: object, part_names: object = None) -> str:
    """Say what kind of value the right answer is, and never the answer itself.

    part_names  what the parts of a list are called, in their order, where the exercise says so
    """
    if isinstance(right, bool | np.bool_):
        return "True or False"
    if isinstance(right, int):
        return "a whole number"
    if isinstance(right, torch.Tensor | np.ndarray | np.generic | Number):
        dims = tuple(getattr(right, "shape", ()))
        return f"a tensor of shape {dims}" if dims else "a number"
    if isinstance(right, Mapping):
        return f"a dict with the keys {names(list(right))}"
    if isinstance(right, (tuple, list)):
        count = f"{len(right)} values" if len(right) != 1 else "a list of 1 value"
        parts = part_names if isinstance(part_names, (tuple, list)) else ()
        known = 0 < len(parts) <= _MOST_NAMES and all(isinstance(part, str) for part in parts)
        return f"{count}: {', '.join(parts)}" if known else count
    if isinstance(right, str):
        return "a text in quotes"
    return "None" if right is None else with_article(type(right).__name__)


def advice(mine: object, right: object) -> str:
    """What to do about a value of the wrong kind, where that is clear; else nothing."""
    wants_numbers = isinstance(right, torch.Tensor | np.ndarray | np.generic | Number)
    if mine is None:
        late = "a .grad is None until backward() has reached its leaf"
        if isinstance(right, int):  # a count is no gradient
            return ""
        return late if wants_numbers else "is `return` missing?"
    if isinstance(mine, str):
        return "write numbers without quotes" if wants_numbers and _is_number(mine) else ""
    if isinstance(mine, set | frozenset):
        return "a set has no order, write (…, …)"
    if isinstance(mine, types.GeneratorType):
        return "put list(…) around it"
    if isinstance(mine, bool) and wants_numbers:
        return "write 1 for True and 0 for False"
    if isinstance(mine, Callable) and not isinstance(mine, type | torch.Tensor):
        return "call it: add (…)"
    return "do you mean its .value?" if hasattr(mine, "value") else ""


def shape(tensor: torch.Tensor) -> str:
    """`shape (2, 3)`, or `a single number`."""
    return f"shape {tuple(tensor.shape)}" if tensor.ndim else "a single number"


def names(keys: Sequence[object]) -> str:
    """`'x', 'w'`."""
    return ", ".join(map(repr, keys))


def with_article(noun: str) -> str:
    """`an int`, `a list`."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def _kind_of_array(value: torch.Tensor | np.ndarray | np.generic) -> str:
    dims = tuple(value.shape)
    if dims or (isinstance(value, torch.Tensor) and value.is_meta):
        return f"{'a tensor' if isinstance(value, torch.Tensor) else 'an array'} of shape {dims}"
    return kind(value.item())


def _number(value: Number) -> str:
    """Four digits; a whole number as it is, unless it fills the line."""
    if isinstance(value, int) and len(str(value)) <= _LONGEST_TEXT:
        return str(value)
    if isinstance(value, int | float):
        return "NaN (not a number)" if value != value else f"{value:.4g}"
    return f"{value:.4g}" if isinstance(value, complex) else str(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
