"""Exercises of lesson 02, backprop by hand: eight gradients of a two-layer net on four digits.

All eight share their data, those of `net()`, so that one gradient leads to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from autograd_lab.teach.exercise import Exercise
from autograd_lab.teach.exercises.digits_net import (
    CLASSES,
    IMAGES,
    Pass,
    draw_net,
    picture,
    run_net,
)
from autograd_lab.teach.exercises.grad_predictions import (
    detached,
    grads_at_relu,
    inside_no_grad,
    second_backward,
    shared_grads,
    two_backwards,
    zeroed,
)

__all__ = [
    "d_b1",
    "d_b2",
    "d_h",
    "d_logits",
    "d_w1",
    "d_w2",
    "d_x",
    "d_z",
    "detached",
    "grads_at_relu",
    "inside_no_grad",
    "net",
    "picture",
    "second_backward",
    "shared_grads",
    "two_backwards",
    "zeroed",
]

_TOL = 1e-5  # float32: a sum of 64 products in another order differs by less than 1e-6

Mistake = Callable[[Pass], torch.Tensor]


def net() -> tuple[torch.Tensor, ...]:
    """Return this learner's x, y, w1, b1, w2, b2; all but y want a gradient.

    x (4, 64) four digits of 8x8, y (4, 10) their labels as one-hot rows, w1 (64, 16), b1 (16,),
    w2 (16, 10), b2 (10,).
    """
    data = d_logits.data()
    return tuple(
        tensor if name == "y" else tensor.requires_grad_() for name, tensor in data.items()
    )


def _gradient(
    of: str, wrong: Sequence[tuple[str, Mistake]], hints: Sequence[str], form: str
) -> Exercise:
    """One of the eight; the last hint is its shape and the form of the answer."""

    def on_data(mistake: Mistake) -> Callable[..., torch.Tensor]:
        return lambda **data: mistake(run_net(**data)).detach()

    return Exercise(
        f"d_{of}",
        make=draw_net,
        oracle=on_data(lambda run: getattr(run.d, of)),
        wrong=[(hint, on_data(mistake)) for hint, mistake in wrong],
        hints=[*hints, f"It has the shape of {of}: {form}."],
        tol=_TOL,
        names=lambda **data: f"d_{of}",
        series="backprop",
        why_shape=f"a gradient has the shape of its tensor, here of {of}",
    )


d_logits = _gradient(
    "logits",
    [
        ("that is p alone: the label's 1 is missing, p - y", lambda r: r.p / IMAGES),
        (
            "the division by the batch is missing: the loss is a mean over 4 images",
            lambda r: r.p - r.y,
        ),
        (
            "the sign is turned: a larger logit of the right class makes the loss smaller",
            lambda r: (r.y - r.p) / IMAGES,
        ),
        (
            "the mean is over the 4 images, not over all 40 logits",
            lambda r: (r.p - r.y) / (IMAGES * CLASSES),
        ),
        (
            "those are the logits minus y: first make probabilities of them, p",
            lambda r: (r.logits - r.y) / IMAGES,
        ),
    ],
    [
        "For one image the loss is -log p of the right class; its gradient has a short form.",
        "For one image: every class gets its p, the right class gets p - 1.",
    ],
    "(4, 10), (p - y) / 4",
)

d_w2 = _gradient(
    "w2",
    [
        ("it is transposed: w2 is (16, 10), h comes first", lambda r: r.d.logits.T @ r.h),
        (
            "d_logits has been divided by the batch already; here nothing more is divided",
            lambda r: r.h.T @ r.d.logits / IMAGES,
        ),
        (
            "that uses z; w2 was multiplied by h, what comes out of relu",
            lambda r: r.z.T @ r.d.logits,
        ),
        (
            "that is the mean over the images; each image's part is added",
            lambda r: (r.h.unsqueeze(2) * r.d.logits.unsqueeze(1)).mean(0) / IMAGES,
        ),
        (
            "no sum over the batch: that is one matrix for each image",
            lambda r: r.h.unsqueeze(2) * r.d.logits.unsqueeze(1),
        ),
    ],
    [
        "One number of w2 joins one hidden unit to one class: its slope is that unit's h.",
        "The images of the batch are summed: a matrix product does that.",
    ],
    "(16, 10), from (16, 4) @ (4, 10)",
)

d_b2 = _gradient(
    "b2",
    [
        (
            "no sum over the batch: b2 was used for each image, so what arrives is added",
            lambda r: r.d.logits,
        ),
        (
            "that is the mean over the batch: d_logits has been divided already",
            lambda r: r.d.logits.mean(0),
        ),
        (
            "that is summed over the classes; keep them, sum over the images",
            lambda r: r.d.logits.sum(1),
        ),
        ("that is summed over everything; keep the classes", lambda r: r.d.logits.sum()),
    ],
    ["b2 is added to each row of logits, with slope 1.", "A variable used 4 times gets 4 parts."],
    "(10,), d_logits summed over its first dimension",
)

d_h = _gradient(
    "h",
    [
        ("it is transposed: h is (4, 16)", lambda r: r.w2 @ r.d.logits.T),
        (
            "multiplied by h: its own value is no slope of a product, w2 is",
            lambda r: r.d.logits @ r.w2.T * r.h,
        ),
        (
            "that has relu's rule in it already: here is what arrives before it",
            lambda r: r.d.z,
        ),
        (
            "d_logits has been divided by the batch already; here nothing more is divided",
            lambda r: r.d.logits @ r.w2.T / IMAGES,
        ),
    ],
    ["The slope of h @ w2 towards h is w2.", "Sum over the 10 classes, by a matrix product."],
    "(4, 16), from (4, 10) @ (10, 16)",
)

d_z = _gradient(
    "z",
    [
        ("relu is missing: where z is below 0, nothing goes through", lambda r: r.d.h),
        (
            "multiplied by h: relu's slope is 0 or 1, not its value",
            lambda r: r.d.h * r.h,
        ),
        (
            "what counts is whether z was above 0, not whether its gradient is",
            lambda r: r.d.h * (r.d.h > 0),
        ),
        ("the wrong way round: where z is above 0, all goes through", lambda r: r.d.h * (r.z <= 0)),
        ("that is only relu's slope; what arrived is multiplied by it", lambda r: 1.0 * (r.z > 0)),
    ],
    ["relu has slope 1 where z > 0, else 0.", "(z > 0) is a mask that can be multiplied by."],
    "(4, 16), d_h where z > 0, else 0",
)

d_w1 = _gradient(
    "w1",
    [
        ("it is transposed: w1 is (64, 16), x comes first", lambda r: r.d.z.T @ r.x),
        ("that uses d_h: on the way back relu comes first, d_z", lambda r: r.x.T @ r.d.h),
        (
            "d_z has been divided by the batch already; here nothing more is divided",
            lambda r: r.x.T @ r.d.z / IMAGES,
        ),
        (
            "no sum over the batch: that is one matrix for each image",
            lambda r: r.x.unsqueeze(2) * r.d.z.unsqueeze(1),
        ),
    ],
    ["The same rule as for w2, one layer further down.", "x stands where h stood."],
    "(64, 16), from (64, 4) @ (4, 16)",
)

d_b1 = _gradient(
    "b1",
    [
        (
            "no sum over the batch: b1 was used for each image, so what arrives is added",
            lambda r: r.d.z,
        ),
        (
            "that is the mean over the batch: d_z has been divided already",
            lambda r: r.d.z.mean(0),
        ),
        ("that uses d_h: on the way back relu comes first, d_z", lambda r: r.d.h.sum(0)),
        (
            "that is summed over the hidden units; keep them, sum over the images",
            lambda r: r.d.z.sum(1),
        ),
    ],
    ["The same rule as for b2, one layer further down.", "Which gradient arrives at z?"],
    "(16,), d_z summed over its first dimension",
)

d_x = _gradient(
    "x",
    [
        ("it is transposed: x is (4, 64)", lambda r: r.w1 @ r.d.z.T),
        ("that uses d_h: on the way back relu comes first, d_z", lambda r: r.d.h @ r.w1.T),
        (
            "multiplied by x: its own value is no slope of a product, w1 is",
            lambda r: r.d.z @ r.w1.T * r.x,
        ),
        (
            "d_z has been divided by the batch already; here nothing more is divided",
            lambda r: r.d.z @ r.w1.T / IMAGES,
        ),
    ],
    ["The same rule as for h, one layer further down.", "The slope of x @ w1 towards x is w1."],
    "(4, 64), from (4, 16) @ (16, 64)",
)
