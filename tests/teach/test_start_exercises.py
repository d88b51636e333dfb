"""Lesson 00: the exercises agree with paper and with the Stepper, for 20 learners."""

import pytest
import torch

import autograd_lab as al
from autograd_lab.teach.exercises import start

pytestmark = pytest.mark.usefixtures("variant")


def test_the_slope_is_that_of_paper():
    assert start.slope.check(2 * start.slope.data()["x"] + 1).ok


def test_the_arrival_is_where_a_stepper_finds_it():
    start.arrival.data()  # this learner's are drawn here, as the first one's are at import
    x = torch.tensor(2.0, requires_grad=True)
    with al.record() as rec:
        y = x
        for _ in range(start.arrival.data()["factors"] - 1):
            y = y * x
        y.backward()
    stepper = al.Stepper(rec.recording)
    stepper.run_until(accumulate=True)
    assert start.arrival.check(stepper.step).ok
    stepper.step()
    assert start.arrival.check(stepper.step).text.startswith("not yet: there the node of x has fin")


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (lambda x: -(2 * x + 1), "the sign is turned"),
        (lambda x: x, "one of the two gradients that x * x sends to x"),
        (lambda x: 1.0, "only what comes from the x added"),
        (lambda x: 2 * (2 * x + 1), "a second backward() adds to .grad"),
        (lambda x: x * x + x, "that is y itself"),
        (lambda x: 1000.0, "another number is right; .hint() helps"),
    ],
    ids=["sign", "one path", "other path", "two passes", "value", "unknown"],
)
def test_a_wrong_slope_gets_more_than_another_number_is_right(answer, hint):
    assert hint in start.slope.check(answer).text


def test_each_step_before_the_arrival_is_told_apart():
    right = start.arrival.oracle(**start.arrival.data())
    told = [start.arrival.check(step).text for step in range(right + 3)]
    assert told[right] == "correct"
    assert not [text for text in told if "another number" in text]
    assert "the recording has the steps 1 to " in told[0]
    assert "step 1 is still forward" in told[1]
    assert "the gradient is in a product" in told[right - 2]


def test_a_stepper_as_the_answer_is_told_what_is_meant():
    class Stepper:
        step = 9

    assert start.arrival.check(Stepper()).text == "not yet: do you mean its .step?"


@pytest.mark.parametrize("answer", [2.5, torch.tensor(2.5)])
def test_a_step_between_two_steps_is_told_to_be_no_whole_number(answer):
    told = start.arrival.check(answer).text
    assert told == "not yet: your answer is 2.5; expected a whole number"


def test_true_is_no_step_and_a_tensor_is_one():
    assert "is True; expected a whole number" in start.arrival.check(True).text
    assert "step 1 is still forward" in start.arrival.check(torch.tensor(1)).text


def test_run_until_goes_to_an_operation_a_variable_and_a_node():
    x = torch.tensor(3.0, requires_grad=True)
    with al.record() as rec:
        y = x * x + x
        y.backward()
    stepper = al.Stepper(rec.recording)
    steps = {}
    for name in ("mul", "y", "MulBackward*", "x.grad"):
        stepper.go(0)
        stepper.run_until(name)
        steps[name] = stepper.step
    assert steps == {"mul": 1, "y": 2, "MulBackward*": 6, "x.grad": 8}
