"""Which answers agree with the right one, and the words when they don't."""

import math
import re

import numpy as np
import pytest
import torch

from autograd_lab.teach.agreement import difference, is_blank

F64 = torch.float64


def tensor(*values, **options):
    return torch.tensor(values, **options)


@pytest.mark.parametrize(
    ("mine", "right"),
    [
        (6, 6.0),
        (6.0, torch.tensor(6)),
        ([1.0, 2.0], tensor(1.0, 2.0)),
        ([tensor(1.0), tensor(2.0)], torch.tensor([[1.0], [2.0]])),
        (np.float32(2.5), 2.5),
        (np.array([1, 2]), tensor(1.0, 2.0)),
        (tensor(1.0, 2.0), [1.0, 2.0]),
        (tensor(1, 2), tensor(1.0, 2.0, dtype=F64)),
        (tensor(1.0, dtype=torch.bfloat16), tensor(1.0)),
        (tensor(1.0, requires_grad=True), tensor(1.0)),
        (tensor(0.0, 3.0).to_sparse(), tensor(0.0, 3.0)),
        (tensor(1 + 0j), tensor(1.0)),
        (tensor(1 + 2j).conj(), tensor(1 - 2j)),
        (tensor(math.nan, 1.0), tensor(math.nan, 1.0)),
        (math.inf, tensor(math.inf).sum()),
        (tensor(1.0 + 1e-8, dtype=F64), tensor(1.0)),
        ((1, [2.0, "x"]), [1, (2.0, "x")]),
        ({"w": 1.0, "b": None}, {"b": None, "w": torch.tensor(1.0)}),
        (np.bool_(True), True),
        (torch.tensor(True), True),
        (tensor(True, False), tensor(True, False)),
        ([], torch.empty(0)),
    ],
)
def test_these_agree(mine, right):
    assert difference(mine, right, tol=1e-6) is None


@pytest.mark.parametrize(
    ("mine", "right", "words"),
    [
        (tensor(1.0), 1.0, r"shape \(1,\) where \(\) is wanted"),
        (torch.ones(2, 3), torch.ones(3, 2), r"shape \(2, 3\) where \(3, 2\)"),
        (tensor(1.0, 2.0, 4.0), tensor(1.0, 2.0, 3.0), "1 of 3 numbers differ"),
        (5, 6, "another number"),
        (2**53 + 1, 2**53, "another number"),
        (tensor(math.nan, 1.0), tensor(2.0, 1.0), "NaN"),
        (-math.inf, math.inf, "another number"),
        (1 + 1j, 1.0, "another number"),
        (tensor(1 + 1j, 2 + 0j), tensor(1.0, 2.0), "1 of 2 numbers"),
        (2e-9, 1e-9, "another number"),
        (True, 1.0, "numbers are wanted"),
        (tensor(True), tensor(1.0), "numbers are wanted"),
        (1, True, "True or False"),
        (False, True, "the other one"),
        (None, 1.0, "this is None"),
        ("six", 6.0, "this is a str"),
        (6.0, "six", "a str is wanted"),
        ("five", "six", "a different str"),
        ({"a": 1}, 1.0, "this is a dict"),
        (lambda: 1, 1.0, "this is a function"),
        ({"x": 1}, {"w": 1}, r"keys \['x'\] where \['w'\]"),
        ([1, 2], {"w": 1}, "this is a list"),
        ((1, 2, 3), (1, 2), "3 values where 2"),
        (7, (1, 2), "a tuple or list of 2"),
        ({"w": [1, 2]}, {"w": [1, 3]}, r"at \['w'\]\[1\]"),
        ([[1.0], [1.0, 2.0]], torch.ones(2, 2), "can't be compared"),
        (torch.ones(2, device="meta"), torch.ones(2), "can't be compared"),
        (object(), 1.0, "can't be compared"),
    ],
)
def test_these_differ_in_words(mine, right, words):
    assert re.search(words, difference(mine, right, tol=1e-6) or "no difference")


def test_tolerance_zero_means_exact():
    assert difference(1.0 + 1e-12, 1.0, tol=0.0) is not None


def test_the_words_hold_no_values_that_could_be_noise():
    found = difference(tensor(0.123456789), tensor(0.98765), tol=1e-6)
    assert "0." not in found


@pytest.mark.parametrize("blank", [..., [1, ...], (..., 2), {"w": {"b": ...}}])
def test_a_blank_is_found_anywhere(blank):
    assert is_blank(blank)


@pytest.mark.parametrize("answer", [None, 0, [], "...", torch.zeros(2)])
def test_an_answer_is_no_blank(answer):
    assert not is_blank(answer)
