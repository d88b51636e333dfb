"""A tree that was taken apart is rebuilt alike: types, order, structure, and the same leaves."""

from __future__ import annotations

import enum
import sys
from collections import OrderedDict, defaultdict, deque

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autograd_lab.errors import EndlessTreeError, PytreeError
from autograd_lab.pytrees import flatten_tree, tensor_paths, unflatten_tree
from tests.pytrees import trees
from tests.pytrees.trees import CALLS, ONE, TREES, TWO, Frozen, Pair, Plain, Slotted, same

KEYS = st.one_of(st.text(max_size=3), st.integers(), st.none(), st.tuples(st.integers(), st.text()))
LEAVES = st.one_of(
    st.builds(torch.ones, st.tuples(st.integers(0, 2))),
    st.sampled_from([ONE, TWO, torch.nn.Parameter(torch.ones(1))]),
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    st.builds(trees.Box, st.integers()),
)


class Colour(enum.Enum):
    RED = 1


def containers(inner):
    items = st.lists(st.tuples(KEYS, inner), max_size=4)
    return st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        items.map(dict),
        items.map(OrderedDict),
        items.map(lambda pairs: defaultdict(list, pairs)),
        st.builds(deque, st.lists(inner, max_size=3), st.none() | st.integers(3, 5)),
        st.builds(Pair, inner, inner),
        st.builds(Plain, inner, inner),
        st.builds(Frozen, inner),
        st.builds(Slotted, inner, inner),
        st.builds(trees.child, inner, inner, inner),
        st.builds(trees.Keyed, inner, st.text(max_size=2)),
    )


ANY_TREE = st.recursive(LEAVES, containers, max_leaves=25)


@given(ANY_TREE)
@settings(deadline=None, max_examples=200)
def test_any_tree_comes_back_alike(tree):
    tensors, spec = flatten_tree(tree)
    assert same(unflatten_tree(spec, tensors), tree)


@given(ANY_TREE)
@settings(deadline=None, max_examples=100)
def test_any_spec_rebuilds_as_often_as_wanted_and_names_each_tensor(tree):
    tensors, spec = flatten_tree(tree)
    paths = tensor_paths(spec)
    assert len(paths) == len(set(paths)) == len(tensors)
    _, again = flatten_tree(unflatten_tree(spec, tensors))
    assert tensor_paths(again) == paths


@pytest.mark.parametrize("tree", TREES.values(), ids=list(TREES))
def test_each_kind_comes_back_alike(tree):
    tensors, spec = flatten_tree(tree)
    assert same(unflatten_tree(spec, tensors), tree)
    assert all(isinstance(tensor, torch.Tensor) for tensor in tensors)


def test_containers_are_new_and_other_leaves_are_the_same():
    box = trees.Box(1)
    tree = {"list": [ONE], "box": box}
    tensors, spec = flatten_tree(tree)
    tree["list"].append(2)
    assert unflatten_tree(spec, tensors) == {"list": [ONE], "box": box}


