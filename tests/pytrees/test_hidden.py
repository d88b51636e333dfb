"""A tensor that no container hands out is named by path, before it can leak."""

from __future__ import annotations

from collections import UserDict, defaultdict
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from autograd_lab.errors import HiddenTensorError
from autograd_lab.pytrees import flatten_tree
from autograd_lab.pytrees.hidden import hidden_tensors
from tests.pytrees.trees import ONE, TWO, Box, Leaky, ListOfMine, Plain


class InSlots:
    __slots__ = ("__private", "unset", "y")

    def __init__(self, y):
        self.y = y
        self.__private = [y]


class Maker(Box):
    def __call__(self):
        return self.y


class MyDict(dict):
    pass


class MyList(list):
    pass


def many(count):
    return Box({f"k{number}": [number] for number in range(count)} | {"t": ONE})


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (
            {"box": Box(ONE)},
            r"^saved\['box'\] is a Box, which is not a pytree node, but holds tensors in \['y'\]",
        ),
        (Box(ONE), r"^saved is a Box, .* \['y'\]"),
        ([0, Plain({"d": Box([1, {"k": ONE}])})], r"^saved\[1\]\.a\['d'\] is a Box.*y\[1\]\[.k"),
        (InSlots(ONE), r"_InSlots__private\[0\]"),
        ({ONE}, r"^saved is a set, .* \['an element'\][^$]*Save a list"),
        (frozenset({ONE}), "is a frozenset"),
        (MyDict(k=ONE), r"is a MyDict, .*\[.k"),
        (MyList([0, TWO]), r"is a MyList, .*\['\[1\]'\]"),
        (UserDict(k=ONE), r"data\[.k"),
        (SimpleNamespace(y=ONE), r"\['y'\]"),
        (ListOfMine(ONE), r"is a ListOfMine, .*\['a'\]"),
        (nn.Linear(1, 1), r"is a Linear, .*weight[^$]*the module's tensors"),
        (nn.ParameterList([nn.Parameter(ONE)]), r"is a ParameterList, "),
        ({ONE: 1}, r"^saved is a dict with tensors in its keys: \['\[0\]'\][^$]*as values"),
        (defaultdict(Maker(ONE), a=1), "with tensors in its keys or factory: "),
        (
            {"r": Leaky(ONE, "")},
            r"saved\['r'\] is a Leaky with tensors in its pytree context: .'itself'",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_hidden_tensor_is_refused_by_path(tree, words):
    with pytest.raises(HiddenTensorError, match=words) as caught:
        flatten_tree(tree)
    assert caught.value.facts["path"].startswith("saved")
    assert caught.value.facts["names"]


def test_the_message_says_why_and_how_to_fix_it():
    with pytest.raises(HiddenTensorError) as caught:
        flatten_tree({"box": Box(ONE)})
    _, why, fix = str(caught.value).splitlines()
    assert "save_for_backward" in why
    assert fix == (
        "Save a dict of the tensors instead, make Box a dataclass, "
        "or register it with torch.utils._pytree.register_pytree_node."
    )


@pytest.mark.parametrize(
    "value", [lambda: ONE, torch, nn.Linear, [].append, Box(Box).y, 3, "text", torch.Size([1])]
)
def test_what_is_closed_is_not_searched(value):
    assert hidden_tensors(value) == ()


def test_the_search_follows_a_cycle_once():
    box = Box([ONE])
    box.me = box
    assert hidden_tensors(box) == ("y[0]",)


def test_the_search_is_bounded():
    assert hidden_tensors(many(100)) == ("y['t']",)
    assert hidden_tensors(many(10_000)) == ()
    assert len(hidden_tensors(Box([ONE] * 100))) == 8


def test_the_search_can_be_left_out():
    box = Box(ONE)
    assert flatten_tree([box], search=False)[0] == ()
