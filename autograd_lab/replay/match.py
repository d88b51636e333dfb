"""Turn what `run_until` was asked for into the steps of a recording at which it holds."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase

from autograd_lab.recording import (
    Event,
    GradAccumulated,
    GradNode,
    NodeFinished,
    NodeStarted,
    Op,
    OpCalled,
    Recording,
    Snapshot,
)

__all__ = [
    "known_modules",
    "known_names",
    "matching",
    "module_of",
    "names_of_node",
    "names_of_op",
    "near",
    "steps_where",
]


def steps_where(
    recording: Recording,
    *,
    after: int = 0,
    target: str | None = None,
    module: str | None = None,
    norm_over: float | None = None,
    nonfinite: bool = False,
    accumulate: bool = False,
    every_step: bool = False,
) -> Iterator[int]:
    """Yield the steps after step `after` at which all conditions of `Cursor.run_until` hold.

    every_step  look at all steps of an op or node, not only at its first
    """
    target = target.removesuffix(" +=") if target is not None else None  # as texts write x.grad +=
    names = matching(target, known_names(recording)) if target is not None else set[str]()
    if target is not None and not names and module is None:
        target, module = None, target
    modules = matching(module, known_modules(recording)) if module is not None else set[str]()
    every_step = every_step or norm_over is not None or nonfinite or accumulate
    for step, event in enumerate(recording.events[after:], start=after + 1):
        if not every_step and not isinstance(event, (OpCalled, NodeStarted)):
            continue
        if accumulate and not isinstance(event, GradAccumulated):
            continue
        if target is not None or module is not None:
            own_names, own_module = _subject_of(recording, event)
            if target is not None and names.isdisjoint(own_names):
                continue
            if module is not None and modules.isdisjoint(_with_ancestors(own_module)):
                continue
        values = _snapshots_of(event) if norm_over is not None or nonfinite else ()
        if norm_over is not None and not any(_is_over(value.norm, norm_over) for value in values):
            continue
        if nonfinite and not any(value.finite is False for value in values):
            continue
        yield step


def known_names(recording: Recording) -> set[str]:
    """Names of nodes, of ops and the variables that they made, of leaves and their `.grad`."""
    names = {name for op in recording.ops for name in names_of_op(recording, op)}
    names.update(name for node in recording.nodes for name in names_of_node(recording, node))
    return names


def names_of_op(recording: Recording, op: Op) -> tuple[str, ...]:
    """What a call goes by: its name, its full name, the variables that hold what it returned."""
    made = (recording.tensors[tensor].name for tensor in op.outputs)
    return (op.name, op.qualname, *(name for name in made if name))


def names_of_node(recording: Recording, node: GradNode) -> tuple[str, ...]:
    """What a node goes by: its name with and without namespace, its leaf and that one's `.grad`."""
    leaf = recording.tensors[node.leaf].name if node.leaf is not None else None
    return (node.name, node.short_name, *((leaf, f"{leaf}.grad") if leaf else ()))


def known_modules(recording: Recording) -> set[str]:
    """Paths of the modules in which something ran, and of those around them."""
    paths = {op.module for op in recording.ops}
    paths.update(module_of(recording, node) for node in recording.nodes)
    return {path for inner in paths for path in _with_ancestors(inner)}


def matching(pattern: str, names: Iterable[str]) -> set[str]:
    """Names that equal or match the glob `pattern`; case is ignored only where nothing fits."""
    names = set(names)
    tests: tuple[Callable[[str], bool], ...] = (
        lambda name: name == pattern or fnmatchcase(name, pattern),
        lambda name: fnmatchcase(name.lower(), pattern.lower()),
    )
    fits = ({name for name in names if test(name)} for test in tests)
    return next(filter(None, fits), set[str]())


def near(pattern: str, names: Iterable[str]) -> tuple[str, ...]:
    """Up to five names that look like `pattern`, nearest first."""
    by_lower = {name.lower(): name for name in sorted(set(names), reverse=True) if name}
    wanted = pattern.lower().strip("*")
    inside = [name for name in sorted(by_lower) if wanted and wanted in name]
    alike = difflib.get_close_matches(wanted, by_lower, n=5, cutoff=0.3)
    return tuple(by_lower[name] for name in list(dict.fromkeys([*inside, *alike]))[:5])


def module_of(recording: Recording, node: GradNode) -> str | None:
    """The module path of a node; of an AccumulateGrad the module that holds its parameter."""
    if node.module is not None or node.leaf is None:
        return node.module
    leaf = recording.tensors[node.leaf]
    return leaf.name.rpartition(".")[0] if leaf.name and leaf.is_parameter else None


def _subject_of(recording: Recording, event: Event) -> tuple[tuple[str, ...], str | None]:
    """(names, module path) of the op or node that an event is about, else ((), None)."""
    match event:
        case OpCalled():
            op = recording.ops[event.op]
            return names_of_op(recording, op), op.module
        case NodeStarted() | NodeFinished() | GradAccumulated():
            node = recording.nodes[event.node]
            return names_of_node(recording, node), module_of(recording, node)
        case _:
            return (), None


def _snapshots_of(event: Event) -> tuple[Snapshot, ...]:
    """The values that an event brought."""
    match event:
        case OpCalled():
            found: Iterable[Snapshot | None] = event.outputs
        case NodeStarted():
            found = event.grad_outputs
        case NodeFinished():
            found = event.grad_inputs
        case GradAccumulated():
            found = (event.added, event.after)
        case _:
            found = ()
    return tuple(snapshot for snapshot in found if snapshot is not None)


def _with_ancestors(module: str | None) -> tuple[str, ...]:
    """The path itself and those of the modules around it: "a.b" gives "a.b", "a" and ""."""
    if module is None:
        return ()
    parts = module.split(".") if module else []
    return tuple(".".join(parts[:count]) for count in range(len(parts), -1, -1))


def _is_over(norm: float | None, bound: float) -> bool:
    return norm is not None and not norm <= bound  # a NaN is over every bound
