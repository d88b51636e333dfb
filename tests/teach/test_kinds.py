"""A value in the words of a learner: what it is, what is expected, what to do."""

import math

import numpy as np
import pytest
import torch

from autograd_lab.teach.kinds import advice, expected, kind, with_article


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (7, "7"),
        (7.0, "7"),
        (1 / 3, "0.3333"),
        (10**60, "1e+60"),
        (math.nan, "NaN (not a number)"),
        (True, "True"),
        (None, "None"),
        (torch.tensor(2.5), "2.5"),
        (torch.tensor(True), "True"),
        (np.float32(2.5), "2.5"),
        (torch.ones(2, 3), "a tensor of shape (2, 3)"),
        (np.ones(2), "an array of shape (2,)"),
        (torch.ones((), device="meta"), "a tensor of shape ()"),
        ("9", "the text '9'"),
        ("x" * 99, "the text '" + "x" * 40 + " …'"),
        ([1, 2], "a list of 2"),
        ((), "an empty tuple"),
        (torch.ones(2).max(0), "a list of 2"),
        ({"a": 1}, "a dict with the keys 'a'"),
        ({}, "an empty dict"),
        ({1}, "a set"),
        (math, "a module"),
        (int, "the class int"),
        (len, "a function"),
        (torch.nn.ReLU(), "an object of class ReLU"),
    ],
)
def test_a_value_has_words(value, words):
    assert kind(value) == words


@pytest.mark.parametrize(
    ("right", "names", "words"),
    [
        (3.0, None, "a number"),
        (torch.ones(2, 3), None, "a tensor of shape (2, 3)"),
        (True, None, "True or False"),
        ("x", None, "a text in quotes"),
        (None, None, "None"),
        ([1], None, "a list of 1 value"),
        ((1, 2), ("of a", "of b"), "2 values: of a, of b"),
        ((1, 2), (("x", "y"), "b"), "2 values"),
        ({"w": 1}, None, "a dict with the keys 'w'"),
    ],
)
def test_what_is_expected_never_tells_the_answer(right, names, words):
    assert expected(right, names) == words


def test_advice_is_given_only_where_it_helps():
    assert advice("six", 1.0) == advice(object(), 1.0) == ""
    assert "`return`" in advice(None, (1, 2))
    assert "call it" in advice(lambda: 1, 1.0)


@pytest.mark.parametrize(("noun", "words"), [("int", "an int"), ("list", "a list")])
def test_the_article_fits(noun, words):
    assert with_article(noun) == words
