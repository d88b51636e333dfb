"""Every rule of an exercise: blanks, values, functions, mistakes, data, hints, solutions."""

import re
import subprocess
import sys

import numpy as np
import pytest
import torch

from autograd_lab.errors import ExerciseError
from autograd_lab.teach import Exercise, progress

MISTAKES = [
    ("that is the value, not the derivative", lambda x: x**3),
    ("the power comes down, did you multiply by it?", lambda x: x**2),
]


def draw(generator):
    return {"x": torch.randint(1, 5, (3,), generator=generator).double()}


def derivative(x):
    return 3 * x**2


def cube(**options):
    fields = {"make": draw, "oracle": derivative, "wrong": MISTAKES, "hints": ["first", "second"]}
    return Exercise("cube", **{**fields, **options})


@pytest.mark.usefixtures("variant")
def test_the_oracle_is_correct():
    assert cube().check(derivative).ok


@pytest.mark.usefixtures("variant")
@pytest.mark.parametrize(("hint", "mistake"), MISTAKES, ids=["value", "no factor"])
def test_each_mistake_gets_its_own_hint(hint, mistake):
    verdict = cube().check(mistake)
    assert repr(verdict) == f"cube: not yet: {hint}"
    assert not verdict.ok


@pytest.mark.usefixtures("variant")
def test_data_under_which_a_mistake_would_be_right_are_drawn_again():
    x = cube().data()["x"]
    assert not torch.equal(x**3, derivative(x))


def test_a_draw_that_hides_a_mistake_does_occur():
    draws = [draw(torch.Generator().manual_seed(seed))["x"] for seed in range(200)]
    assert any(torch.equal(x**3, derivative(x)) for x in draws)


@pytest.mark.parametrize("blank", [..., lambda x: ..., lambda x: [1, ...], [..., 1]])
def test_a_blank_is_not_answered_yet(blank):
    verdict = cube().check(blank)
    assert verdict.text == "not answered yet"
    assert not verdict.ok


@pytest.mark.parametrize("skeleton", [lambda x: 2 * ..., lambda x: x + ..., lambda x: (...).sum()])
def test_computing_with_a_blank_is_not_answered_yet(skeleton):
    assert cube().check(skeleton).text.startswith("not answered yet: a ... still stands")


def test_a_function_without_return_is_told():
    assert "return" in cube().check(lambda x: None).text


def test_a_value_is_judged_like_a_function():
    exercise = cube()
    value = derivative(**exercise.data())
    assert exercise.check(value).ok
    assert exercise.check(value.tolist()).ok
    assert exercise.check(value.float().requires_grad_()).ok


def test_code_that_raises_is_named_in_one_line():
    verdict = cube().check(lambda x: 1 / 0)
    assert verdict.text.startswith("your code raised ZeroDivisionError: division by zero; in your")


def test_a_long_message_is_cut():
    def shout(x):
        raise ValueError("long " * 200 + "\nsecond line")

    text = cube().check(shout).text
    assert len(text) < 300
    assert "second line" not in text.partition("; in your line")[0]


def test_an_error_inside_with_is_the_next_verdict_and_no_longer():
    exercise = cube()
    with exercise:
        torch.ones(3)[7]
    told = exercise.check(...).text
    assert told.startswith("your code raised IndexError: ")
    assert told.endswith("; in your line `torch.ones(3)[7]`")
    assert exercise.check(...).text == "not answered yet"


def test_a_second_with_that_works_forgets_the_error_of_the_first():
    exercise = cube()
    with exercise:
        raise ValueError
    with exercise:
        answer = derivative(**exercise.data())
    assert exercise.check(answer).ok


def test_a_blank_inside_with_is_not_answered_yet():
    exercise = cube()
    with exercise:
        torch.add(1, 2 * ...)
    assert exercise.check(...).text.startswith("not answered yet: a ... still stands in your code")
    assert exercise.solution().text.startswith("check an answer first")


def test_an_interrupt_inside_with_is_not_swallowed():
    with pytest.raises(KeyboardInterrupt), cube():
        raise KeyboardInterrupt


def test_an_explanation_is_asked_for_where_no_mistake_is_known():
    exercise = cube(explain=lambda answer, x: f"{answer} is no cube")
    assert exercise.check(7).text == "not yet: 7 is no cube"
    assert exercise.check(lambda x: x**3).text == f"not yet: {MISTAKES[0][0]}"


