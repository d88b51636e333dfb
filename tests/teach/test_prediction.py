"""A prediction keeps a guess, refuses nonsense, and reveals what happened with or without one."""

import math

import ipywidgets as widgets
import numpy as np
import pytest
import torch

from autograd_lab.errors import ExerciseError, GuessError
from autograd_lab.teach import Prediction, progress


def choose():
    return Prediction("first", choices=["Pow", "Add", "Mul"])


def test_a_right_guess():
    asked = choose()
    assert repr(asked.guess("Pow")) == "first: guess kept: Pow"
    verdict = asked.reveal("Pow")
    assert repr(verdict) == "first: right: it is Pow"
    assert verdict.ok


def test_another_guess():
    asked = choose()
    asked.guess("Add")
    verdict = asked.reveal("Pow")
    assert verdict.text == "you expected Add; it is Pow"
    assert not verdict.ok


def test_without_a_guess_it_says_so_and_reveals():
    verdict = choose().reveal("Pow")
    assert verdict.text == "no guess yet; it is Pow"
    assert not verdict.ok


def test_a_blank_guess_keeps_none():
    asked = choose()
    assert asked.guess(...).text == "not answered yet"
    assert "no guess" in asked.reveal("Pow").text


@pytest.mark.parametrize("bad", ["pow", "", 3, None, True, torch.ones(2)])
def test_an_unknown_guess_is_refused_and_the_kept_one_stays(bad):
    asked = choose()
    asked.guess("Add")
    with pytest.raises(GuessError, match="Your guess Add stays"):
        asked.guess(bad)
    assert "expected Add" in asked.reveal("Pow").text


def test_a_near_miss_is_offered():
    with pytest.raises(GuessError) as caught:
        choose().guess("Pov")
    assert str(caught.value) == (
        "first: this is not kept. The text 'Pov' is none of Pow, Add, Mul. Did you mean 'Pow'? "
        "You have no guess yet."
    )


@pytest.mark.parametrize(
    ("asked", "value", "words"),
    [
        (
            Prediction("n", choices=[64, 48]),
            "48",
            "The text '48' is none of 64, 48. Did you mean 48?",
        ),
        (Prediction("n", number=True), "64", "'64' is no number. Write numbers without quotes."),
        (
            Prediction("n", number=True),
            True,
            "True is no number. Write 1 for True and 0 for False.",
        ),
        (Prediction("n", number=True), math.nan, "NaN (not a number) is no finite number."),
        (Prediction("n", number=(0, 2)), 3, "3 is not from 0 to 2."),
        (Prediction("n", node=True), 3, "3 is no name of a node. Give a node's name such as"),
        (Prediction("n", choices=[64, 48]), None, "Nothing is chosen."),
    ],
)
def test_a_refusal_says_what_was_given_and_what_is_expected(asked, value, words):
    with pytest.raises(GuessError) as caught:
        asked.guess(value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "value", [64, 64.0, np.float32(64), torch.tensor(64), torch.tensor([64.0])]
)
def test_a_number_may_come_in_any_form(value):
    asked = Prediction("n", number=True)
    asked.guess(value)
    assert asked.reveal(torch.tensor(64.0, requires_grad=True)).text == "right: it is 64"


@pytest.mark.parametrize("bad", ["64", True, math.nan, math.inf, None, torch.ones(2), 1j])
def test_what_is_no_finite_number_is_refused(bad):
    with pytest.raises(GuessError, match="number"):
        Prediction("n", number=True).guess(bad)


def test_a_number_out_of_range_is_refused_but_may_be_revealed():
    asked = Prediction("n", number=(0, 10))
    with pytest.raises(GuessError, match="from 0 to 10"):
        asked.guess(11)
    assert asked.reveal(11).text == "no guess yet; it is 11"


@pytest.mark.parametrize(("guess", "ok"), [(0.27, True), (0.25, False), (-0.2727, False)])
def test_a_rounded_guess_counts(guess, ok):
    asked = Prediction("n", number=True)
    asked.guess(guess)
    assert asked.reveal(3 / 11).ok is ok


def test_numbers_may_be_choices_and_true_is_none_of_them():
    asked = Prediction("n", choices=[1, 48])
    with pytest.raises(GuessError):
        asked.guess(True)
    asked.guess(48.0)
    assert asked.reveal(torch.tensor(48.0)).ok


@pytest.mark.parametrize("guess", ["MulBackward", "MulBackward0", " MulBackward7 "])
def test_the_number_after_a_nodes_name_is_ignored(guess):
    asked = Prediction("node", node=True)
    asked.guess(guess)
    x = torch.ones(1, requires_grad=True)
    assert asked.reveal((x * x).grad_fn).text == "right: it is MulBackward"


