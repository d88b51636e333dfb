"""Lesson 01: each exercise knows its answer and each mistake, for 20 learners."""

import pytest
import torch

from autograd_lab.teach.exercises import tape

EXERCISES = [tape.two_paths, tape.max_rule, tape.backward_order]
MISTAKES = [
    pytest.param(exercise, hint, mistake, id=f"{exercise.name}-{number}")
    for exercise in EXERCISES
    for number, (hint, mistake) in enumerate(exercise.wrong)
]


@pytest.fixture(params=range(20), autouse=True)
def variant(request, monkeypatch):
    monkeypatch.setenv("AUTOGRAD_LAB_VARIANT", str(request.param))


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_the_oracle_is_correct_and_the_blank_unanswered(exercise):
    assert exercise.check(exercise.oracle).ok
    assert exercise.check(...).text == "not answered yet"


@pytest.mark.parametrize(("exercise", "hint", "mistake"), MISTAKES)
def test_each_mistake_gets_its_own_hint(exercise, hint, mistake):
    assert exercise.check(mistake).text == f"not yet: {hint}"


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


def test_the_order_can_be_built_in_torch():
    steps = {
        "AddBackward": lambda x: x + 1,
        "MulBackward": lambda x: x * 2,
        "PowBackward": lambda x: x**2,
    }
    result = torch.ones(1, requires_grad=True)
    for name in reversed(tape.backward_order.data()["order"]):
        result = steps[name](result)
    ran, node = [], result.grad_fn
    while node.next_functions:
        ran.append(node.name().rstrip("0123456789"))
        node = node.next_functions[0][0]
    assert tape.backward_order.check(ran).ok
