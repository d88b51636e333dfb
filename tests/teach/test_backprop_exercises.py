"""Lesson 02: each of the eight gradients knows its answer and each mistake, for 20 learners."""

import pytest
import torch

from autograd_lab.teach.exercises import backprop

EXERCISES = [
    getattr(backprop, f"d_{name}") for name in ("logits", "w2", "b2", "h", "z", "w1", "b1", "x")
]
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
    data = exercise.data()
    assert exercise.check(mistake(**data)).text == f"not yet: {hint}"


def test_the_eight_lines_by_hand_are_right():
    x, y, w1, b1, w2, b2 = backprop.net()
    z = x @ w1 + b1
    h = z.relu()
    d_logits = ((h @ w2 + b2).softmax(dim=1) - y) / 4
    d_h = d_logits @ w2.T
    d_z = d_h * (z > 0)
    mine = [d_logits, h.T @ d_logits, d_logits.sum(0), d_h, d_z, x.T @ d_z, d_z.sum(0), d_z @ w1.T]
    verdicts = [exercise.check(answer) for exercise, answer in zip(EXERCISES, mine, strict=True)]
    assert [verdict.text for verdict in verdicts] == ["correct"] * 8


def test_all_eight_have_the_same_data_and_it_is_that_of_the_net():
    net = backprop.net()
    for exercise in EXERCISES:
        assert all(map(torch.equal, exercise.data().values(), net))


def test_all_but_the_labels_want_a_gradient():
    assert [tensor.requires_grad for tensor in backprop.net()] == [True, False, *[True] * 4]


def test_every_learner_has_some_hidden_units_on_and_some_off():
    x, _, w1, b1, *_ = backprop.net()
    share = (x @ w1 + b1 > 0).float().mean().item()
    assert 0.1 < share < 0.9


def test_the_picture_has_eight_lines_and_ink_where_pixels_are_bright():
    x = torch.zeros(2, 64)
    x[0, 0], x[1, 9], x[1, 63] = 1.0, 0.6, 1.0
    lines = backprop.picture(x).split("\n")
    assert lines == ["@", "            o", "", "", "", "", "", " " * 18 + "@"]
