"""What is loaded equals what was saved."""

from __future__ import annotations

import hashlib
import json
import math
import typing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from autograd_lab.recording import (
    BackwardStarted,
    Detail,
    Event,
    OpCalled,
    OpId,
    PassId,
    Recording,
    Snapshot,
    TensorId,
    TensorRef,
    load_recording,
)
from autograd_lab.recording.files import read_record, write_record
from tests.recording import samples
from tests.recording.strategies import records
from tests.recording.test_record import KINDS


def refuse(constant):
    raise AssertionError(constant)


def strict(path):
    """The document of a file, read as strict JSON."""
    return json.loads(path.read_bytes(), parse_constant=refuse)


def arrays_in(recording):
    snapshots = [snapshot for event in recording.events_of(OpCalled) for snapshot in event.outputs]
    return [snapshot.values.array for snapshot in snapshots if snapshot.values]


@pytest.mark.parametrize("make", [samples.small, samples.large, Recording])
def test_loaded_equals_saved(make, tmp_path):
    recording = make()
    loaded = load_recording(recording.save(tmp_path / "step.json"))
    assert loaded == recording
    assert hash(loaded) == hash(recording)


def test_the_sample_holds_every_type_of_event():
    assert {type(event) for event in samples.small().events} == set(typing.get_args(Event))


@given(data=st.data())
@settings(deadline=None, max_examples=80)
def test_any_record_that_its_types_allow_comes_back_equal(data, tmp_path_factory):
    kind = data.draw(st.sampled_from([kind for kind in KINDS if kind is not Recording]))
    record = data.draw(records(kind))
    path = write_record(record, tmp_path_factory.getbasetemp() / "any.json", 1)
    strict(path)
    assert read_record(kind, path, 1) == record


@given(recording=records(Recording))
@settings(deadline=None, max_examples=25)
def test_any_whole_that_its_types_allow_comes_back_equal(recording, tmp_path_factory):
    path = write_record(recording, tmp_path_factory.getbasetemp() / "any.json", 1)
    assert read_record(Recording, path, 1) == recording


@pytest.mark.parametrize("name", list(samples.ARRAYS))
def test_arrays_keep_bytes_shape_and_dtype(name, tmp_path):
    array = samples.ARRAYS[name]
    event = OpCalled(op=OpId(0), outputs=(samples.snapshot(array),))
    path = samples.small(events=(event,)).save(tmp_path / "step.json")

    loaded = arrays_in(load_recording(path))[0]

    assert (loaded.shape, loaded.dtype) == (array.shape, array.dtype)
    assert loaded.tobytes() == array.tobytes()


def test_bfloat16_keeps_its_name_and_is_read_as_float32(tmp_path):
    ref = TensorRef(id=TensorId(0), shape=(2, 2), dtype="bfloat16")
    widened = samples.snapshot(samples.ARRAYS["bfloat16, widened"])
    whole = Recording(
        tensors=(ref,), events=(BackwardStarted(pass_id=PassId(1), grad_outputs=(widened,)),)
    )
    path = whole.save(tmp_path / "step.json")

    loaded = load_recording(path)

    assert loaded.tensors[0].dtype == "bfloat16"
    assert loaded.events[0].grad_outputs[0].values.array.dtype == np.float32


def test_minus_zero_keeps_its_sign_beside_a_zero(tmp_path):
    zeros = (Detail(min=0.0), Detail(min=-0.0), Detail(min=0.0))
    outputs = tuple(Snapshot(tensor=TensorId(0), detail=detail) for detail in zeros)
    path = samples.small(events=(OpCalled(op=OpId(0), outputs=outputs),)).save(tmp_path / "s.json")

    (event,) = load_recording(path).events

    assert [math.copysign(1, each.detail.min) for each in event.outputs] == [1.0, -1.0, 1.0]


def test_small_values_stay_in_one_strict_json_file(tmp_path):
    path = samples.small().save(tmp_path / "step.json")
    document = strict(path)
    assert document["format"] == "autograd_lab"
    assert "values" not in document
    assert list(tmp_path.iterdir()) == [path]


def test_nan_and_inf_are_words_in_the_json(tmp_path):
    norms = strict(samples.small().save(tmp_path / "step.json"))["tables"]["Snapshot"]["norm"]
    assert {"NaN", "Infinity", "-Infinity", "-0.0"} <= set(
        norms.get("of", norms) if isinstance(norms, dict) else norms
    )


def test_large_values_lie_beside_the_json_which_names_and_hashes_them(tmp_path):
    document = strict(samples.large().save(tmp_path / "step.json"))
    blob = (tmp_path / document["values"]["file"]).read_bytes()
    assert document["values"]["sha256"] == hashlib.sha256(blob).hexdigest()
    assert len(json.dumps(document)) < 8_000


def test_numpy_reads_the_values_file_without_us(tmp_path):
    document = strict(samples.large().save(tmp_path / "step.json"))
    arrays = list(load_file(tmp_path / document["values"]["file"]).values())
    shapes = {(array.dtype.name, array.shape) for array in arrays}
    assert shapes == {
        ("float32", (100, 200)),
        ("float32", (20_000,)),
        ("float32", (10_000, 2)),
        ("float64", (2, 4_000, 2)),
        ("bool", (70_000,)),
        ("int64", (9_000,)),
    }


def test_complex_values_are_stored_as_pairs_of_reals(tmp_path):
    document = strict(samples.large().save(tmp_path / "step.json"))
    stored = load_file(tmp_path / document["values"]["file"])
    pairs = next(array for array in stored.values() if array.shape == (10_000, 2))
    expected = samples.LARGE["complex64"]
    np.testing.assert_array_equal(pairs[:, 0] + 1j * pairs[:, 1], expected)


def test_the_same_recording_gives_the_same_files(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        samples.large().save(tmp_path / folder / "step.json")
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / f).iterdir()} for f in ("one", "two"))
    assert one == two
    assert len(one) == 2


def test_rows_that_occur_often_are_stored_once(tmp_path):
    event = samples.small().events[0]
    once = samples.small(events=(event,)).save(tmp_path / "once.json").stat().st_size
    often = samples.small(events=(event,) * 1_000).save(tmp_path / "often.json").stat().st_size
    assert often - once < 16_000
