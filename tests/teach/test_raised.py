"""An exception of a learner's code as one line: class, message, and the learner's own line."""

import torch

from autograd_lab.teach.raised import raised


def error_of(function):
    try:
        function()
    except Exception as error:
        return error


def test_class_message_and_line_are_told():
    def divide():
        return 1 / 0

    assert raised(error_of(divide)) == (
        "your code raised ZeroDivisionError: division by zero; in your line `return 1 / 0`"
    )


def test_the_line_is_the_learners_and_not_torchs():
    def differentiate():
        torch.ones(1).backward()

    assert raised(error_of(differentiate)).endswith("in your line `torch.ones(1).backward()`")


def test_the_innermost_line_of_the_learner_is_shown():
    def inner():
        return undefined_name  # noqa: F821

    assert "in your line `return undefined_name" in raised(error_of(lambda: inner()))


def test_computing_with_a_blank_is_no_error():
    assert raised(error_of(lambda: 2 * ...)).startswith("not answered yet: a ... still stands")


def test_a_long_message_is_cut_to_its_first_line():
    def shout():
        message = "long " * 200 + "\nsecond"
        raise ValueError(message)

    told = raised(error_of(shout))
    assert "second" not in told
    assert len(told) < 400


def test_an_error_without_message_or_source_is_its_class():
    code = compile("raise KeyError", "<nowhere>", "exec")
    assert raised(error_of(lambda: exec(code, {}))).startswith("your code raised KeyError; in your")
    assert raised(KeyError()) == "your code raised KeyError"
