"""Data of an exercise in words: one number, several, lists, counts, texts, tensors."""

import pytest
import torch

from autograd_lab.teach import Exercise, exercises
from autograd_lab.teach.given import Given

EXERCISES = [
    task
    for name in exercises.__all__
    for task in vars(getattr(exercises, name)).values()
    if isinstance(task, Exercise)
]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"x": 10.0}, "your x is 10"),
        ({"a": 7.0, "b": 9.0}, "your a is 7, b is 9"),
        ({"factors": 4}, "your number of factors is 4"),
        ({"gradients": [4.0, 6.0]}, "your gradients are 4, 6"),
        ({"pairs": [(9.0, 1.0), (1.5, 9.0)]}, "your pairs are (9, 1), (1.5, 9)"),
        ({"order": ["AddBackward", "MulBackward"]}, "your order is AddBackward, MulBackward"),
        ({"w": torch.ones(2, 3)}, "your w has shape (2, 3)"),
        ({"s": torch.tensor(2.5)}, "your s is 2.5"),
        ({"is_last": True}, "your is_last is True"),
        ({}, "no data"),
    ],
)
def test_data_are_shown_in_words(data, words):
    assert repr(Given(data)) == words


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_every_exercise_shows_its_data_in_words(exercise):
    assert repr(exercise.data()).startswith("your ")
    assert "{" not in repr(exercise.data())
