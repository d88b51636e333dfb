"""A file that is not a whole recording gets a clear error that names it, and nothing else."""

from __future__ import annotations

import copy
import hashlib
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from autograd_lab.errors import (
    DamagedFileError,
    ForeignFileError,
    MissingValuesError,
    NewerSchemaError,
)
from autograd_lab.recording import Recording, load_recording
from autograd_lab.recording.files import read_record
from tests.recording import samples

BYTES = {}


def bytes_of(make, folder):
    """What a sample's JSON looks like; made once."""
    if make not in BYTES:
        BYTES[make] = make().save(folder / "original.json").read_bytes()
    return BYTES[make]


@pytest.fixture
def document(tmp_path):
    """The document of a small recording, to be spoiled."""
    return json.loads(samples.small().save(tmp_path / "whole.json").read_bytes())


@pytest.fixture
def large(tmp_path):
    """A saved recording with a values file: (JSON, values)."""
    path = samples.large().save(tmp_path / "step.json")
    return path, tmp_path / json.loads(path.read_bytes())["values"]["file"]


def write(path, document):
    path.write_text(json.dumps(document), encoding="ascii")
    return path


def refused(path, error, words=None):
    """Load, demand exactly this error, and return its message, which names the file."""
    before = path.read_bytes()
    with pytest.raises(error, match=words) as caught:
        load_recording(path)
    assert type(caught.value) is error
    assert path.name in str(caught.value)
    assert len(str(caught.value)) < 1_000
    assert caught.value.facts["path"]
    assert path.read_bytes() == before
    return str(caught.value)


def load_or_refuse(path):
    """Any exception but ours passes through."""
    try:
        hash(load_recording(path))
        said = path.name
    except ForeignFileError as error:
        said = str(error)
    assert path.name in said


FOREIGN = {
    "empty": b"",
    "text": b"loss = 0.3\n",
    "binary": bytes(range(256)) * 8,
    "gzip": b"\x1f\x8b\x08\x00" + bytes(20),
    "half UTF-8": b'{"name": "\xff\xfe"}',
    "JSON list": b"[1, 2]",
    "JSON number": b"3",
    "JSON null": b"null",
    "foreign JSON": b'{"nbformat": 4, "cells": []}',
    "foreign format": b'{"format": "else", "kind": "Recording", "schema": 1}',
    "format of wrong type": b'{"format": [' + b"1," * 9_000 + b"1]}",
    "other kind": b'{"format": "autograd_lab", "kind": "TrainingLog", "schema": 1}',
    "deep": b"[" * 100_000,
    "long number": b"1" * 100_000,
    "NaN": b"NaN",
}


@pytest.mark.parametrize("name", list(FOREIGN))
def test_a_foreign_file_is_refused_as_foreign(name, tmp_path):
    path = tmp_path / "step.json"
    path.write_bytes(FOREIGN[name])
    refused(path, ForeignFileError, "not a")


