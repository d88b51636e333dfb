"""Turn a tree of records into JSON tables, one table a type and one column a field, and back.

Rows are stored once however often they are named, and a column with few different entries is
stored as a dictionary column: the JSON of a large recording is several times smaller than a list
of objects. Decoding follows the fields' type hints, so a file that does not fit them is refused by
name of type and field.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import types
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NewType, Union, cast, get_args, get_origin, get_type_hints

from .record import Record, field_names

__all__ = ["MisfitError", "decode", "encode"]

Json = Any
Tables = dict[str, dict[str, Json]]
_SPELT_OUT = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, "-0.0": -0.0}


def encode(
    root: Record, put_bytes: Callable[[Record, str, bytes], str | None]
) -> tuple[Tables, int]:
    """Return (tables, row of `root` in its own type's table).

    put_bytes  called with (record, field, bytes); may store them elsewhere and return the text
               that stands for them, which must start with "@"; on None they are kept in the table
               as base64
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
        held = type(value).__name__
        message = f"{type(record).__name__}.{name} holds a {held}, which no recording stores"
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
    """Inverse of `encode`; time and memory are bounded by the size of the tables.

    get_bytes  called with a text that starts with "@", returns what `put_bytes` stored

    A field without a column gets its default (an older release did not know it). Raises MisfitError
    that names the type and field which does not fit.
    """
    built: dict[tuple[str, int], Record] = {}
    columns: dict[str, dict[str, _Column]] = {}

    def record_of(kind: type[Record], index: Json) -> Record:
        key = (kind.__name__, _number(index))
        if key not in built:
            if kind.__name__ not in columns:
                columns[kind.__name__] = _columns(kind, tables.get(kind.__name__))
            fields: dict[str, object] = {}
            for name, column in columns[kind.__name__].items():
                try:
                    fields[name] = column.value(index, _hints(kind)[name], value_of)
                except MisfitError:
                    raise  # it names the field that it met, further in
                except _MISFITS as error:
                    message = f"{kind.__name__}.{name} does not fit"
                    raise MisfitError(message) from error
            built[key] = kind(**fields)
        return built[key]

    def value_of(hint: object, raw: Json) -> object:
        if raw is None:
            if type(None) not in _choices(hint):
                raise TypeError(raw)
            return None
        kinds = _kinds(hint)
        if len(kinds) > 1:
            name, index = raw
            return record_of({kind.__name__: kind for kind in kinds}[name], index)
        if get_origin(kinds[0]) is tuple:
            inner = get_args(kinds[0])[0]
            return tuple(value_of(inner, item) for item in _list(raw))
        if isinstance(kinds[0], NewType):
            return _number(raw)
        if issubclass(kinds[0], Record):
            return record_of(kinds[0], raw)
        return _scalar(kinds[0], raw, get_bytes)

    try:
        return record_of(kind, index)
    except MisfitError:
        raise
    except _MISFITS as error:
        message = f"it does not hold what its own tables promise ({type(error).__name__}: {error})"
        raise MisfitError(message) from error


class MisfitError(ValueError):
    """An entry does not fit its field; the message names the type and the field."""


_MISFITS = (LookupError, TypeError, ValueError, OverflowError, RecursionError)


class _Column:
    """A column as it was packed: each different entry is decoded once, and `count` is a claim."""

    def __init__(self, packed: Json) -> None:
        self.numbers: list[int] | None = None
        self.is_same = False
        if isinstance(packed, list):
            self.entries = _list(packed)
            self.count = len(self.entries)
        elif "all" in packed:
            self.entries, self.count, self.is_same = [packed["all"]], _number(packed["count"]), True
        else:
            self.entries = _list(packed["of"])
            self.numbers = [_number(number) for number in _list(packed["at"])]
            self.count = len(self.numbers)
        self.decoded: dict[int, object] = {}

    def value(self, index: int, hint: object, value_of: Callable[[object, Json], object]) -> object:
        """The decoded entry of a row."""
        if index >= self.count:
            raise IndexError(index)
        number = 0 if self.is_same else self.numbers[index] if self.numbers else index
        if number not in self.decoded:
            self.decoded[number] = value_of(hint, self.entries[number])
        return self.decoded[number]


def _columns(kind: type[Record], table: Json) -> dict[str, _Column]:
    """The columns of a table, by field; a field without a column has its default."""
    if not isinstance(table, dict):
        message = f"it has no table {kind.__name__}"
        raise MisfitError(message)
    packed = cast("dict[str, Json]", table)
    if unknown := packed.keys() - set(field_names(kind)):
        message = f"{kind.__name__} has no field {min(unknown)!r}"
        raise MisfitError(message)
    for field in dataclasses.fields(cast("Any", kind)):
        if field.name not in packed and field.default is dataclasses.MISSING:
            message = f"{kind.__name__}.{field.name} is missing"
            raise MisfitError(message)
    columns: dict[str, _Column] = {}
    for name, entries in packed.items():
        try:
            columns[name] = _Column(entries)
        except _MISFITS as error:
            message = f"{kind.__name__}.{name} is no column"
            raise MisfitError(message) from error
    if len({column.count for column in columns.values()}) > 1:
        message = f"the columns of {kind.__name__} differ in length"
        raise MisfitError(message)
    return columns


def _number(raw: Json) -> int:
    """A row, an id or a count: an int of 0 or more."""
    if not isinstance(raw, int) or isinstance(raw, bool):
        raise TypeError(raw)
    if raw < 0:
        raise IndexError(raw)
    return raw


def _list(raw: Json) -> list[Json]:
    if not isinstance(raw, list):
        raise TypeError(raw)
    return cast("list[Json]", raw)


def _scalar(kind: type, raw: Json, get_bytes: Callable[[str], bytes]) -> object:
    if kind is float:
        if isinstance(raw, bool):
            raise TypeError(raw)
        return _SPELT_OUT[raw] if isinstance(raw, str) else float(raw)
    if not isinstance(raw, str if kind is bytes else kind) or (
        kind is int and isinstance(raw, bool)
    ):
        raise TypeError(raw)
    if kind is bytes:
        return get_bytes(raw) if raw.startswith("@") else base64.b64decode(raw, validate=True)
    return raw


def _text_of_float(value: float) -> float | str:
    """NaN and Inf, which strict JSON lacks, as words; and -0.0, which as a row equals 0.0."""
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return "-0.0" if value == 0 and math.copysign(1, value) < 0 else value


def _pack(column: Iterable[Json]) -> Json:
    """The shortest: a list, {"all": entry, "count": n}, or {"of": entries, "at": their numbers}."""
    entries = list(column)
    numbers: dict[str, int] = {}
    at = [numbers.setdefault(json.dumps(entry), len(numbers)) for entry in entries]
    if len(numbers) == 1 and len(entries) > 1:
        return {"all": entries[0], "count": len(entries)}
    plain = sum(map(len, map(json.dumps, entries)))
    if sum(map(len, numbers)) + sum(len(str(number)) for number in at) + 14 < plain:
        return {"of": [json.loads(text) for text in numbers], "at": at}
    return entries


@cache
def _hints(kind: type[Record]) -> dict[str, object]:
    return get_type_hints(kind)


def _choices(hint: object) -> list[Any]:
    """The members of a union, or the type itself."""
    return list(get_args(hint)) if get_origin(hint) in (Union, types.UnionType) else [hint]


def _kinds(hint: object) -> list[Any]:
    """The types that an entry may have, None left out."""
    return [choice for choice in _choices(hint) if choice is not type(None)]


@cache
def _is_choice(kind: type[Record], name: str) -> bool:
    """The field may hold records of more than one type, so an entry must name its type."""
    kinds = _kinds(_hints(kind)[name])
    if get_origin(kinds[0]) is tuple:
        kinds = _kinds(get_args(kinds[0])[0])
    return len(kinds) > 1
