"""Turn one container into its children and back, one level at a time.

Containers are dict, list, tuple, OrderedDict, defaultdict and deque (these types exactly), named
tuples, dataclasses, and what was registered with torch's pytree. A subclass of a builtin container
may carry anything else, so it is a container only where it was registered.
"""

from __future__ import annotations

import enum
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType
from typing import Any, NamedTuple

import torch
from torch import nn

from autograd_lab import torch_private

from .attributes import dict_of, slots_of

__all__ = ["ATOMS", "DICT", "LIST", "PLAIN_KEYS", "TUPLE", "Node", "NodeKind", "open_node", "step"]

ATOMS = frozenset(
    {
        *(int, float, bool, str, bytes, complex, type(None), type(...), slice, range),
        *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size),
        *(torch.SymInt, torch.SymFloat, torch.SymBool, torch.Generator),
    }
)
"""Types that hold no tensor: their values are kept as they are, unsearched."""

PLAIN_KEYS = frozenset({str, int, float, bool, bytes, type(None)})


@dataclass(frozen=True, slots=True)
class NodeKind:
    """How one kind of container is rebuilt, and how Python spells the way to its children.

    rebuild  called with (context, list of children); must not keep the list unless it is the result
    steps    called with (context, number of children), gives one text for each: "['w']", "[0]"
    """

    rebuild: Callable[[Any, list[Any]], Any]
    steps: Callable[[Any, int], Iterable[str]]


class Node(NamedTuple):
    """One container, opened.

    context   what `kind` needs besides the children
    part      name of what else could hide tensors ("keys"), or "" for none
    searched  that part
    """

    kind: NodeKind
    context: Any
    children: Sequence[Any]
    part: str = ""
    searched: object = None


def step(key: object, number: int = 0) -> str:
    """How Python spells the way to a key, without running code of the key's class.

    number  where it stands among the keys, for one that can't be spelled

    >>> step("w"), step(0), step((1, "a")), step(object(), 2)
    ("['w']", '[0]', "[(1, 'a')]", '[<key 2, object>]')
    """
    return f"[{_key_text(key, number)}]"


def open_node(value: object) -> Node | None:
    """Open a container one level; None for a leaf.

    Runs no code of the value's class, but for what was registered with torch's pytree.
    Raises what such a registration raises.
    """
    kind: Any = type(value)
    if kind in ATOMS or issubclass(kind, torch.Tensor):
        return None
    held: Any = value
    if kind is dict or kind is OrderedDict:
        return _mapping(DICT if kind is dict else _ORDERED_DICT, held)
    if kind is list or kind is tuple:
        return Node(LIST if kind is list else TUPLE, None, held)
    if kind is defaultdict:
        return _mapping(_DEFAULT_DICT, held, held.default_factory)
    if kind is deque:
        return Node(_DEQUE, held.maxlen, held)
    registered = torch_private.registered_node(kind)
    if registered is not None:
        return _registered(held, registered)
    if issubclass(kind, tuple) and isinstance(getattr(kind, "_fields", None), tuple):
        extra = dict_of(held)
        children = (*held, *extra.values()) if extra else held
        return Node(_NAMED_TUPLE, (kind, tuple(extra)), children)
    if hasattr(kind, "__dataclass_fields__") and _is_rebuildable(kind):
        slots, attributes = tuple(slots_of(held)), dict_of(held)
        context = (kind, tuple(member for member, _ in slots), tuple(attributes))
        return Node(_OBJECT, context, (*(part for _, part in slots), *attributes.values()))
    return None


def _key_text(key: Any, number: int) -> str:  # noqa: ANN401 (any hashable object)
    kind = type(key)
    if kind in PLAIN_KEYS and (kind is not int or key.bit_length() < 1000):
        return repr(key)  # Python refuses to write a number of more than 4300 digits
    if kind is tuple:
        inner = ", ".join(_key_text(part, number) for part in key)
        return f"({inner},)" if len(key) == 1 else f"({inner})"
    if issubclass(kind, enum.Enum):
        return f"{kind.__name__}.{key._name_}"
    return f"<key {number}, {kind.__name__}>"


