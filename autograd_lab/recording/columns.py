"""Turn a tree of records into JSON tables, one table a type and one column a field, and back.

Rows are stored once however often they are named, and a column with few different entries is
stored as a dictionary
column; the JSON of a large recording is several times smaller than a list of objects. Decoding
follows the fields' type
hints, so a file that does not fit them is refused by name of type and field.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import types
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from autograd_lab.errors import DamagedFileError

from .record import Record, field_names

__all__ = ["decode", "encode"]

Json = Any
Tables = dict[str, dict[str, Json]]
_NOT_A_NUMBER = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def encode(
    root: Record, put_bytes: Callable[[Record, str, bytes], str | None]
) -> tuple[Tables, int]:
    """Return (tables, row of `root` in its own type's table).

    put_bytes  called with (record, field, bytes); may store them elsewhere and return the text
               that stands for them,
               which must start with "@"; on None they are kept in the table as base64
    """
    rows: dict[type, dict[tuple[Json, ...], int]] = {}
    seen: dict[int, int] = {}

    def row_of(record: Record) -> int:
        if id(record) in seen:
            return seen[id(record)]
        row = tuple(
            entry(record, name, getattr(record, name)) for name in field_names(type(record))
        )
        table = rows.setdefault(type(record), {})
        seen[id(record)] = index = table.setdefault(row, len(table))
        return index

    def entry(record: Record, name: str, value: object) -> Json:
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return _text_of_float(value)
        if isinstance(value, tuple):
            return tuple(entry(record, name, item) for item in cast("tuple[object, ...]", value))
        if isinstance(value, bytes):
            return put_bytes(record, name, value) or base64.b64encode(value).decode("ascii")
        if isinstance(value, Record):
            index = row_of(value)
            return (type(value).__name__, index) if _is_choice(type(record), name) else index
        message = f"{type(record).__name__}.{name} holds a {type(value).__name__}, which no recording stores"
        raise TypeError(message)

    index = row_of(root)
    tables: Tables = {}
    for kind, table in rows.items():
        columns = zip(*table, strict=True)
        tables[kind.__name__] = {
            name: _pack(column) for name, column in zip(field_names(kind), columns, strict=True)
        }
    return tables, index


def decode(
    kind: type[Record], tables: Mapping[str, Json], index: int, get_bytes: Callable[[str], bytes]
) -> Record:
    """Inverse of `encode`.

    get_bytes  called with a text that starts with "@", returns what `put_bytes` stored
    Raises DamagedFileError that names the type and field which does not fit.
    """
    built: dict[tuple[str, int], Record] = {}
    columns: dict[str, tuple[list[str], list[list[Json]]]] = {}

    def record_of(kind: type[Record], index: object) -> Record:
        if not isinstance(index, int) or isinstance(index, bool):
            raise TypeError(index)
        key = (kind.__name__, index)
        if key not in built:
            if kind.__name__ not in columns:
                table = tables[kind.__name__]
                names = [name for name in field_names(kind) if name in table]
                columns[kind.__name__] = (names, [_unpack(table[name]) for name in names])
            names, lists = columns[kind.__name__]
            if index < 0:
                raise IndexError(index)
            fields: dict[str, Any] = {}
            for name, column in zip(names, lists, strict=True):
                with _naming(kind, name):
                    fields[name] = value_of(_hints(kind)[name], column[index])
            built[key] = kind(**fields)
        return built[key]

    def value_of(hint: object, raw: Json) -> object:
        choices = _choices(hint)
        if raw is None:
            if type(None) not in choices:
                raise TypeError(raw)
            return None
        choices = [choice for choice in choices if choice is not type(None)]
        if len(choices) > 1:
            name, index = raw
            return record_of(next(choice for choice in choices if choice.__name__ == name), index)
        (hint,) = choices
        if get_origin(hint) is tuple:
            inner = get_args(hint)[0]
            if not isinstance(raw, list):
                raise TypeError(raw)
            return tuple(value_of(inner, item) for item in raw)
        if isinstance(hint, type) and issubclass(hint, Record):
            return record_of(hint, raw)
        return _scalar(hint, raw, get_bytes)

    try:
        return record_of(kind, index)
    except (
        KeyError,
        IndexError,
        TypeError,
        ValueError,
        StopIteration,
        RecursionError,
        binascii.Error,
    ) as error:
        message = (
            f"The recording is damaged: {error.args[0] if error.args else error!r}.\n"
            f"It was being read as a {kind.__name__}; the file does not hold what its own tables promise.\n"
            "Record again, or take the file from a backup."
        )
        raise DamagedFileError(message, kind=kind.__name__) from error


class _naming:
    """Name the type and field in an error on its way out."""

    def __init__(self, kind: type, name: str) -> None:
        self.place = f"{kind.__name__}.{name}"

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(
            error, (KeyError, IndexError, TypeError, ValueError, StopIteration)
        ) and not isinstance(error, _Named):
            raise _Named(f"{self.place} does not fit") from error


class _Named(ValueError):
    """An error that already says where."""


def _scalar(hint: object, raw: Json, get_bytes: Callable[[str], bytes]) -> object:
    if hint is bytes:
        return get_bytes(raw) if raw.startswith("@") else base64.b64decode(raw, validate=True)
    if hint is float:
        return _NOT_A_NUMBER[raw] if isinstance(raw, str) else float(raw)
    if not isinstance(raw, cast("type", hint)) or (hint is int and isinstance(raw, bool)):
        raise TypeError(raw)
    return raw


def _text_of_float(value: float) -> float | str:
    if value != value:
        return "NaN"
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def _pack(column: Iterable[Json]) -> Json:
    """A list, or {"all": entry, "count": n}, or {"of": entries, "at": their numbers}, whichever is
    shortest.
    """
    entries = list(column)
    numbers: dict[str, int] = {}
    at = [numbers.setdefault(json.dumps(entry), len(numbers)) for entry in entries]
    if len(numbers) == 1 and len(entries) > 1:
        return {"all": entries[0], "count": len(entries)}
    plain = sum(map(len, map(json.dumps, entries)))
    if sum(map(len, numbers)) + sum(len(str(number)) for number in at) + 14 < plain:
        return {"of": [json.loads(text) for text in numbers], "at": at}
    return entries


def _unpack(column: Json) -> list[Json]:
    if isinstance(column, dict):
        packed = cast("dict[str, Json]", column)
        return (
            [packed["all"]] * packed["count"]
            if "all" in packed
            else [packed["of"][number] for number in packed["at"]]
        )
    return column


@cache
def _hints(kind: type[Record]) -> dict[str, object]:
    return {name: _without_newtypes(hint) for name, hint in get_type_hints(kind).items()}


def _without_newtypes(hint: object) -> object:
    """Int for TensorId, also inside tuples and unions."""
    if hasattr(hint, "__supertype__"):
        return _without_newtypes(cast("Any", hint).__supertype__)
    if get_origin(hint) is tuple:
        return tuple[_without_newtypes(get_args(hint)[0]), ...]  # pyright: ignore[reportInvalidTypeArguments]
    if get_origin(hint) in (Union, types.UnionType):
        return Union[tuple(_without_newtypes(choice) for choice in get_args(hint))]  # noqa: UP007 (built at run time)
    return hint


def _choices(hint: object) -> list[Any]:
    return list(get_args(hint)) if get_origin(hint) in (Union, types.UnionType) else [hint]


@cache
def _is_choice(kind: type[Record], name: str) -> bool:
    """The field may hold records of more than one type, so an entry must name its type."""
    (hint,) = [choice for choice in _choices(_hints(kind)[name]) if choice is not type(None)] or [
        None
    ]
    if get_origin(hint) is tuple:
        return (
            len([choice for choice in _choices(get_args(hint)[0]) if choice is not type(None)]) > 1
        )
    return False
