"""A mistake is named where it is certain, and only there."""

import pytest
import torch

from autograd_lab.teach.mistakes import mistake

W = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 7.5]], dtype=torch.float64)
SQUARE = torch.tensor([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        (W.T, W, "transposed"),
        (SQUARE.T, SQUARE, "transposed"),
        (W.expand(4, 2, 3) / 4, W, "sum over the first dimension is missing"),
        (W.sum(), W, "too much is summed: the sum of the right tensor is left"),
        (W.sum(0), W, "too much is summed: the first dimension has to stay"),
        (W[None], W, "the numbers are right, only their shape is not"),
        (W.flatten(), W, "the numbers are right, only their shape is not"),
        (-W, W, "every sign is the other way round"),
        (torch.tensor(-3.0), torch.tensor(3.0), "the sign is wrong"),
        (W * 32, W, "everything is 32 times too large"),
        (W / 32, W, "everything is 32 times too small"),
        (W * -2, W, "2 times too large, with the sign"),
        (W * 0, W, "it is all zeros"),
        (W.mul(1.001).half(), W.mul(1.001), "up to the rounding of float16, compute in float32"),
        (W.mul(1.01).bfloat16(), W.mul(1.01), "up to the rounding of bfloat16"),
        (W.int(), W, "the digits after the point are lost, int32 holds whole numbers"),
    ],
)
def test_a_certain_mistake_is_named(ours, theirs, words):
    assert words in mistake(ours, theirs)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (torch.tensor(6.0), torch.tensor(3.0)),
        (W * 2.5, W),
        (W + 1, W),
        (torch.full((3,), 4.0), torch.full((3,), 2.0)),
        (W * float("inf"), W),
        (W, W * 0),
        (W > 2, W),
        (W.half() + 1, W),
        (torch.ones(3), W),
        (torch.empty(0), W),
        (W.flatten().flip(0), W),
    ],
)
def test_what_is_not_certain_is_not_named(ours, theirs):
    assert mistake(ours, theirs) is None