def _mapping(kind: NodeKind, mapping: dict[Any, Any], factory: object = None) -> Node:
    keys = tuple(mapping)
    context = (factory, keys) if kind is _DEFAULT_DICT else keys
    children = tuple(mapping.values())
    if factory is None and PLAIN_KEYS.issuperset(map(type, keys)):
        return Node(kind, context, children)
    return Node(kind, context, children, "keys" if factory is None else "keys or factory", context)


def _registered(value: object, registered: Any) -> Node:  # noqa: ANN401 (torch's NodeDef)
    children, context = registered.flatten_fn(value)
    children = tuple(children)
    steps = _index_steps(None, len(children))
    if registered.flatten_with_keys_fn is not None:
        # for the names alone: the context that it returns differs from flatten_fn's in torch 2.13
        named, _ = registered.flatten_with_keys_fn(value)
        steps = [str(key) for key, _ in named]
    return Node(
        _REGISTERED, (registered.unflatten_fn, context, steps), children, "pytree context", context
    )


def _is_rebuildable(kind: type) -> bool:
    """`object.__new__` makes an empty instance, and its attributes are all that there is to it.

    False for a dataclass that is also a list, a dict, an exception or a module.
    """
    for base in kind.__mro__[:-1]:
        if type(vars(base).get("__new__")) is BuiltinFunctionType:  # its memory is set up in C
            return False
    return not issubclass(kind, nn.Module)


def _key_steps(keys: Sequence[Any], count: int) -> Iterable[str]:
    return map(step, keys, range(count))


def _index_steps(context: object, count: int) -> Iterable[str]:
    return [f"[{number}]" for number in range(count)]


def _object_steps(context: tuple[type, Sequence[Any], Sequence[str]], count: int) -> list[str]:
    _, members, names = context
    return [f".{name}" for name in (*(member.__name__ for member in members), *names)][:count]


def _named_steps(context: tuple[Any, Sequence[str]], count: int) -> list[str]:
    kind, extra = context
    return [f".{name}" for name in (*kind._fields, *extra)][:count]


def _rebuild_named(context: tuple[Any, Sequence[str]], children: list[Any]) -> object:
    """A named tuple without its `__new__`, which a subclass may have changed."""
    kind, extra = context
    if not extra:
        return tuple.__new__(kind, children)
    size = len(children) - len(extra)
    new = tuple.__new__(kind, children[:size])
    dict_of(new).update(zip(extra, children[size:], strict=True))
    return new


def _rebuild_object(
    context: tuple[type, Sequence[Any], Sequence[str]], children: list[Any]
) -> object:
    """A dataclass without `__init__` and `__post_init__`: they ran when the user made it."""
    kind, members, names = context
    new = object.__new__(kind)
    for member, child in zip(members, children, strict=False):  # those of __dict__ follow
        member.__set__(new, child)
    dict_of(new).update(zip(names, children[len(members) :], strict=True))
    return new


DICT = NodeKind(lambda keys, children: dict(zip(keys, children, strict=True)), _key_steps)
LIST = NodeKind(lambda _, children: children, _index_steps)
TUPLE = NodeKind(lambda _, children: tuple(children), _index_steps)
_ORDERED_DICT = NodeKind(
    lambda keys, children: OrderedDict(zip(keys, children, strict=True)), _key_steps
)
_DEFAULT_DICT = NodeKind(
    lambda context, children: defaultdict(context[0], zip(context[1], children, strict=True)),
    lambda context, count: _key_steps(context[1], count),
)
_DEQUE = NodeKind(lambda maxlen, children: deque(children, maxlen), _index_steps)
_NAMED_TUPLE = NodeKind(_rebuild_named, _named_steps)
_OBJECT = NodeKind(_rebuild_object, _object_steps)
_REGISTERED = NodeKind(
    lambda context, children: context[0](children, context[1]),
    lambda context, count: context[2],
)