def test_nodes_may_be_chosen_from_names():
    asked = Prediction("node", node=["MulBackward0", "torch::autograd::AccumulateGrad"])
    assert "one of: MulBackward, AccumulateGrad" in repr(asked)
    with pytest.raises(GuessError):
        asked.guess("AddBackward0")


@pytest.mark.parametrize(
    "kinds",
    [
        {},
        {"number": True, "node": True},
        {"choices": "ab"},
        {"node": "MulBackward0"},
        {"number": 5},
        {"choices": []},
    ],
)
def test_exactly_one_kind_is_needed(kinds):
    with pytest.raises(ExerciseError, match="exactly one kind"):
        Prediction("n", **kinds)


def test_revealing_what_is_no_choice_is_an_error_of_the_author():
    with pytest.raises(ExerciseError, match="can't be revealed"):
        choose().reveal("Sub")


def mime(asked):
    return asked.ask()._repr_mimebundle_()


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (choose(), "first: what do you expect? one of: Pow, Add, Mul (no guess yet)"),
        (Prediction("n", number=True), "n: what do you expect? a number (no guess yet)"),
        (
            Prediction("n", number=(0, 2)),
            "n: what do you expect? a number from 0 to 2 (no guess yet)",
        ),
        (Prediction("n", node=True), "n: what do you expect? the name of a node (no guess yet)"),
        (
            Prediction("n", choices=[1, 2], question="how many?"),
            "n: how many? one of: 1, 2 (no guess yet)",
        ),
    ],
)
def test_the_control_says_its_state_in_text(asked, text):
    assert mime(asked)["text/plain"] == text


def test_the_text_tells_a_kept_guess():
    asked = choose()
    asked.guess("Mul")
    assert mime(asked)["text/plain"].endswith("(your guess: Mul)")


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        (choose(), widgets.RadioButtons),
        (Prediction("n", choices=range(9)), widgets.Dropdown),
        (Prediction("n", number=True), widgets.Text),
        (Prediction("n", node=True), widgets.Text),
    ],
)
def test_the_control_fits_the_question_and_has_no_output_widget(asked, kind):
    inside = asked.ask().children
    assert any(isinstance(child, kind) for child in inside)
    assert not any(isinstance(child, widgets.Output) for child in inside)


def test_no_choice_is_made_beforehand():
    assert choose().ask().children[1].value is None
    assert Prediction("n", number=True).ask().children[1].value == ""


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("64", "guess kept: 64"),
        (" -0.5 ", "guess kept: -0.5"),
        ("3 / 11", "guess kept: 0.272727"),
        ("", "Nothing is written. Give a number."),
        ("0,5", "is no number. Write a point, as in 0.5."),
        ("sixty", "is no number."),
        ("1/0", "is no number."),
    ],
)
def test_a_typed_number_is_read_as_on_paper(typed, told):
    _, control, button, answer = Prediction("n", number=True).ask().children
    control.value = typed
    button.click()
    assert told in answer.value


def test_asking_again_gives_the_same_control():
    asked = choose()
    assert asked.ask() is asked.ask()


def test_the_button_keeps_the_guess_and_says_so():
    asked = choose()
    _, control, button, answer = asked.ask().children
    control.value = "Mul"
    button.click()
    assert "guess kept: Mul" in answer.value
    assert "you expected Mul" in asked.reveal("Pow").text


def test_the_button_without_a_choice_tells_what_is_missing():
    _, _, button, answer = choose().ask().children
    button.click()
    assert "Nothing is chosen." in answer.value


def test_name_and_question_are_escaped_in_the_control():
    title = Prediction("<b>", choices=["a"], question="<i>?").ask().children[0]
    assert title.value == "<b>&lt;b&gt;</b>: &lt;i&gt;?"


def test_guess_and_reveal_are_kept_in_the_progress_file():
    asked = choose()
    asked.guess("Pow")
    asked.reveal("Pow")
    assert "done  first  prediction  right: it is Pow" in progress().show().text


def count():
    return Prediction("n", number=(0, 20), whole=True)


def test_how_many_is_a_whole_number():
    assert repr(count()) == "n: what do you expect? a whole number from 0 to 20 (no guess yet)"
    with pytest.raises(GuessError, match=r"2\.5 is no whole number"):
        count().guess(2.5)
    assert count().guess(3.0).text == "guess kept: 3"


def test_a_kept_guess_and_none_are_neutral_and_another_one_is_wrong():
    asked = choose()
    assert not asked.reveal("Pow").wrong
    assert not asked.guess("Add").wrong
    assert asked.reveal("Pow").wrong
    assert not asked.reveal("Add").wrong
