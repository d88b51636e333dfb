"""Exercises and predictions of lesson 01: a tape of your own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from autograd_lab.teach.exercise import Exercise
from autograd_lab.teach.exercises.backward_order import backward_order
from autograd_lab.teach.exercises.max_rule import max_rule
from autograd_lab.teach.exercises.ran_nodes import nodes_of
from autograd_lab.teach.prediction import Prediction

__all__ = [
    "backward_order",
    "first_node",
    "grad_of_a",
    "max_rule",
    "nodes_of",
    "over_passes",
    "overwritten",
    "two_passes",
    "two_paths",
]


def _two_numbers(generator: torch.Generator) -> dict[str, Any]:
    a, b = torch.randint(2, 10, (2,), generator=generator).tolist()
    return {"a": float(a), "b": float(b)}


def _four_gradients(generator: torch.Generator) -> dict[str, Any]:
    return {"gradients": torch.randint(1, 10, (4,), generator=generator).double().tolist()}


def _grad_at_the_end(gradients: Sequence[float]) -> float:
    """What torch leaves in .grad after one pass for each gradient, emptied after the second."""
    w = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.0)
    for number, gradient in enumerate(gradients, start=1):
        (w * gradient).backward()
        if number == 2:
            optimizer.zero_grad()
    assert w.grad is not None
    return w.grad.item()


def _torch_gradients(a: float, b: float) -> tuple[float, float]:
    x, y = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (a, b))
    grads = torch.autograd.grad(x * y + y * y, (x, y))
    return grads[0].item(), grads[1].item()


first_node = Prediction(
    "first_node",
    node=["PowBackward", "AddBackward", "MulBackward", "AccumulateGrad"],
    question="which of PyTorch's nodes runs first in the backward pass?",
)
grad_of_a = Prediction("grad_of_a", number=True, question="what is the gradient of a?")
overwritten = Prediction(
    "overwritten",
    choices=[64, 48, 16],
    question="what does a get if the second replaces the first?",
)

two_paths = Exercise(
    "two_paths",
    make=_two_numbers,
    oracle=_torch_gradients,
    wrong=[
        (
            "b is used in both terms: the second path must be added (+=), it doesn't replace (=)",
            lambda a, b: (b, 2 * b),
        ),
        (
            "b is used in both terms: the path through b * b is missing in its gradient",
            lambda a, b: (b, a),
        ),
        (
            "b * b uses b twice, so its slope is 2 * b",
            lambda a, b: (b, a + b),
        ),
        (
            "the right two numbers, the wrong way round: first a's gradient, then b's",
            lambda a, b: (a + 2 * b, b),
        ),
        (
            "that is the value of g in both places, not its slopes",
            lambda a, b: (a * b + b * b, a * b + b * b),
        ),
        (
            "a * b hands each factor the other one: a gets b, and b gets a",
            lambda a, b: (a, 3 * b),
        ),
        (
            "b is right; a * b hands a the other factor, not a itself",
            lambda a, b: (a, a + 2 * b),
        ),
        (
            "b is right; a is multiplied by b, so its slope is b, not 1",
            lambda a, b: (1, a + 2 * b),
        ),
        (
            "b is right; what a gets is the other factor, not the product",
            lambda a, b: (a * b, a + 2 * b),
        ),
        (
            "a is right; a * b hands b the other factor, a, not b itself",
            lambda a, b: (b, 3 * b),
        ),
        (
            "a is right; the slope of b * b is 2 * b, not its value",
            lambda a, b: (b, a + b * b),
        ),
        (
            "a is right; the slope of b * b is 2 * b, not only the factor 2",
            lambda a, b: (b, a + 2),
        ),
        (
            "a is right; the two paths to b are added, not multiplied",
            lambda a, b: (b, 2 * a * b),
        ),
        (
            "the signs are turned: g grows when a or b grows",
            lambda a, b: (-b, -a - 2 * b),
        ),
    ],
    hints=[
        "Write down every path from g back to a, and every path back to b.",
        "Multiply the slopes along a path; add what arrives by different paths.",
        "There is one path to a, with slope b. There are two terms that reach b.",
    ],
    names=lambda a, b: ("the gradient of a", "the gradient of b"),
)

two_passes = Prediction(
    "two_passes",
    choices=[64, 128, "an error"],
    question="what does .grad of a hold after the second pass?",
)

over_passes = Exercise(
    "over_passes",
    make=_four_gradients,
    oracle=_grad_at_the_end,
    wrong=[
        (
            "zero_grad() throws away what .grad holds: the first two are gone at the end",
            lambda gradients: sum(gradients),
        ),
        (
            "the fourth is added to the third: backward() never replaces what .grad holds",
            lambda gradients: gradients[3],
        ),
        (
            "that is what zero_grad() threw away: two more passes come after it",
            lambda gradients: sum(gradients[:2]),
        ),
        (
            "zero_grad() empties .grad once; the two passes after it fill it again",
            lambda gradients: 0.0,
        ),
        (
            "zero_grad() comes after the second pass, so that the second is gone, too",
            lambda gradients: sum(gradients[1:]),
        ),
        (
            "that is what .grad holds after the third pass; the fourth is added to it",
            lambda gradients: gradients[2],
        ),
        (
            "the fourth pass is missing, and the first two are gone since zero_grad()",
            lambda gradients: sum(gradients[:3]),
        ),
        (
            "backward() adds to .grad; it takes no mean",
            lambda gradients: (gradients[2] + gradients[3]) / 2,
        ),
    ],
    hints=[
        "Go through the passes one by one and write down what .grad holds after each.",
        "Each pass adds its gradient to .grad; zero_grad() starts again from nothing.",
        "Only the third and the fourth pass come after zero_grad().",
    ],
)
