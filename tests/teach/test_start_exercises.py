"""Lesson 00: each exercise knows its answer and each mistake, for 20 learners."""

import pytest
import torch

import autograd_lab as al
from autograd_lab.teach.exercises import start

EXERCISES = [start.slope, start.arrival]
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


def test_the_slope_is_that_of_paper():
    assert start.slope.check(2 * start.slope.data()["x"] + 1).ok


def test_the_arrival_is_where_a_stepper_finds_it():
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
