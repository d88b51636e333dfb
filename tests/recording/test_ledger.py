"""A ledger counts each memory once, and comes back from JSON as it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from autograd_lab.errors import ForeignFileError
from autograd_lab.recording import SavedEntry, SavedLedger
from tests.recording.strategies import records


@given(records(SavedLedger))
@settings(deadline=None, max_examples=50)
def test_any_ledger_survives_json(ledger):
    text = json.dumps(ledger.to_dict(), allow_nan=False)
    assert SavedLedger.from_dict(json.loads(text)) == ledger


def entry(path, storage, nbytes, role="intermediate"):
    return SavedEntry(path=path, role=role, storage=storage, storage_nbytes=nbytes, nbytes=4)


def test_totals_count_a_memory_once_and_leave_the_unknown_out():
    ledger = SavedLedger(
        entries=(
            entry("a", 0, 100, "input"),
            entry("b", 0, 100),
            entry("c", 1, 10),
            entry("d", 1, 10),
            entry("e", None, None),
            SavedEntry(path="k", role="constant"),
        )
    )
    assert (ledger.storage_nbytes, ledger.intermediate_nbytes) == (110, 10)
    assert (len(ledger.tensors), ledger.unknown_count) == (5, 1)
    assert [other.path for other in ledger.sharing(ledger.entries[2])] == ["d"]
    assert ledger.sharing(ledger.entries[4]) == ()


def test_a_field_that_is_missing_gets_its_default():
    row = {"path": "x", "role": "constant"}
    ledger = SavedLedger.from_dict({"kind": "SavedLedger", "entries": [row]})
    assert ledger.entries == (SavedEntry(path="x", role="constant"),)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "kind"),
        ({"kind": "Recording", "entries": []}, "says that it is a 'Recording'"),
        ({"kind": "SavedLedger", "entries": 3}, "not iterable"),
        ({"kind": "SavedLedger", "entries": [3]}, "no SavedLedger"),
        ({"kind": "SavedLedger", "entries": [{"path": "x"}]}, "SavedEntry.role is missing"),
        ({"kind": "SavedLedger", "entries": [{"path": 1, "role": ""}]}, "SavedEntry.path"),
        ({"kind": "SavedLedger", "entries": [{"path": "", "role": "", "b": 1}]}, "no field 'b'"),
        (
            {"kind": "SavedLedger", "entries": [{"path": "", "role": "", "shape": ["2"]}]},
            "SavedEntry.shape does not fit",
        ),
        ([], "indices"),
    ],
)
def test_what_is_no_ledger_is_refused_by_field(data, words):
    with pytest.raises(ForeignFileError, match=words):
        SavedLedger.from_dict(data)
