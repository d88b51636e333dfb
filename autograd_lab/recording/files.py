"""Turn a record into one strict JSON file and back, large values in a .safetensors file beside it.

No pickle.
"""

from __future__ import annotations

import hashlib
import json
import os
import reprlib
import threading
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from autograd_lab.errors import (
    DamagedFileError,
    ForeignFileError,
    MissingValuesError,
    NewerSchemaError,
    OutputError,
)

from .columns import MisfitError, decode, encode
from .record import Record
from .tensors import Values

__all__ = ["damaged", "read_record", "write_record"]

FORMAT = "autograd_lab"
LARGE_NBYTES = 64_000
R = TypeVar("R", bound=Record)


def write_record(record: Record, path: str | os.PathLike[str], schema_version: int) -> Path:
    """Write `path` and, when some values are larger than 64 kB, a .safetensors file beside it.

    Each file is written whole under another name first. The values file carries the JSON's name and
    its own hash in its name (`step.json.1f0c9a3e.safetensors`), so the old one stays until the new
    JSON stands: a crash leaves the old recording whole.
    Returns the path. Raises OutputError where the folder does not exist.
    """
    path = Path(path)
    if not path.parent.is_dir():
        message = (
            f"{path.name} can't be written: there is no folder {path.parent}.\n"
            "Saving makes files, not folders.\n"
            "Make the folder first, or give another path."
        )
        raise OutputError(message, path=str(path))
    large: dict[str, NDArray[Any]] = {}

    def put_bytes(owner: Record, field: str, data: bytes) -> str | None:
        if len(data) <= LARGE_NBYTES:
            return None
        name = f"{field}{len(large)}"
        is_array = isinstance(owner, Values)
        large[name] = _real_array(owner) if is_array else np.frombuffer(data, dtype=np.uint8)
        return f"@{name}"

    tables, index = encode(record, put_bytes)
    document: dict[str, Any] = {
        "format": FORMAT,
        "kind": type(record).__name__,
        "schema": schema_version,
    }
    old_values, new_values = _values_beside(path), None
    if large:
        blob = save_tensors(large)
        sha256 = hashlib.sha256(blob).hexdigest()
        new_values = path.with_name(_values_name(path, sha256))
        document["values"] = {"file": new_values.name, "sha256": sha256}
        _replace(new_values, blob)
    document |= {"root": index, "tables": tables}
    text = json.dumps(document, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    try:
        _replace(path, text.encode("ascii"))
    except BaseException:
        old_values, new_values = new_values, old_values  # the old recording still stands
        raise
    finally:
        if old_values and old_values != new_values:
            old_values.unlink(missing_ok=True)
    return path


def read_record(kind: type[R], path: str | os.PathLike[str], schema_version: int) -> R:
    """Read what `write_record` wrote.

    Raises ForeignFileError, DamagedFileError, NewerSchemaError, MissingValuesError, and
    FileNotFoundError where there is no file.
    """
    path = Path(path)
    document = _parse(path, path.read_bytes())
    if document.get("format") != FORMAT or document.get("kind") != kind.__name__:
        says = f"format {_short(document.get('format'))} and kind {_short(document.get('kind'))}"
        message = (
            f"{path.name} is not a {kind.__name__} of autograd_lab.\n"
            f"It is JSON, but says {says}.\n"
            "Give a file that .save() wrote."
        )
        raise ForeignFileError(message, path=str(path))
    schema = document.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise damaged(path, f"its schema version is {_short(schema)}")
    if schema > schema_version:
        message = (
            f"{path.name} was written by a newer autograd_lab.\n"
            f"It has schema version {_short(schema)}; this release reads up to {schema_version}.\n"
            "Update with: pip install -U autograd-lab"
        )
        raise NewerSchemaError(message, path=str(path), schema=schema, newest=schema_version)
    large = _read_values(path, document["values"]) if "values" in document else {}

    def get_bytes(text: str) -> bytes:
        return large[text[1:]].tobytes()

    tables, index = document.get("tables"), document.get("root")
    if not isinstance(tables, dict) or not isinstance(index, int):
        raise damaged(path, "its tables are missing")
    try:
        record = decode(kind, cast("dict[str, Any]", tables), index, get_bytes)
    except MisfitError as error:
        raise damaged(path, str(error)) from error
    assert isinstance(record, kind)
    return record


def _short(value: object) -> str:
    return reprlib.repr(value)


def _values_name(path: Path, sha256: str) -> str:
    """The whole name: `step.json` and `step` with equal values would else share one file."""
    return f"{path.name}.{sha256[:8]}.safetensors"


def _values_beside(path: Path) -> Path | None:
    """The values file of the recording that stands at `path`; None where none is surely ours."""
    try:
        match json.loads(path.read_bytes()):
            case {"format": "autograd_lab", "values": {"file": str(file), "sha256": str(sha256)}}:
                return path.with_name(file) if file == _values_name(path, sha256) else None
            case _:
                return None
    except (OSError, ValueError, RecursionError):
        return None


def _real_array(values: Values) -> NDArray[Any]:
    """The numbers as safetensors can hold them: complex as pairs of reals, in a last axis of 2."""
    array = np.ascontiguousarray(values.array)
    if array.dtype.kind != "c":
        return array
    real = np.dtype(f"<f{array.dtype.itemsize // 2}")
    return array.view(real).reshape(*array.shape, 2)


def _parse(path: Path, data: bytes) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        message = f"{constant} is not strict JSON"
        raise ValueError(message)

    try:
        document = json.loads(data, parse_constant=refuse)
    except (ValueError, RecursionError) as error:  # bad UTF-8 and bad JSON are ValueErrors
        if data[:200].lstrip().startswith(b"{") and f'"{FORMAT}"'.encode() in data[:200]:
            raise damaged(path, f"it ends or breaks off early ({error})") from error
        message = (
            f"{path.name} is not a recording of autograd_lab.\n"
            f"It can't be read as JSON: {error}.\n"
            "Give a file that .save() wrote."
        )
        raise ForeignFileError(message, path=str(path)) from error
    return cast("dict[str, Any]", document) if isinstance(document, dict) else {}


def _read_values(path: Path, entry: object) -> dict[str, NDArray[Any]]:
    match entry:
        case {"file": str(name), "sha256": str(sha256)} if name and Path(name).name == name:
            values_path = path.with_name(name)
        case _:
            raise damaged(path, "its entry for the values file does not name a file beside it")
    if not _is_file(values_path):
        message = (
            f"The values of {path.name} are missing: there is no {name[:99]} beside it.\n"
            "Tensors over 64 kB are kept in that file.\n"
            "Move both files together."
        )
        raise MissingValuesError(message, path=str(path), values=name)
    blob = values_path.read_bytes()
    if hashlib.sha256(blob).hexdigest() != sha256:
        message = (
            f"{name} does not belong to {path.name}.\n"
            "Its hash differs from the one that the recording names: "
            "it is another recording's, or it was changed.\n"
            "Move both files together, or record again."
        )
        raise MissingValuesError(message, path=str(path), values=name)
    try:
        return load_tensors(blob)
    except (SafetensorError, KeyError) as error:  # KeyError: a dtype that numpy lacks
        raise damaged(values_path, str(cast("object", error))) from error


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long, or one that no file can have
        return False


def damaged(path: Path, why: str) -> DamagedFileError:
    """The error for a file that was a recording once."""
    message = (
        f"{path.name} is damaged: {why}.\n"
        "It was a recording of autograd_lab once.\n"
        "Record again, or take it from a backup."
    )
    return DamagedFileError(message, path=str(path))


def _replace(path: Path, data: bytes) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
