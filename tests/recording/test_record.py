"""Equality and hash of records survive NaN."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograd_lab import recording as nouns
from autograd_lab.recording import Detail, Edge, NodeId, Record, Snapshot, TensorId
from tests.recording import samples
from tests.recording.strategies import records

KINDS = [
    kind
    for kind in (getattr(nouns, name) for name in nouns.__all__)
    if isinstance(kind, type) and issubclass(kind, Record) and kind is not Record
]


@given(data=st.data())
@settings(deadline=None, max_examples=30)
def test_a_record_equals_one_made_of_the_same_fields(data):
    kind = data.draw(st.sampled_from(KINDS))
    one = data.draw(records(kind))
    names = [name for cls in reversed(kind.__mro__) for name in getattr(cls, "__slots__", ())]

    other = kind(**{name: getattr(one, name) for name in names})

    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_noun_is_frozen_and_has_no_dict(kind):
    assert kind.__dataclass_params__.frozen
    assert not hasattr(kind, "__dict__") or "__dict__" not in dir(kind)
    assert kind.__eq__ is Record.__eq__
    assert kind.__hash__ is Record.__hash__


def test_nan_equals_nan_of_another_computation():
    a = Snapshot(tensor=TensorId(0), norm=math.nan, detail=Detail(min=math.inf - math.inf))
    b = Snapshot(tensor=TensorId(0), norm=math.inf * 0, detail=Detail(min=math.nan))
    assert a == b
    assert hash(a) == hash(b)
    assert len({a, b}) == 1


def test_nan_differs_from_a_number_and_from_none():
    nan = Snapshot(tensor=TensorId(0), norm=math.nan)
    assert nan != Snapshot(tensor=TensorId(0), norm=1.0)
    assert nan != Snapshot(tensor=TensorId(0), norm=None)


def test_records_of_two_types_differ():
    assert Edge(node=NodeId(0), input=0) != (0, 0)
    assert Snapshot(tensor=TensorId(0)) != Detail()


def test_recordings_differ_when_one_element_differs():
    changed = samples.ARRAYS["NaN and Inf"].copy()
    changed[2] = 7.0
    one, other = samples.values(samples.ARRAYS["NaN and Inf"]), samples.values(changed)
    assert one != other
    assert one == samples.values(samples.ARRAYS["NaN and Inf"].copy())
