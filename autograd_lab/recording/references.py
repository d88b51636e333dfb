"""Turn a recording that was read from a file into the first thing in it that points nowhere."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, cast, get_args, get_type_hints

from .graph import NodeId, OpId
from .record import Record
from .tensors import TensorId, Values

if TYPE_CHECKING:
    from .recording import Recording

__all__ = ["broken_reference"]


def broken_reference(recording: Recording) -> str | None:
    """What is wrong, in a few words: an id without its record, numbers that don't fill their shape.

    Ids are positions, so a wrong one would only be met when somebody steps there.
    """
    counts: dict[object, int] = {
        NodeId: len(recording.nodes),
        OpId: len(recording.ops),
        TensorId: len(recording.tensors),
    }
    for name, table in {"nodes": recording.nodes, "ops": recording.ops}.items():
        if [record.id for record in table] != list(range(len(table))):
            return f"its {name} are not in the order of their ids"
    if [tensor.id for tensor in recording.tensors] != list(range(len(recording.tensors))):
        return "its tensors are not in the order of their ids"
    seen: set[int] = set()
    stack: list[Record] = [recording]
    while stack:
        record = stack.pop()
        if id(record) in seen:
            continue
        seen.add(id(record))
        if isinstance(record, Values) and not _fills_its_shape(record):
            return f"Values of shape {record.shape} hold {record.nbytes} bytes of {record.dtype}"
        for name, kind in _fields(type(record)):
            value = getattr(record, name)
            if isinstance(value, tuple):
                if id(cast("object", value)) in seen:
                    continue
                seen.add(id(cast("object", value)))
            for item in cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,):
                if isinstance(item, Record):
                    stack.append(item)
                elif kind is not None and item is not None and not 0 <= item < counts[kind]:
                    return f"{type(record).__name__}.{name} names {item}, which is not there"
    return None


def _fills_its_shape(values: Values) -> bool:
    try:
        return min(values.shape, default=0) >= 0 and values.array.nbytes == values.nbytes
    except (TypeError, ValueError):
        return False


@cache
def _fields(kind: type[Record]) -> tuple[tuple[str, object], ...]:
    """The fields that may hold records (with None) or ids (with the id's type)."""
    found: list[tuple[str, object]] = []
    for name, hint in get_type_hints(kind).items():
        parts = _parts(hint)
        ids = [part for part in parts if part in (NodeId, OpId, TensorId)]
        if ids or any(isinstance(part, type) and issubclass(part, Record) for part in parts):
            found.append((name, ids[0] if ids else None))
    return tuple(found)


def _parts(hint: object) -> list[Any]:
    """All types that a hint is made of."""
    inner = get_args(hint)
    return [part for one in inner for part in _parts(one)] if inner else [hint]
