"""Each exercise of each lesson knows its answer and each mistake, for 20 learners."""

import pytest

from autograd_lab.teach import Exercise, exercises

EXERCISES = [
    task
    for name in exercises.__all__
    for task in vars(getattr(exercises, name)).values()
    if isinstance(task, Exercise)
]
MISTAKES = [
    pytest.param(exercise, hint, mistake, id=f"{exercise.name}-{number}")
    for exercise in EXERCISES
    for number, (hint, mistake) in enumerate(exercise.wrong)
]

pytestmark = pytest.mark.usefixtures("variant")


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_the_oracle_is_correct_and_the_blank_unanswered(exercise):
    assert exercise.check(exercise.oracle).ok
    assert exercise.check(...).text == "not answered yet"


@pytest.mark.parametrize(("exercise", "hint", "mistake"), MISTAKES)
def test_each_mistake_gets_its_own_hint(exercise, hint, mistake):
    text = exercise.check(mistake(**exercise.data())).text
    assert text.startswith("not yet: ")
    assert text.endswith(f": {hint}") or text.endswith(f"; {hint}")  # after a wrong shape


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_every_exercise_has_mistakes_and_hints(exercise):
    assert len(exercise.wrong) >= 4
    assert len(exercise.hints) >= 3
