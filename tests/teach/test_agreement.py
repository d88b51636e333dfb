"""Which answers agree with the right one, and the words when they don't."""

import math

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


class Number:
    value = 3.0


@pytest.mark.parametrize(
    ("mine", "right", "words"),
    [
        (tensor(1.0), 1.0, "your answer has shape (1,); expected a single number"),
        (torch.tensor(5.0), torch.ones(2), "your answer is a single number; expected shape (2,)"),
        (torch.ones(2, 3), torch.zeros(3, 2), "has shape (2, 3); expected shape (3, 2)"),
        (tensor(1.0, 2.0, 4.0), tensor(1.0, 2.0, 3.0), "1 of 3 numbers differ in your answer"),
        (5, 6, "your answer is 5; another number is right"),
        (torch.tensor(0.123456), 6, "your answer is 0.1235; another number is right"),
        (2**53 + 1, 2**53, "another number"),
        (tensor(math.nan, 1.0), tensor(2.0, 1.0), "has 1 of 2 numbers that are NaN (not a number)"),
        (math.nan, 2.0, "your answer is NaN (not a number); look for 0/0"),
        (math.inf, 2.0, "your answer is inf; look for a division by 0"),
        (-math.inf, math.inf, "another number"),
        (1 + 1j, 1.0, "your answer is 1+1j; another number"),
        (tensor(1 + 1j, 2 + 0j), tensor(1.0, 2.0), "1 of 2 numbers"),
        (2e-9, 1e-9, "another number"),
        (True, 1.0, "your answer is True; expected a number; write 1 for True and 0 for False"),
        (tensor(True), tensor(1.0), "holds True and False; expected numbers; .float() makes"),
        (tensor(1.0), tensor(True), "holds numbers; expected True and False"),
        (1, True, "your answer is 1; expected True or False"),
        (False, True, "your answer is False; the other one is right"),
        (None, 1.0, "your answer is None; expected a number; a .grad is None until backward()"),
        (None, torch.ones(2, 3), "your answer is None; expected a tensor of shape (2, 3)"),
        ("six", 6.0, "your answer is the text 'six'; expected a number"),
        ("6", 6.0, "write numbers without quotes"),
        (np.array(["6"]), 6.0, "an array of shape (1,); expected a number"),
        (6.0, "six", "your answer is 6; expected a text in quotes"),
        ("five", "six", "your answer is 'five'; another one is right"),
        (" Six", "six", "right but for capitals or spaces: you wrote ' Six'"),
        ({"a": 1}, 1.0, "your answer is a dict with the keys 'a'; expected a number"),
        (lambda: 1, 1.0, "your answer is a function; expected a number; call it: add (…)"),
        (int, 1.0, "your answer is the class int; expected a number"),
        (Number(), 1.0, "an object of class Number; expected a number; do you mean its .value?"),
        ({"x": 1}, {"w": 1}, "the keys of your answer differ; missing: 'w'; not asked for: 'x'"),
        ([1, 2], {"w": 1}, "your answer is a list of 2; expected a dict with the keys 'w'"),
        ((1, 2, 3), (1, 2), "your answer has 3 values; expected 2 values"),
        ([], (1, 2), "your answer has 0 values; expected 2 values"),
        (["a"], ["a", "b"], "your answer has 1 value (a); expected 2 values"),
        (7, (1, 2), "your answer is 7; expected 2 values"),
        ({1, 2}, (1, 2), "your answer is a set; expected 2 values; a set has no order"),
        ((n for n in (1, 2)), (1, 2), "a generator; expected 2 values; put list(…) around it"),
        (("1", 2), (1, 2), "answer[0] is the text '1'; expected a whole number"),
        ({"w": [1, 2]}, {"w": [1, 3]}, "answer['w'][1] is 2; another number is right"),
        ([[1.0], [1.0, 2.0]], torch.ones(2, 2), "the rows of your answer have different lengths"),
        ([["a", 1.0]], torch.ones(1, 2), "answer[0][0] is the text 'a'; expected a number"),
        (torch.ones(2, device="meta"), torch.ones(2), "on the meta device and holds no numbers"),
        (object(), 1.0, "your answer is an object of class object; expected a number"),
        (1, None, "your answer is 1; expected None"),
    ],
)
def test_these_differ_in_words(mine, right, words):
    assert words in (difference(mine, right, tol=1e-6) or "no difference")


@pytest.mark.parametrize(
    ("mine", "right", "words"),
    [
        ((-1.0, -2.0), (1.0, 2.0), "every sign is the other way round"),
        ((2.0, 4.0), (1.0, 2.0), "everything is 2 times too large"),
        (torch.ones(4, 2), tensor(4.0, 4.0), "the sum over the first dimension is missing"),
        (tensor(1.0), torch.tensor(1.0), "the numbers are right, only their shape is not"),
    ],
)
def test_the_mistake_that_explains_all_numbers_comes_last(mine, right, words):
    assert words in difference(mine, right, tol=1e-6).rpartition("; ")[2]


@pytest.mark.parametrize(
    ("mine", "told"),
    [
        ((1, [2, 9], 4), True),
        ((1, 9, 4), True),
        ((9, [2, 9], 4), False),
        ((1, [9, 9], 4), False),
        ((1, 2), False),
    ],
)
def test_a_single_wrong_part_leaves_the_rest_right(mine, told):
    words = difference(mine, (1, [2, 3], 4), tol=1e-6)
    assert words.endswith("; the rest is right") == told


@pytest.mark.parametrize(
    ("mine", "words"),
    [
        ((1, 2), "the slope of b is 2; another number is right"),
        (7, "your answer is 7; expected 2 values: the slope of a, the slope of b"),
        ((1, None), "the slope of b is None"),
    ],
)
def test_the_parts_have_the_names_of_the_exercise(mine, words):
    names = ("the slope of a", "the slope of b")
    assert words in difference(mine, (1, 3), tol=1e-6, names=names)


def test_names_may_be_a_tree_and_a_part_without_a_name_has_its_index():
    names = {"w": ["the first weight"]}
    assert "the first weight is 9" in difference({"w": [9, 2]}, {"w": [1, 2]}, tol=0, names=names)
    assert "answer['w'][1] is 9" in difference({"w": [1, 9]}, {"w": [1, 2]}, tol=0, names=names)


def test_what_cannot_even_be_looked_at_is_said():
    class Odd:
        def __eq__(self, other):
            raise ValueError

        __hash__ = None

    assert difference(Odd(), Odd(), tol=0) == "your answer can't be compared (ValueError)"


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