@pytest.mark.parametrize(
    ("tree", "paths"),
    [
        (ONE, ("",)),
        ((ONE, TWO), ("[0]", "[1]")),
        ({"w": ONE, 3: [TWO], (1, "a"): ONE}, ("['w']", "[3][0]", "[(1, 'a')]")),
        (Plain(ONE, Pair(1, TWO)), (".a", ".b.q")),
        (Slotted(ONE, [TWO]), (".a", ".b[0]")),
        (trees.child(1, 2, TWO), (".extra",)),
        (trees.own_new(ONE, TWO), (".p", ".q", ".note")),
        (trees.Registered(ONE, ""), ("[0]",)),
        ({"m": trees.Keyed(ONE, "")}, ("['m'].x",)),
        (OrderedDict(a=defaultdict(list, b=deque([1, ONE]))), ("['a']['b'][1]",)),
        ({0: 0, frozenset({1}): ONE}, ("[<key 1, frozenset>]",)),
        ({10**5000: ONE, Colour.RED: TWO}, ("[<key 0, int>]", "[Colour.RED]")),
        ({"k" * 99: ONE}, (f"['{'k' * 99}']",)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_paths_are_spelled_as_in_python(tree, paths):
    assert tensor_paths(flatten_tree(tree)[1]) == paths


def test_no_code_of_a_class_runs_but_a_registrations():
    made = [trees.Late(ONE), trees.Strict(ONE), trees.own_new(ONE, 1)]
    registered = trees.Registered(ONE, "")
    CALLS.clear()
    tensors, spec = flatten_tree(made)
    unflatten_tree(spec, tensors)
    assert CALLS == []
    tensors, spec = flatten_tree(registered)
    unflatten_tree(spec, tensors)
    assert CALLS == ["Registered.__init__"]


def test_a_field_that_was_never_set_stays_unset():
    tensors, spec = flatten_tree(trees.Late(ONE))
    new = unflatten_tree(spec, tensors)
    assert new.derived == ("derived", 2.0)
    assert new.fixed == 7
    assert not hasattr(new, "unset")


def test_a_property_of_an_opaque_object_is_not_called():
    class Loud:
        @property
        def y(self):
            raise AssertionError

        @property
        def __class__(self):
            raise AssertionError

        def __getattr__(self, name):
            raise AssertionError

        def __iter__(self):
            raise AssertionError

        def __len__(self):
            raise AssertionError

        def __eq__(self, other):
            raise AssertionError

        __hash__ = None

    loud = Loud()
    loud.z = [Loud()]
    assert unflatten_tree(flatten_tree([loud, ONE])[1], [TWO])[0] is loud


def test_the_number_of_tensors_must_fit():
    for tree in ((ONE, TWO), {"a": ONE, "b": TWO}):
        with pytest.raises(PytreeError, match="2 tensors, but 1 were given"):
            unflatten_tree(flatten_tree(tree)[1], [ONE])


@pytest.mark.parametrize("wrap", [lambda t: [t], lambda t: {"k": t}, Plain, lambda t: Pair(0, t)])
def test_a_thousand_levels_and_more_come_back(wrap):
    tree = ONE
    for _ in range(5 * sys.getrecursionlimit()):
        tree = wrap(tree)
    tensors, spec = flatten_tree(tree)
    new = unflatten_tree(spec, ["here"])
    assert len(tensors) == len(tensor_paths(spec)) == 1
    for _ in range(5 * sys.getrecursionlimit()):
        new = (
            new[0]
            if type(new) is list
            else new["k"]
            if type(new) is dict
            else (new.a if type(new) is Plain else new.q)
        )
    assert new == "here"


def _cyclic(kind):
    if kind == "list":
        tree = [1, ONE]
        tree.append(tree)
        return tree
    if kind == "dict":
        tree = {"a": {}}
        tree["a"]["b"] = [tree]
        return tree
    if kind == "dataclass":
        tree = Plain(ONE)
        tree.b = (tree,)
        return tree
    inner = [ONE]
    inner.append({"up": inner})
    return {"many": list(range(20_000)), "inner": [inner]}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("list", r"^saved is a list that holds itself, as saved\[2\]\."),
        ("dict", r"^saved is a dict that holds itself, as saved\['a'\]\['b'\]\[0\]\."),
        ("dataclass", r"^saved is a Plain that holds itself, as saved\.b\[0\]\."),
        ("inner", r"^saved\['inner'\]\[0\] is a list .* as saved\['inner'\]\[0\]\[1\]\['up'\]"),
    ],
)
def test_a_container_that_holds_itself_is_refused_by_path(kind, words):
    with pytest.raises(EndlessTreeError, match=words):
        flatten_tree(_cyclic(kind))


def test_the_same_container_in_two_places_is_no_cycle():
    shared = [ONE, [TWO] * 10]
    tree = [shared] * 2000
    tensors, spec = flatten_tree(tree)
    assert len(tensors) == 22_000
    assert same(unflatten_tree(spec, tensors), tree)


def test_a_tree_that_grows_without_end_is_refused():
    tree = [ONE]
    for _ in range(40):
        tree = [tree, tree]
    with pytest.raises(EndlessTreeError, match="more than 1000000 entries"):
        flatten_tree(tree)
