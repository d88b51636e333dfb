"""Exercises and predictions of lesson 00: start here."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from autograd_lab import capture
from autograd_lab.recording import BackwardStarted, Event, GradAccumulated, NodeStarted
from autograd_lab.teach.exercise import Exercise
from autograd_lab.teach.prediction import Prediction

__all__ = ["arrival", "cube_grad", "cube_nodes", "slope"]


def _a_number(generator: torch.Generator) -> dict[str, Any]:
    return {"x": float(torch.randint(4, 20, (), generator=generator))}


def _a_count(generator: torch.Generator) -> dict[str, Any]:
    return {"factors": int(torch.randint(4, 10, (), generator=generator))}


def _torch_slope(x: float) -> float:
    leaf = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad(leaf * leaf + leaf, leaf)[0].item()


def _events_of(factors: int) -> tuple[Event, ...]:
    """What is recorded of x * x * ... and its backward; step 1 is the first."""
    x = torch.tensor(2.0, requires_grad=True)  # outside: making it would be a step, too
    with capture.record() as recorder:
        y = x
        for _ in range(factors - 1):
            y = y * x
        y.backward()
    return recorder.recording.events


def _steps_of(factors: int, event: type) -> list[int]:
    """The steps of one kind of event."""
    events = enumerate(_events_of(factors), start=1)
    return [step for step, seen in events if isinstance(seen, event)]


def _why_not_there(step: object, factors: int) -> str | None:
    """What happens at a step that is not the one at which x.grad appears."""
    if isinstance(step, torch.Tensor | np.ndarray | np.generic) and math.prod(step.shape) == 1:
        step = step.item()
    if isinstance(step, bool) or not isinstance(step, int | float):
        return "do you mean its .step?" if hasattr(step, "step") else None
    start, last = _steps_of(factors, BackwardStarted)[0], len(_events_of(factors))
    if not 1 <= step <= last:
        return f"the recording has the steps 1 to {last}"
    if step < start:
        return f"step {step:g} is still forward: backward() starts at step {start}"
    return f"at step {step:g} the gradient is in a product; x is the last to get its own"


cube_nodes = Prediction(
    "cube_nodes",
    number=(0, 20),
    whole=True,
    question="how many nodes will run backward, x.grad += counted as one?",
)
cube_grad = Prediction("cube_grad", number=True, question="what is the gradient of x?")

slope = Exercise(
    "slope",
    make=_a_number,
    oracle=_torch_slope,
    wrong=[
        ("that is y itself; the gradient says how fast y moves", lambda x: x * x + x),
        ("the second path is missing: y also moves one to one with the x added", lambda x: 2 * x),
        ("x * x uses x twice: two gradients of x each come from it", lambda x: x + 1),
        ("the gradients that meet at x are added, not multiplied", lambda x: x * x),
        ("that is one of the two gradients that x * x sends to x; two more meet it", lambda x: x),
        ("that is only what comes from the x added; x * x moves with x, too", lambda x: 1),
        ("that is how many gradients meet at x; add them up", lambda x: 3),
        ("2 is only the factor: the slope of x * x is 2 * x", lambda x: 2),
        ("the slope of the x added is 1, not x", lambda x: 3 * x),
        ("the slope of x * x is 2 * x, not x * x", lambda x: x * x + 1),
        (
            "that is 1 too much: of the sum's two inputs one is x, the other is x * x",
            lambda x: 2 * x + 2,
        ),
        ("the 1 of the x added is added, not taken away", lambda x: 2 * x - 1),
        ("the sign is turned: y grows when x grows", lambda x: -2 * x - 1),
        ("that is twice the gradient: a second backward() adds to .grad", lambda x: 4 * x + 2),
        ("that is the gradient at x = 3; take your own x", lambda x: 7),
    ],
    hints=[
        "In the Stepper, three gradients arrive at x.grad +=. What were they at x = 3?",
        "The product hands back the other factor to each of its two inputs; the sum hands back 1.",
        "Add x and x and 1.",
    ],
)

arrival = Exercise(
    "arrival",
    make=_a_count,
    oracle=lambda factors: _steps_of(factors, GradAccumulated)[0],
    wrong=[
        (
            "there backward() starts, at y; x is the last to get its gradient",
            lambda factors: _steps_of(factors, BackwardStarted)[0],
        ),
        (
            "there the first node runs; x is the last to get its gradient",
            lambda factors: _steps_of(factors, NodeStarted)[0],
        ),
        (
            "there the node of x starts; one step on, .grad has the gradient",
            lambda factors: _steps_of(factors, NodeStarted)[-1],
        ),
        (
            "there the node of x has finished; .grad had the gradient one step before",
            lambda factors: _steps_of(factors, GradAccumulated)[0] + 1,
        ),
        (
            "that is the last step of all, at which the pass is finished",
            lambda factors: _steps_of(factors, GradAccumulated)[0] + 2,
        ),
    ],
    hints=[
        "own.step() goes one step on; its last line says which .grad exist.",
        "own.run_until(accumulate=True) goes to the step at which a .grad gains something.",
        "The first line of what run_until shows has the number of the step.",
    ],
    explain=_why_not_there,
)

for _one in (slope, arrival):
    _one.data()  # drawn now: inside a learner's `with al.record()` it would add steps to count