def test_an_unknown_number_points_to_the_hints():
    assert cube().check(torch.ones(3)).text.endswith("; .hint() helps")
    assert "hint" not in cube(hints=()).check(torch.ones(3)).text


def test_an_interrupt_is_not_swallowed():
    def stop(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cube().check(stop)


def test_other_parameter_names_are_told():
    text = cube().check(lambda y: y).text
    assert text == "not yet: your function takes (y); give it the arguments (x)"


def test_a_number_that_can_be_called_is_a_number():
    class Step(int):  # as the place of a Stepper
        def __call__(self):
            return "one step on"

    assert Exercise("step", make=lambda g: {}, oracle=lambda: 9).check(Step(9)).ok


def test_exercises_of_one_series_have_the_same_data_and_others_their_own():
    first, second = (Exercise(n, make=draw, oracle=derivative, series="s") for n in ("a", "b"))
    assert torch.equal(first.data()["x"], second.data()["x"])
    alone = [Exercise(name, make=draw, oracle=derivative).data()["x"] for name in "abcdefgh"]
    assert len({tuple(x.tolist()) for x in alone}) > 1


def test_a_class_is_a_value_and_not_a_function_to_call():
    assert "your answer is the class int" in cube().check(int).text


def test_the_parts_of_the_answer_have_names_that_follow_from_the_data():
    exercise = Exercise(
        "pair",
        make=lambda generator: {"a": 7.0},
        oracle=lambda a: (a, 2 * a),
        names=lambda a: (f"the slope at {a:g}", "the other slope"),
    )
    assert exercise.check((1, 14)).text == (
        "not yet: the slope at 7 is 1; another number is right; the rest is right"
    )


def test_a_wrong_shape_comes_before_the_values():
    assert "shape (2,); expected shape (3,)" in cube().check(lambda x: x[:2]).text


def test_an_answer_in_place_damages_neither_data_nor_later_checks():
    exercise = cube()
    before = exercise.data()["x"]
    exercise.check(lambda x: x.mul_(0))
    exercise.data()["x"].zero_()
    assert torch.equal(exercise.data()["x"], before)
    assert exercise.check(derivative).ok


def test_data_keep_requires_grad_and_nested_parts_are_copies_too():
    kept = {
        "w": torch.ones(2, requires_grad=True),
        "parts": [torch.ones(1), (np.ones(2), "word")],
    }
    exercise = Exercise("nested", make=lambda g: kept, oracle=lambda w, parts: w.sum())
    data = exercise.data()
    assert data["w"].requires_grad
    data["parts"][0].zero_()
    data["parts"][1][0][:] = 0
    assert kept["parts"][0].item() == 1
    assert kept["parts"][1][0].sum() == 2


def test_data_differ_between_learners_and_stay_the_same_for_one(monkeypatch):
    drawn = set()
    for learner in ("anna", "ben", "chi", "anna"):
        monkeypatch.setenv("AUTOGRAD_LAB_VARIANT", learner)
        drawn.add(tuple(cube().data()["x"].tolist()))
    assert 1 < len(drawn) < 4


def test_an_empty_variant_is_variant_0(monkeypatch):
    wanted = cube().data()["x"]
    monkeypatch.setenv("AUTOGRAD_LAB_VARIANT", "")
    assert torch.equal(cube().data()["x"], wanted)


def test_torchs_random_state_is_not_touched():
    before = torch.get_rng_state()
    exercise = cube()
    exercise.data()
    exercise.check(derivative)
    assert torch.equal(torch.get_rng_state(), before)


def test_mistakes_that_no_data_tell_apart_are_an_error_of_the_author():
    twins = [("one", lambda x: x), ("two", lambda x: x * 1)]
    with pytest.raises(ExerciseError, match="always the same") as caught:
        cube(wrong=twins).data()
    assert caught.value.facts["name"] == "cube"


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"oracle": 3}, "can't be called"),
        ({"hints": "one string"}, "list of hints"),
        ({"wrong": [("hint",)]}, "pairs"),
        ({"wrong": [("same", derivative), ("same", derivative)]}, "own"),
        ({"tol": -1.0}, "tol"),
        ({"tol": float("nan")}, "tol"),
    ],
)
def test_a_bad_setup_is_refused(options, word):
    with pytest.raises(ExerciseError, match=word):
        cube(**options)


