"""Turn an opaque object into the names under which it holds tensors.

Such tensors would bypass `save_for_backward`: no version check, no saved-tensor hooks, and an
output among them would be kept for ever, by the cycle output, node, ctx, object, output.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any

import torch
from torch import nn

from autograd_lab.errors import HiddenTensorError

from .attributes import dict_of, slots_of
from .nodes import ATOMS, step

__all__ = ["hidden_tensors", "refuse_hidden"]

LOOKED_AT = 1000  # objects, breadth first: a config or a model that is kept costs about 100 us
NAMED = 8
CLOSED = (
    *(type, FunctionType, BuiltinFunctionType, MethodType, ModuleType),
    *(CodeType, FrameType, GeneratorType),
)


def hidden_tensors(value: object) -> tuple[str, ...]:
    """Names of the tensors that an opaque object holds, at most 8; () for none.

    Attributes, `__slots__` and builtin containers are searched, breadth first and over at most
    1000 objects, without running any code of their classes. Closures are not searched.

    >>> class Box:
    ...     def __init__(self, y):
    ...         self.y, self.more = y, [y, 2.0]
    >>> hidden_tensors(Box(torch.ones(3)))
    ('y', 'more[0]')
    """
    kind = type(value)
    if issubclass(kind, torch.Tensor):
        return ("itself",)
    if kind in ATOMS or issubclass(kind, CLOSED):
        return ()
    names: list[str] = []
    seen = {id(value)}
    queue = deque([("", value)])
    left = LOOKED_AT
    while queue:
        path, holder = queue.popleft()
        for name, part in _parts(holder):
            left -= 1
            if left < 0 or len(names) == NAMED:
                return tuple(names)
            kind = type(part)
            if issubclass(kind, torch.Tensor):
                names.append(f"{path}{name}".removeprefix("."))
            elif kind not in ATOMS and not issubclass(kind, CLOSED) and id(part) not in seen:
                seen.add(id(part))
                queue.append((f"{path}{name}", part))
    return tuple(names)


def refuse_hidden(path: str, value: object, part: str, searched: object) -> None:
    """Raise HiddenTensorError where an object, or a part of a container, hides tensors.

    part      "keys" or the like of the container `value`; "" for an opaque object
    searched  that part; the object itself
    """
    names = hidden_tensors(searched)
    if not names:
        return
    kind = type(value).__name__
    what = (
        f"{path} is a {kind} with tensors in its {part}: {list(names)}."
        if part
        else f"{path} is a {kind}, which is not a pytree node, but holds tensors in {list(names)}."
    )
    message = (
        f"{what}\n"
        "They would bypass save_for_backward: no version check, no saved-tensor hooks, "
        "and an output among them would never be freed.\n"
        f"{_remedy(value, part)}"
    )
    raise HiddenTensorError(message, path=path, kind=kind, names=names)


def _remedy(value: object, part: str) -> str:
    if part == "pytree context":
        return "Let the type's flatten_fn return them as children."
    if part:
        return "Save the tensors as values of the dict."
    if issubclass(type(value), (set, frozenset)):
        return "Save a list of them instead."
    if issubclass(type(value), nn.Module):
        return "Save a list or a dict of the module's tensors instead."
    kind = type(value).__name__
    return (
        f"Save a dict of the tensors instead, make {kind} a dataclass, "
        "or register it with torch.utils._pytree.register_pytree_node."
    )


def _parts(holder: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 (any object at all)
    kind = type(holder)
    if issubclass(kind, dict):
        for number, (key, part) in enumerate(dict.items(holder)):
            yield step(key, number), part
            if type(key) not in ATOMS:
                yield f"{step(key, number)} as a key", key
    elif issubclass(kind, (list, tuple, deque)):
        yield from _numbered(
            list.__iter__(holder)
            if issubclass(kind, list)
            else tuple.__iter__(holder)
            if issubclass(kind, tuple)
            else deque.__iter__(holder)
        )
    elif issubclass(kind, (set, frozenset)):
        elements = set.__iter__(holder) if issubclass(kind, set) else frozenset.__iter__(holder)
        for part in elements:
            yield "an element", part
    for member, part in slots_of(holder):
        yield f".{member.__name__}", part
    for name, part in tuple(dict_of(holder).items()):
        yield f".{name}", part


def _numbered(parts: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    return ((f"[{number}]", part) for number, part in enumerate(parts))
