"""Records that hypothesis makes from the type hints of the fields: new ones are covered at once."""

from __future__ import annotations

import dataclasses
from functools import cache
from types import UnionType
from typing import Union, get_args, get_origin, get_type_hints

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from autograd_lab.recording import Record, Values
from tests.recording.samples import values

SCALARS = {
    bool: st.booleans(),
    int: st.integers(min_value=-(2**63), max_value=2**64),
    float: st.floats(),
    str: st.text(max_size=8),
    bytes: st.binary(max_size=40),
    type(None): st.none(),
}
DTYPES = ["bool", "uint8", "int64", "float32", "float64", "complex64", "complex128"]
SHAPES = st.lists(st.integers(0, 3), max_size=3).map(tuple)
ARRAYS = st.builds(
    lambda dtype, shape: nps.arrays(np.dtype(dtype), shape), st.sampled_from(DTYPES), SHAPES
).flatmap(lambda arrays: arrays)


def of_hint(hint):
    """Values that fit a type hint."""
    if hasattr(hint, "__supertype__"):
        return st.integers(min_value=0, max_value=2**64)
    if get_origin(hint) is tuple:
        return st.lists(of_hint(get_args(hint)[0]), max_size=3).map(tuple)
    if get_origin(hint) in (Union, UnionType):
        return st.one_of([of_hint(choice) for choice in get_args(hint)])
    return records(hint) if issubclass(hint, Record) else SCALARS[hint]


@cache
def records(kind):
    """Records of one type; any field that has a default may have it."""
    if kind is Values:
        return st.builds(values, ARRAYS, sampled_from=st.none() | SHAPES)
    hints = get_type_hints(kind)
    return st.builds(kind, **{field.name: of_hint(hints[field.name]) for field in fields(kind)})


def fields(kind):
    """The fields of a record's type."""
    return dataclasses.fields(kind)