@pytest.mark.parametrize("name", ["two words", "", "a\nb"])
def test_a_name_is_one_word(name):
    with pytest.raises(ExerciseError, match="one word"):
        Exercise(name, make=draw, oracle=derivative)


def test_hints_come_in_steps_and_the_last_one_stays():
    exercise = cube()
    texts = [exercise.hint().text for _ in range(3)]
    assert texts == ["hint 1 of 2: first", "hint 2 of 2: second", "hint 2 of 2: second"]


def test_an_exercise_without_hints_says_so():
    assert "no hints" in cube(hints=()).hint().text


def test_the_solution_is_shown_only_after_an_attempt():
    exercise = cube()
    exercise.check(...)
    assert "3 * x**2" not in exercise.solution().text
    exercise.check(lambda x: x)
    assert "return 3 * x**2" in exercise.solution().text


def test_the_solution_can_be_forced():
    assert "return 3 * x**2" in cube().solution(force=True).text


def test_an_oracle_without_source_is_said():
    assert "no solution" in cube(oracle=eval("lambda x: 3 * x**2")).solution(force=True).text


def test_the_answer_may_be_a_string_a_flag_or_a_tree():
    exercise = Exercise("mixed", make=lambda g: {}, oracle=lambda: {"w": ("sum", True, 2)})
    assert exercise.check({"w": ["sum", True, 2.0]}).ok
    assert "answer['w'][1] is False" in exercise.check({"w": ["sum", False, 2]}).text


def test_every_verdict_is_kept_in_the_progress_file():
    exercise = cube()
    exercise.check(...)
    exercise.check(lambda x: x)
    exercise.check(derivative)
    assert re.search(r"done +cube +exercise +correct, 2 tries", progress().show().text)


@pytest.mark.parametrize(
    ("answer", "ok", "wrong"),
    [
        (..., False, False),
        (lambda x: 2 * ..., False, False),
        (lambda x: x, False, True),
        (lambda x: 1 / 0, False, True),
        (lambda y: y, False, True),
        (derivative, True, False),
    ],
    ids=["blank", "skeleton", "mistake", "raises", "other argument", "right"],
)
def test_only_what_has_to_be_mended_is_marked_wrong(answer, ok, wrong):
    verdict = cube().check(answer)
    assert (verdict.ok, verdict.wrong) == (ok, wrong)


def test_hints_solutions_and_progress_are_not_wrong():
    exercise = cube()
    told = [exercise.hint(), exercise.solution(), progress().show()]
    assert not [verdict for verdict in told if verdict.wrong]


def counted(**options):
    return Exercise("count", make=lambda g: {"n": 4}, oracle=lambda n: n, **options)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (2.5, "2.5"),
        (torch.tensor(2.5), "2.5"),
        (np.float32(2.5), "2.5"),
        (float("nan"), "NaN (not a number)"),
        (float("inf"), "inf"),
        (1j, "0+1j"),
    ],
)
def test_a_count_has_to_be_whole_before_anything_else_is_said(answer, told):
    exercise = counted(explain=lambda answer, n: "a step before")
    verdict = exercise.check(answer)
    assert verdict.text == f"not yet: your answer is {told}; expected a whole number"


@pytest.mark.parametrize("answer", [4, 4.0, torch.tensor(4.0), np.int64(4)])
def test_a_whole_number_may_come_in_any_form(answer):
    assert counted().check(answer).ok


def test_a_list_or_text_where_a_count_is_asked_for_says_so():
    assert "has shape (1,); expected a single number" in counted().check([4]).text
    assert "the text '4'; expected a whole number" in counted().check("4").text


def test_data_say_themselves_and_are_a_plain_dict():
    data = cube().data()
    assert repr(data) == "your x has shape (3,)"
    assert data == {"x": data["x"]}


def test_data_asked_for_inside_a_recording_add_no_step():
    code = (
        "import autograd_lab as al\n"
        "from autograd_lab.teach.exercises import start\n"
        "with al.record() as rec:\n"
        "    start.arrival.data(), start.slope.data()\n"
        "print(len(rec.recording.ops), len(rec.recording.nodes))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "0 0\n"
