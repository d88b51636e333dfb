"""What a recording says to do about a problem, and what it does not call one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import autograd_lab as al
from tests.capture.programs import batch


def problems_of(body, model=None):
    """The problems of a program, which may raise."""
    rec = al.record(model)
    try:
        with rec:
            body()
    except (RuntimeError, ArithmeticError):
        pass
    return rec.recording.problems


def clip(x):
    nn.utils.clip_grad_norm_([x], 1.0)


def scale(x):
    x.grad.mul_(2).norm()


def scale_twice(x):
    clip(x)
    scale(x)


@pytest.mark.parametrize("after", [clip, scale, scale_twice])
@pytest.mark.parametrize("start", [0.0, -1.0], ids=["Inf", "NaN"])
def test_calls_that_only_touch_bad_gradients_are_no_problem_of_their_own(after, start):
    x = torch.full((3,), start, requires_grad=True)

    def body():
        x.abs().sqrt().mul(start + 1).sum().backward() if start == 0 else x.sqrt().sum().backward()
        after(x)

    assert [one.kind for one in problems_of(body)].count("non-finite forward") == (start < 0)


def test_bad_data_after_a_bad_backward_is_still_a_problem():
    x = torch.zeros(3, requires_grad=True)
    data = torch.tensor([1.0, float("nan"), 2.0, 3.0])

    def body():
        x.sqrt().sum().backward()
        data.mul(2)

    first, second = problems_of(body)
    assert (first.kind, second.kind) == ("non-finite backward", "non-finite forward")
    assert "check the data" in second.text


def test_parameters_that_a_step_made_bad_send_to_the_backward():
    net = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def body():
        for _ in range(2):
            (net(torch.ones(1, 2)) * 0).sqrt().sum().backward()
            optimizer.step()

    (text,) = [one.text for one in problems_of(body, net) if one.kind == "non-finite forward"]
    assert "mend that backward first" in text


def add_in_place(x):
    h = x.exp()
    h *= 3
    h.sum().backward()


def call_in_place(x):
    h = x.exp()
    h.mul_(x)
    h.sum().backward()


def set_an_item(x):
    h = x.exp()
    h[0] = 3.0
    h.sum().backward()


def relu_in_place(x):
    nn.Sequential(nn.Sigmoid(), nn.ReLU(inplace=True))(x).sum().backward()


@pytest.mark.parametrize(
    ("body", "cure"),
    [
        (add_in_place, "Write h = h * 3 instead."),
        (call_in_place, "Write h = h.mul(x) instead."),
        (set_an_item, "Write into a copy, as x.clone() makes one."),
        (relu_in_place, "or give inplace=False."),
    ],
)
def test_in_place_writes_are_said_with_what_to_write_instead(body, cure):
    x = batch(requires_grad=True)
    first = problems_of(lambda: body(x))[0]

    assert first.kind == "saved tensor modified"
    assert first.text.endswith(cure)


def test_second_backward_is_said_with_retain_graph():
    loss = batch(requires_grad=True).exp().sum()

    def body():
        loss.backward()
        loss.backward()

    assert "retain_graph=True" in problems_of(body)[0].text


def detached(x):
    loss = (x * 2).detach().sum()
    accuracy = (x > 1).float().mean()
    loss.backward()
    return accuracy


def without_grad(x):
    with torch.no_grad():
        h = x.exp()
    h.sum().backward()


@pytest.mark.parametrize(
    ("body", "cut"),
    [
        (detached, "detach at "),
        (without_grad, "exp at "),
        (lambda x: x.argmax().float().backward(), "argmax at "),
        (lambda x: x.detach().sum().backward(), "detach at "),
    ],
    ids=["detach", "no_grad", "argmax", "detached leaf"],
)
def test_loss_without_gradient_names_the_call_that_cut_it(body, cut):
    x = batch(requires_grad=True)
    (found,) = problems_of(lambda: body(x))

    assert f"grad_fn. {cut}" in found.text
    assert "cut the loss off" in found.text


def test_loss_of_nothing_that_requires_a_gradient_says_so():
    (found,) = problems_of(lambda: batch().sum().backward())

    assert "set requires_grad on a leaf before the forward" in found.text


@pytest.mark.parametrize(
    ("body", "cure"),
    [
        (lambda x: (x * 0).log(), "clamp its input, x.clamp(min=1e-8)"),
        (lambda x: x / (x * 0), "add a small number to the divisor"),
        (lambda x: (x * 1e3).exp(), "subtract the maximum first"),
        (lambda x: (x.half() * 6e4) * 2, "float16 holds at most 65504"),
        (lambda x: x[:1].var(correction=0).log(), "The log of 0 is -Inf"),
        (lambda x: torch.tensor(float("nan")), "from no tensors. Check the numbers"),
    ],
    ids=["log", "division", "exp", "fp16", "log of no spread", "made so"],
)
def test_number_that_a_call_made_bad_is_said_with_its_formula(body, cure):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (found,) = problems_of(lambda: body(x))

    assert found.kind == "non-finite forward"
    assert cure in found.text


@pytest.mark.parametrize(
    ("body", "cure"),
    [
        (lambda x: x.sqrt(), "Its rule g / (2 * sqrt(x)) divides by 0"),
        (lambda x: torch.where(x > 0, x.sqrt(), 0), "0 times Inf is NaN"),
        (lambda x: x**0.5, "n * x**(n - 1) is Inf at x = 0"),
        (lambda x: (x + 1).acos(), "divides by 0 at 1 and -1"),
    ],
    ids=["sqrt", "where", "pow", "acos"],
)
def test_gradient_that_a_node_made_bad_is_said_with_its_rule(body, cure):
    x = torch.zeros(3, requires_grad=True)
    (found,) = problems_of(lambda: body(x).sum().backward())

    assert found.kind == "non-finite backward"
    assert cure in found.text


def test_backward_of_a_bad_forward_sends_to_the_forward():
    x = torch.zeros(3, requires_grad=True)
    first, second = problems_of(lambda: x.log().sum().backward())

    assert first.kind == "non-finite forward"
    assert second.text.endswith("The forward was not finite before that: mend it first.")


def test_exception_of_a_forward_names_the_last_call_that_returned():
    (found,) = problems_of(lambda: batch().exp() @ torch.ones(9, 9))

    assert "The last call that returned: ones at test_truth_cures.py" in found.text.replace(
        "tests/capture/", ""
    )


class Refuses(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        message = "this backward refuses"
        raise ArithmeticError(message)


def test_exception_of_a_custom_backward_names_its_node_and_where_that_is_defined():
    (found,) = problems_of(lambda: Refuses.apply(batch(requires_grad=True)).sum().backward())

    assert "raised in RefusesBackward (backward defined at" in found.text
    assert found.source is not None


def test_exception_of_a_hook_names_the_call_that_made_its_node():
    def body():
        h = batch(requires_grad=True).exp()
        h.register_hook(lambda g: 1 / 0)
        h.sum().backward()

    (found,) = problems_of(body)
    assert "raised in ExpBackward0 (made by exp at " in found.text


def test_loss_that_is_no_scalar_is_said_with_what_to_do():
    (found,) = problems_of(lambda: batch(requires_grad=True).exp().backward())

    assert "Make it a scalar first" in found.text
