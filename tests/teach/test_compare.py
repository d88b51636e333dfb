"""compare and expect_error: verdicts without noisy digits, and mistakes named only when certain."""

import pytest
import torch

from autograd_lab.errors import ExerciseError
from autograd_lab.teach import compare, expect_error

W = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]], dtype=torch.float64)


def text(mine, tensor):
    return compare("w", mine, tensor).text


def test_equal_values_are_exact():
    verdict = compare("w", W.clone(), W)
    assert repr(verdict) == "w: exact: equal to torch's value"
    assert verdict.ok


def test_rounding_is_right_but_not_exact():
    verdict = compare("w", W + 1e-9, W)
    assert verdict.text == "right: equal up to rounding"
    assert verdict.ok


def test_a_blank_is_not_answered_yet():
    assert text(..., W) == "not answered yet"


def test_a_missing_gradient_is_told():
    assert "your answer is None; expected a tensor of shape (2, 3)" in text(None, W)


def test_a_gradient_of_torch_that_is_not_there_yet_is_told():
    assert text(W, None).startswith(
        "nothing to compare with: torch's value is None; run backward()"
    )


@pytest.mark.parametrize(
    ("mine", "words"),
    [(W.T, "it is transposed"), (W * 32, "everything is 32 times too large")],
)
def test_a_certain_mistake_is_named_and_the_size_of_the_difference_is_not(mine, words):
    verdict = compare("w", mine, W)
    assert words in verdict.text
    assert "largest difference" not in verdict.text
    assert not verdict.ok


def test_the_size_of_the_largest_difference_is_a_power_of_ten():
    mine = W.clone()
    mine[0, 0] += 0.31
    assert "1 of 6 numbers differ in your answer; the largest difference is between 0.1 and 1" in (
        text(mine, W)
    )


def test_the_text_is_the_same_when_the_last_bits_are_not():
    mine = W + 0.25
    assert text(mine, W) == text(torch.nextafter(mine, mine + 1), W)


@pytest.mark.parametrize("mine", ["six", [1, [2]], object(), torch.ones(2, 3) > 0])
def test_anything_may_be_compared(mine):
    assert text(mine, W).startswith("not yet: ")


def test_integers_and_complex_numbers_are_compared():
    assert compare("n", [1, 2], torch.tensor([1, 2])).ok
    assert "sign" in text(torch.tensor([-1j, -2j]), torch.tensor([1j, 2j]))


def test_the_expected_error_is_printed_as_class_and_phrase(capsys):
    with expect_error(RuntimeError, "does not require grad") as expected:
        torch.ones(1).sum().backward()
    assert capsys.readouterr().out == "RuntimeError: raised as expected: “does not require grad”\n"
    assert expected.verdict.ok


def test_a_subclass_counts_and_is_printed_as_the_class_named(capsys):
    with expect_error(LookupError, "key"):
        {}["key"]
    assert capsys.readouterr().out.startswith("LookupError: raised")


def test_no_error_is_not_yet(capsys):
    with expect_error(RuntimeError, "does not require grad") as expected:
        pass
    assert "not yet: no error came" in capsys.readouterr().out
    assert not expected.verdict.ok


@pytest.mark.parametrize("error", [ValueError("grad"), RuntimeError("other"), KeyboardInterrupt()])
def test_a_different_error_goes_through_unchanged(error, capsys):
    with pytest.raises(type(error)) as caught, expect_error(RuntimeError, "grad"):
        raise error
    assert caught.value is error
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("cls", "phrase"), [("RuntimeError", "x"), (RuntimeError, 3)])
def test_a_wrong_call_is_refused(cls, phrase):
    with pytest.raises(ExerciseError, match="exception class"):
        expect_error(cls, phrase)
