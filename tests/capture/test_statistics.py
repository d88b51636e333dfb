"""Numbers of a picture, at the ends of what floats can hold; numpy's warnings would be errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import autograd_lab as al
from autograd_lab.capture.statistics import Picture, detail_of, norm_of


@pytest.mark.parametrize(
    ("numbers", "norm"),
    [
        ([3.0, 4.0], 5.0),
        ([3e200, 4e200], 5e200),
        ([3e-200, 4e-200], 5e-200),
        ([1e200, math.inf], math.inf),
        ([math.inf, math.nan, 1e300], math.nan),
        ([], 0.0),
    ],
    ids=["plain", "huge", "tiny", "inf", "nan", "empty"],
)
def test_norm_neither_overflows_nor_underflows(numbers, norm):
    assert norm_of(np.array(numbers)) == pytest.approx(norm, nan_ok=True, rel=1e-12)


def test_norm_of_large_single_precision_complex_numbers_is_finite():
    assert norm_of(np.array([3e38 + 3e38j], np.complex64)) == pytest.approx(3e38 * 2**0.5)


def test_norm_of_integers_is_not_made_up():
    assert norm_of(np.array([3, 4])) is None


def test_mean_of_the_largest_doubles_is_finite():
    assert detail_of(Picture(data=np.full(4, 1e308))).mean == 1e308


@pytest.mark.parametrize("dtype", ["int8", "bool", "uint8", "complex64", "float32"])
def test_detail_counts_each_kind_of_number(dtype):
    numbers = np.array([0, 1, 1], dtype)

    detail = detail_of(Picture(data=numbers))

    assert (detail.min, detail.max, detail.zeros, detail.nans, detail.infs) == (0, 1, 1, 0, 0)
    assert detail.values.array.tolist() == numbers.tolist()


def test_histogram_of_the_least_and_largest_numbers():
    numbers = np.array([5e-324, 1.0, -1.7e308, 0.0, math.nan])

    histogram = detail_of(Picture(data=numbers)).histogram

    assert histogram.first_exponent == -1073
    assert sum(histogram.counts) == 3


def test_of_a_stack_of_images_whole_images_are_kept():
    x = torch.arange(16.0 * 16 * 4 * 4).view(16, 16, 4, 4).requires_grad_()
    with al.record() as rec:
        (x * 1.0).sum().backward()
    values = rec.recording.events[0].outputs[0].values
    assert values.shape == (4, 16, 4, 4)
    assert values.sampled_from == (16, 16, 4, 4)
    assert values.array.tolist() == x.detach()[::4].tolist()
