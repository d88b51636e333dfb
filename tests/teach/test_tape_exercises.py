"""Lesson 01: the exercises agree with paper and with torch, for 20 learners."""

import pytest

from autograd_lab.teach.exercises import tape

pytestmark = pytest.mark.usefixtures("variant")


def test_the_two_paths_are_those_of_paper():
    a, b = tape.two_paths.data().values()
    assert tape.two_paths.check((b, a + 2 * b)).ok


def test_the_pairs_have_both_orders_and_a_tie():
    pairs = tape.max_rule.data()["pairs"]
    assert {(x > y) - (x < y) for x, y in pairs} == {1, -1, 0}


def test_the_rule_on_paper_is_the_one_of_torch():
    def rule(x, y):
        return (0.5, 0.5) if x == y else (float(x > y), float(x < y))

    assert tape.max_rule.check(lambda pairs: [rule(x, y) for x, y in pairs]).ok


def test_the_gradient_over_passes_is_that_of_paper():
    gradients = tape.over_passes.data()["gradients"]
    assert tape.over_passes.check(gradients[2] + gradients[3]).ok


def build_order(leaf):
    steps = {
        "AddBackward": lambda x: x + 1,
        "MulBackward": lambda x: x * 2,
        "PowBackward": lambda x: x**2,
    }
    for name in reversed(tape.backward_order.data()["order"]):
        leaf = steps[name](leaf)
    return leaf


def test_the_order_can_be_built_in_torch():
    assert tape.backward_order.check(lambda order: tape.nodes_of(build_order)).ok


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda a: ..., "not answered yet"),
        (lambda a: None, "your function returned None"),
        (lambda a: a, "your answer has 0 values; expected 3 values: the node that runs first,"),
        (lambda a: a.item(), "your answer is 1; expected 3 values"),
        (lambda a: a * 2, "your answer has 1 value (MulBackward); expected 3 values"),
        (lambda a: ((a - 1) ** 2) / 3, "is 'DivBackward'; another one is right"),
    ],
)
def test_what_a_learner_builds_instead_is_told(build, words):
    assert words in tape.backward_order.check(lambda order: tape.nodes_of(build)).text


def test_nodes_are_those_that_ran_also_where_a_leaf_is_used_twice():
    assert tape.nodes_of(lambda a: (a * a + a) ** 2) == [
        "PowBackward",
        "AddBackward",
        "MulBackward",
    ]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda pairs: [(7.0, 7.0) for _ in pairs], "the slope towards x at ("),
        (lambda pairs: [1.0 for _ in pairs], "expected 2 values: the slope towards x at ("),
        (lambda pairs: [None for _ in pairs], "; is `return` missing?"),
    ],
)
def test_a_slope_is_named_with_its_pair(answer, words):
    assert words in tape.max_rule.check(answer).text
