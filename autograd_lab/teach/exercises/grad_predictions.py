"""Predictions of lesson 02 about what runs when, and about what stays in `.grad`."""

from __future__ import annotations

from autograd_lab.teach.prediction import Prediction

__all__ = [
    "detached",
    "grads_at_relu",
    "inside_no_grad",
    "second_backward",
    "shared_grads",
    "two_backwards",
    "zeroed",
]

grads_at_relu = Prediction(
    "grads_at_relu",
    choices=["none", "b2", "b2 and w2", "all four"],
    question="which .grad exist when ReluBackward starts?",
)
shared_grads = Prediction(
    "shared_grads",
    number=(0, 20),
    whole=True,
    question="how many gradients does w.grad += wait for?",
)
second_backward = Prediction(
    "second_backward",
    choices=["8 again", "16", "an error"],
    question="what does a second y.backward() on the same graph give?",
)
two_backwards = Prediction(
    "two_backwards",
    choices=["None", "8", "16"],
    question="what does .grad of w hold after both backwards?",
)
zeroed = Prediction(
    "zeroed",
    choices=["None", "0", "16"],
    question="what does .grad of w hold after zero_grad()?",
)
detached = Prediction(
    "detached",
    choices=[6, 12, "an error"],
    question="what is the gradient of w, with detach()?",
)
inside_no_grad = Prediction(
    "inside_no_grad",
    choices=["0", "3", "an error"],
    question="what does y.backward() give, for a y made under no_grad()?",
)
