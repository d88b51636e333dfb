"""Lesson 02: the eight gradients agree with paper, and a wrong shape is told, for 20 learners."""

import pytest
import torch

from autograd_lab.teach.exercises import backprop

EXERCISES = [
    getattr(backprop, f"d_{name}") for name in ("logits", "w2", "b2", "h", "z", "w1", "b1", "x")
]
pytestmark = pytest.mark.usefixtures("variant")


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


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
@pytest.mark.parametrize("wrong", [torch.ones(3), torch.ones(2, 5, 7), torch.tensor(1.0)])
def test_a_wrong_shape_is_told_with_the_right_one_and_why(exercise, wrong):
    of = exercise.name.removeprefix("d_")
    right = tuple(exercise.oracle(**exercise.data()).shape)
    text = exercise.check(wrong).text
    assert text.startswith(f"not yet: d_{of} ")
    assert f"shape {tuple(wrong.shape)}" in text or "is a single number" in text
    assert f"expected shape {right}: a gradient has the shape of its tensor, here of {of}" in text


def test_shapes_that_torch_cannot_combine_become_a_verdict():
    h, d_logits = torch.ones(4, 16), torch.ones(4, 10)
    with backprop.d_w2:
        d_w2 = h @ d_logits
    text = backprop.d_w2.check("what was there before").text
    assert "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x16 and 4x10)" in text
    assert "in your line `d_w2 = h @ d_logits`" in text
    assert text.endswith(
        "expected shape (16, 10): a gradient has the shape of its tensor, here of w2"
    )
    assert "d_w2" not in locals()
