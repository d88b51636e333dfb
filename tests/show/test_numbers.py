import math

import pytest

from autograd_lab.show.numbers import count, format_nbytes, format_number, format_shape


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (123456.0, "123456"),
        (1234567.0, "1.235e6"),
        (0.00012345, "0.0001234"),
        (1.5e-7, "1.5e-7"),
        (-2.5, "-2.5"),
        (math.nan, "NaN"),
        (math.inf, "Inf"),
        (-math.inf, "-Inf"),
        (None, "none"),
        (True, "True"),
        (1 + 2j, "1+2j"),
        (complex(math.nan, -0.5), "NaN-0.5j"),
        (-0.00000001, "-1e-8"),
    ],
)
def test_a_number_has_four_digits_and_one_form(value, text):
    assert format_number(value) == text


def test_a_number_that_rounds_to_zero_has_no_minus():
    assert not format_number(-1e-320).startswith("-0")


@pytest.mark.parametrize(
    ("shape", "text"), [((), "scalar"), ((3,), "(3,)"), ((2, 3), "(2, 3)"), (None, "?")]
)
def test_shapes_read_as_torch_writes_them(shape, text):
    assert format_shape(shape) == text


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "no bytes"), (1, "1 byte"), (999, "999 bytes"), (1500, "1.5 kB"), (2_100_000, "2.1 MB")],
)
def test_bytes_use_the_largest_unit(nbytes, text):
    assert format_nbytes(nbytes) == text


def test_counts_agree_with_their_noun():
    assert [count(n, "leaf", "leaves") for n in (0, 1, 2)] == ["no leaves", "1 leaf", "2 leaves"]
