"""Turn a tree into (its tensors, a spec of all the rest) and back, without recursion.

A spec lists the tree's entries in the order in which they are met (preorder). Read backwards, the
children of a container lie ready on a stack when the container comes, so trees of any depth are
rebuilt in one loop; read forwards, it spells the path to each entry.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from torch import Tensor

from autograd_lab.errors import EndlessTreeError, PytreeError

from .hidden import refuse_hidden
from .nodes import ATOMS, DICT, LIST, PLAIN_KEYS, TUPLE, open_node

__all__ = [
    "TreeSpec",
    "flatten_tree",
    "leaves_of",
    "rebuild_tree",
    "tensor_count",
    "tensor_paths",
    "unflatten_tree",
]

TreeSpec: TypeAlias = int | tuple[Any, ...]
"""All of a tree but its tensors; immutable, and opaque to its users.

An int n stands for a plain tuple of n plain tensors. Else it is a tuple of entries, in preorder:
None for a tensor, (value,) for another leaf, (NodeKind, context, number of children) for a
container.
"""

SUSPICIOUS = 10_000  # entries, then it is asked once whether the tree ends
MOST = 1_000_000


def flatten_tree(tree: object, *, search: bool = True) -> tuple[tuple[Tensor, ...], TreeSpec]:
    """Take a tree apart: its tensors in order, and a spec of all the rest.

    Walked are dict (in insertion order), list, tuple, OrderedDict, defaultdict, deque, named
    tuples, dataclasses and types registered with torch's pytree, in any nesting and depth. Any
    other object is a leaf and stays the same object. Nothing is mutated; a tensor that occurs
    twice is listed twice.

    search  False leaves the leaves unsearched for hidden tensors

    Raises HiddenTensorError for a leaf that holds tensors, by its path; EndlessTreeError for a
    container that holds itself, and above a million entries.
    Source: torch/_custom_op/autograd.py (BSD-3) and torch.utils._pytree for what is a container.

    >>> import torch
    >>> tensors, spec = flatten_tree({"w": torch.ones(2), "k": [3.0, torch.zeros(1)]})
    >>> len(tensors)
    2
    >>> unflatten_tree(spec, ("one", "other"))
    {'w': 'one', 'k': [3.0, 'other']}
    """
    if type(tree) is tuple:
        for value in tree:
            if type(value) is not Tensor:
                break
        else:
            return tree, len(tree)
    tensors: list[Tensor] = []
    spec: list[Any] = []
    pending: list[Any] = [tree]
    most = SUSPICIOUS
    while pending:
        value: Any = pending.pop()
        kind = type(value)
        if kind is Tensor:
            tensors.append(value)
            spec.append(None)
        elif kind in ATOMS:
            spec.append((value,))
        elif kind is dict and PLAIN_KEYS.issuperset(map(type, value)):
            spec.append((DICT, tuple(value), len(value)))  # here, not by open_node: 1.5x faster
            pending.extend(reversed(value.values()))
        elif kind is list or kind is tuple:
            spec.append((LIST if kind is list else TUPLE, None, len(value)))
            pending.extend(reversed(value))
        elif issubclass(kind, Tensor):
            tensors.append(value)
            spec.append(None)
        else:
            node = open_node(value)
            if node is None:
                if search:
                    refuse_hidden(_path_after(spec), value, "", value)
                spec.append((value,))
            else:
                if node.part and search:
                    refuse_hidden(_path_after(spec), value, node.part, node.searched)
                spec.append((node.kind, node.context, len(node.children)))
                pending.extend(reversed(node.children))
        if len(spec) > most:
            _refuse_endless(tree)
            most = sys.maxsize
    return tuple(tensors), tuple(spec)


def unflatten_tree(spec: TreeSpec, tensors: Sequence[Any]) -> Any:  # noqa: ANN401 (any tree)
    """Inverse of `flatten_tree`: build the tree anew around the tensors.

    Containers are new objects of the same types; other leaves are the same objects. Dataclasses and
    named tuples are filled without their `__init__`, `__post_init__` or `__new__`; a type
    registered with torch's pytree is rebuilt by its `unflatten_fn`. Nothing is mutated. `tensors`
    may be any values, such as names or gradients.

    Raises PytreeError where their number differs from the spec's.
    Source: as `flatten_tree`.

    >>> import torch
    >>> _, spec = flatten_tree((torch.ones(2), torch.ones(3)))
    >>> unflatten_tree(spec, ["a", "b"])
    ('a', 'b')
    """
    count = tensor_count(spec)
    if len(tensors) != count:
        message = (
            f"The spec is of a tree with {count} tensors, but {len(tensors)} were given.\n"
            "It was given to unflatten_tree.\n"
            "Give one for each tensor that flatten_tree returned."
        )
        raise PytreeError(message, expected=count, got=len(tensors))
    return rebuild_tree(spec, tensors)


def tensor_paths(spec: TreeSpec) -> tuple[str, ...]:
    """Paths of a tree's tensors in Python's spelling, in order; "" for a tree that is a tensor.

    Nothing is mutated and nothing raised.
    Source: as `flatten_tree`; registered types are spelled by their `flatten_with_keys_fn`.

    >>> import torch
    >>> _, spec = flatten_tree({"w": torch.ones(2), "cache": [None, (torch.ones(1),)]})
    >>> tensor_paths(spec)
    ("['w']", "['cache'][1][0]")
    """
    return tuple(path for path, entry in leaves_of(spec) if entry is None)


def leaves_of(spec: TreeSpec) -> Iterator[tuple[str, tuple[Any] | None]]:
    """Yield (path, None) for each tensor and (path, (value,)) for each other leaf, in order."""
    entries = _entries(spec)
    for entry, link in zip(entries, _links(entries), strict=False):  # a next one may be announced
        if entry is None or len(entry) == 1:
            yield _text_of(link), entry


def tensor_count(spec: TreeSpec) -> int:
    """Number of tensors in the tree."""
    return spec if isinstance(spec, int) else spec.count(None)


def rebuild_tree(spec: TreeSpec, tensors: Sequence[Any]) -> Any:  # noqa: ANN401 (any tree)
    """Build a tree around exactly `tensor_count(spec)` tensors."""
    if isinstance(spec, int):
        return tuple(tensors)
    left = len(tensors)
    values: list[Any] = []
    for entry in reversed(spec):
        if entry is None:
            left -= 1
            values.append(tensors[left])
        elif len(entry) == 1:
            values.append(entry[0])
        else:
            kind, context, count = entry
            start = len(values) - count
            children = values[start:]
            children.reverse()
            del values[start:]
            values.append(kind.rebuild(context, children))
    return values[0]


_Link: TypeAlias = "tuple[str, _Link] | None"  # last step of a path, and the way to it


def _entries(spec: TreeSpec) -> Sequence[Any]:
    return ((TUPLE, None, spec), *[None] * spec) if isinstance(spec, int) else spec


def _links(entries: Sequence[Any]) -> Iterator[_Link]:
    """Yield the way to each entry of a spec or of the beginning of one, then to the next entry."""
    pending: list[_Link] = [None]
    for entry in entries:
        link = pending.pop()
        yield link
        if entry is not None and len(entry) == 3:
            kind, context, count = entry
            pending += reversed([(step, link) for step in kind.steps(context, count)])
    if pending:
        yield pending[-1]


def _text_of(link: _Link) -> str:
    steps: list[str] = []
    while link is not None:
        step, link = link
        steps.append(step)
    return "".join(reversed(steps))


def _path_after(spec: Sequence[Any]) -> str:
    """The path to the entry that comes next, `saved` standing for the tree."""
    *_, link = _links(spec)
    return _shown(_text_of(link))


def _shown(path: str) -> str:
    return f"saved{path}" if len(path) <= 200 else f"saved{path[:100]}…{path[-100:]}"


def _refuse_endless(tree: object) -> None:
    """Raise where a container holds itself, or the tree has over a million entries."""
    pending: list[tuple[Any, _Link]] = [(tree, None)]
    # open containers, by id: path, children left to visit, and itself, so that its id stays its own
    trail: dict[int, list[Any]] = {}
    visited = 0
    while pending:
        value, link = pending.pop()
        while trail:
            holder = next(reversed(trail))
            if trail[holder][1]:
                trail[holder][1] -= 1
                break
            del trail[holder]
        if id(value) in trail:
            path, again = _shown(_text_of(trail[id(value)][0])), _shown(_text_of(link))
            message = (
                f"{path} is a {type(value).__name__} that holds itself, as {again}.\n"
                "Such a tree has no end, so it can't be saved.\n"
                "Save it without that part."
            )
            raise EndlessTreeError(message, path=path, again=again)
        visited += 1
        if visited > MOST:
            message = (
                f"The tree has more than {MOST} entries.\n"
                f"The last one looked at is {_shown(_text_of(link))}; a container that is held in "
                "many places counts in each.\n"
                "Save the tensors that backward needs, and no more."
            )
            raise EndlessTreeError(message, entries=visited)
        node = open_node(value)
        if node is not None:
            steps: Iterable[str] = node.kind.steps(node.context, len(node.children))
            pairs = zip(steps, node.children, strict=True)
            trail[id(value)] = [link, len(node.children), value]
            pending += reversed([(child, (step, link)) for step, child in pairs])