@pytest.mark.parametrize("tenths", range(1, 10), ids=lambda n: f"{n}/10")
def test_a_truncated_file_is_refused_as_damaged(tenths, tmp_path):
    data = bytes_of(samples.small, tmp_path)
    path = tmp_path / "step.json"
    path.write_bytes(data[: len(data) * tenths // 10])
    refused(path, DamagedFileError, "breaks off")


@given(length=st.integers(min_value=0, max_value=5_000))
@settings(deadline=None, max_examples=60)
def test_a_file_truncated_anywhere_is_refused(length, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    data = bytes_of(samples.small, folder)
    path = folder / "cut.json"
    path.write_bytes(data[: min(length, len(data) - 1)])
    with pytest.raises(ForeignFileError, match=r"cut\.json"):
        load_recording(path)


@given(
    flips=st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 255)), min_size=1, max_size=4)
)
@settings(deadline=None, max_examples=300)
def test_flipped_bytes_give_a_recording_or_a_clear_error(flips, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    data = bytearray(bytes_of(samples.small, folder))
    for place, mask in flips:
        data[place % len(data)] ^= mask
    path = folder / "flipped.json"
    path.write_bytes(data)
    load_or_refuse(path)


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "NaN", "@data0", "OpCalled", "ü"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["all", "count", "of", "at", "id"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value, path=()):
    """Every place in a document."""
    yield path
    if isinstance(value, list):
        value = dict(enumerate(value))
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield from places(inner, (*path, key))


def put(document, path, junk):
    """A copy of a document with something else at one place."""
    document = copy.deepcopy(document)
    target = document
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = junk
    return document


@given(data=st.data(), junk=JUNK)
@settings(deadline=None, max_examples=300)
def test_junk_at_any_place_gives_a_recording_or_a_clear_error(data, junk, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    document = json.loads(bytes_of(samples.small, folder))
    where = data.draw(st.sampled_from([place for place in places(document) if place]))
    path = write(folder / "junk.json", put(document, where, junk))
    load_or_refuse(path)


HUGE = 10**400
SPOILED = {
    "no tables": (("tables",), None),
    "tables are a list": (("tables",), []),
    "no schema": (("schema",), None),
    "schema is true": (("schema",), True),
    "schema is 0": (("schema",), 0),
    "schema is text": (("schema",), "1"),
    "root is text": (("root",), "0"),
    "root is true": (("root",), True),
    "root is negative": (("root",), -1),
    "root is no row": (("root",), 7),
    "root is huge": (("root",), HUGE),
    "table is a list": (("tables", "Edge"), []),
    "table is null": (("tables", "Edge"), None),
    "column is text": (("tables", "Edge", "node"), "1"),
    "column is null": (("tables", "Edge", "node"), None),
    "column is too short": (("tables", "Edge", "node"), []),
    "column is too long": (("tables", "Edge", "node"), [1, 1]),
    "column without count": (("tables", "Edge", "node"), {"all": 1}),
    "column with negative count": (("tables", "Edge", "node"), {"all": 1, "count": -1}),
    "column with huge count": (("tables", "Edge", "node"), {"all": 1, "count": HUGE}),
    "column with count true": (("tables", "Edge", "node"), {"all": 1, "count": True}),
    "entry number negative": (("tables", "Edge", "node"), {"of": [1], "at": [-1]}),
    "entry number too large": (("tables", "Edge", "node"), {"of": [1], "at": [1]}),
    "id is negative": (("tables", "Edge", "node"), [-1]),
    "id is no position": (("tables", "Edge", "node"), [2]),
    "id is huge": (("tables", "Edge", "node"), [HUGE]),
    "id is true": (("tables", "Edge", "node"), [True]),
    "id is 1.0": (("tables", "Edge", "node"), [1.0]),
    "int is null": (("tables", "Edge", "input"), [None]),
    "ids are not positions": (("tables", "GradNode", "id"), [1, 0]),
    "float is an unknown word": (("tables", "Detail", "max"), {"all": "nan", "count": 9}),
    "float is true": (("tables", "Detail", "max"), {"all": True, "count": 9}),
    "float is too large": (("tables", "Detail", "max"), {"all": HUGE, "count": 9}),
    "text is a number": (("tables", "NotSeen", "text"), [1]),
    "tuple is a number": (("tables", "SourceText", "lines"), [1]),
    "tuple is an object": (("tables", "SourceText", "lines"), [{"0": "a"}]),
    "row of another table": (("tables", "Recording", "meta"), [1]),
    "row is negative": (("tables", "Recording", "meta"), [-1]),
    "row points at itself": (("tables", "Recording", "meta"), [["Recording", 0]]),
    "event of unknown type": (("tables", "Recording", "events"), [[["Exploded", 0]]]),
    "event without type": (("tables", "Recording", "events"), [[0]]),
    "recording among its events": (("tables", "Recording", "events"), [[["Recording", 0]]]),
    "event type is a list": (("tables", "Recording", "events"), [[[[], 0]]]),
    "bytes are no base64": (("tables", "Values", "data", 0), "*"),
    "bytes lie in a file that is not named": (("tables", "Values", "data", 0), "@data0"),
    "bytes do not fill the shape": (("tables", "Values", "data", 0), ""),
    "dtype is unknown": (("tables", "Values", "dtype", 0), "float33"),
    "dtype is object": (("tables", "Values", "dtype", 0), "object"),
    "shape is negative": (("tables", "Values", "shape", 0), [-5]),
    "unknown column": (("tables", "Edge", "colour"), [1]),
    "values entry is a list": (("values",), []),
    "values entry without hash": (("values",), {"file": "a.safetensors"}),
}


@pytest.mark.parametrize("name", list(SPOILED))
def test_contradictory_tables_are_refused_as_damaged(name, document, tmp_path):
    place, junk = SPOILED[name]
    refused(write(tmp_path / "step.json", put(document, place, junk)), DamagedFileError)


@pytest.mark.parametrize("kind", ["Recording", "OpCalled", "Snapshot", "Meta", "SavedSlot"])
def test_a_missing_table_is_refused_as_damaged(kind, document, tmp_path):
    del document["tables"][kind]
    refused(write(tmp_path / "step.json", document), DamagedFileError, kind)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_strict_json_lacks_are_damage(constant, document, tmp_path):
    path = write(tmp_path / "step.json", document)
    path.write_text(path.read_text().replace("1e+308", constant))
    refused(path, DamagedFileError, constant)


def test_a_stray_character_among_bytes_is_damage(document, tmp_path):
    document["tables"]["Values"]["data"][0] += "*"
    path = write(tmp_path / "step.json", document)
    refused(path, DamagedFileError, r"Values\.data does not fit")


def test_the_message_names_the_type_and_field_that_does_not_fit(document, tmp_path):
    document["tables"]["Edge"]["input"] = ["0"]
    refused(write(tmp_path / "step.json", document), DamagedFileError, r"Edge\.input does not fit")


def test_a_missing_column_has_its_default_so_older_files_stay_readable(document, tmp_path):
    del document["tables"]["Op"]["recomputed"]
    del document["tables"]["SavedSlot"]["packed_by"]
    loaded = load_recording(write(tmp_path / "older.json", document))
    assert loaded == samples.small()


def test_a_missing_column_without_a_default_is_damage(document, tmp_path):
    del document["tables"]["Op"]["qualname"]
    path = write(tmp_path / "step.json", document)
    refused(path, DamagedFileError, r"Op\.qualname is missing")


def test_an_unknown_column_is_damage_because_new_fields_raise_the_schema(document, tmp_path):
    document["tables"]["Op"]["colour"] = ["red"]
    refused(write(tmp_path / "step.json", document), DamagedFileError, "no field 'colour'")


@pytest.mark.parametrize("schema", [2, 99, HUGE], ids=["next", "far", "absurd"])
def test_a_newer_schema_says_update(schema, document, tmp_path):
    document["schema"] = schema
    path = write(tmp_path / "step.json", document)
    assert "pip install -U" in refused(path, NewerSchemaError, "newer")


def test_a_newer_file_with_unknown_contents_is_newer_not_damaged(tmp_path):
    newer = {"format": "autograd_lab", "kind": "Recording", "schema": 2, "arrow": "x"}
    refused(write(tmp_path / "step.json", newer), NewerSchemaError)


def bomb_of_counts(document):
    document["tables"]["Edge"] = {name: {"all": 0, "count": 10**12} for name in ("node", "input")}


def bomb_of_rows(document):
    """10,000 rows, each of which holds one list of 10,000, written once."""
    nodes, many = document["tables"]["GradNode"], 10_000
    nodes["saved"] = {"of": [[0] * many], "at": [0] * many}
    nodes["id"] = list(range(many))
    for name in nodes.keys() - {"saved", "id", "name"}:
        nodes[name] = {"all": [] if name == "edges" else None, "count": many}
    nodes["name"] = {"all": "a", "count": many}
    document["tables"]["Recording"]["nodes"] = [list(range(many))]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("spoil", [bomb_of_counts, bomb_of_rows])
def test_a_small_file_never_takes_much_memory(spoil, document, tmp_path):
    spoil(document)
    path = write(tmp_path / "step.json", document)
    tracemalloc.start()
    try:
        load_recording(path)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 60_000_000


def test_no_file_is_pythons_own_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.json"):
        load_recording(tmp_path / "nowhere.json")


def test_a_folder_is_pythons_own_error(tmp_path):
    with pytest.raises((IsADirectoryError, PermissionError), match=tmp_path.name):
        load_recording(tmp_path)


def test_missing_values_are_said_with_both_names(large):
    path, values = large
    values.unlink()
    assert values.name in refused(path, MissingValuesError, "Move both files together")


def other_values(values):
    values.write_bytes(save({"data0": np.zeros(3)}))


def flipped_values(values):
    data = bytearray(values.read_bytes())
    data[-1] ^= 1
    values.write_bytes(data)


def truncated_values(values):
    values.write_bytes(values.read_bytes()[:-9])


def empty_values(values):
    values.write_bytes(b"")


@pytest.mark.parametrize("spoil", [other_values, flipped_values, truncated_values, empty_values])
def test_values_that_are_not_those_saved_are_refused_by_their_hash(spoil, large):
    path, values = large
    spoil(values)
    spoiled = values.read_bytes()
    assert values.name in refused(path, MissingValuesError, "hash")
    assert values.read_bytes() == spoiled


def test_a_folder_in_the_place_of_the_values_is_missing_values(large):
    path, values = large
    values.unlink()
    values.mkdir()
    refused(path, MissingValuesError)


def in_bfloat16():
    """A whole file whose dtype numpy does not have."""
    entry = {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}
    header = json.dumps({"data0": entry}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(4)


WITHIN = {
    "not safetensors": b"hello",
    "no such array": save({"other": np.zeros(3)}),
    "another size": save({f"data{n}": np.zeros(3) for n in range(6)}),
    "another dtype": save({"data0": np.zeros(3)}).replace(b'"F64"', b'"F63"'),
    "dtype that numpy lacks": in_bfloat16(),
    "header too long": (2**60).to_bytes(8, "little") + b"{}",
}


@pytest.mark.parametrize("name", list(WITHIN))
def test_values_with_the_right_hash_and_wrong_contents_are_damage(name, large):
    path, values = large
    document = json.loads(path.read_bytes())
    values.write_bytes(WITHIN[name])
    document["values"]["sha256"] = sha256_of(values)
    with pytest.raises(DamagedFileError, match=r"step\.") as caught:
        load_recording(write(path, document))
    assert type(caught.value) is DamagedFileError


def sha256_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


OUTSIDE = [
    "../secret.safetensors",
    "folder/x",
    "",
    ".",
    "..",
    "/etc/passwd",
    "a" * 5_000,
    "\0",
    "\ud800",
]


@pytest.mark.parametrize("name", OUTSIDE, ids=ascii)
def test_values_named_outside_the_folder_are_never_read(name, large, monkeypatch):
    path, values = large
    document = json.loads(path.read_bytes())
    (path.parent.parent / "secret.safetensors").write_bytes(values.read_bytes())
    document["values"]["file"] = name
    write(path, document)
    read, really = [], Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: read.append(self) or really(self))

    with pytest.raises(DamagedFileError, match=r"step\.json"):
        load_recording(path)

    assert read == [path]


def test_another_kind_of_record_is_foreign(tmp_path):
    path = samples.small().save(tmp_path / "step.json")
    with pytest.raises(ForeignFileError, match="Recording"):
        read_record(type(samples.LINE), path, 1)


def test_every_spoiled_file_was_a_recording_before(document, tmp_path):
    assert load_recording(write(tmp_path / "step.json", document)) == samples.small()
    assert isinstance(load_recording(tmp_path / "whole.json"), Recording)
