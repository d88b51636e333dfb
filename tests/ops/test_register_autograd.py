"""Torch's tutorials run unchanged; a wrong count of gradients is told with names."""

import pytest
import torch
from torch import Tensor

from autograd_lab import errors
from autograd_lab.ops import custom_op

from .samples import fresh


def tutorial_op(backward=None, setup_context=None):
    @custom_op(fresh("mul_add"), mutates_args=())
    def mul_add(a: Tensor, b: Tensor, c: float = 1.0) -> Tensor:
        return a * b + c

    def _setup_context(ctx, inputs, output):
        a, b, c = inputs
        saved_a, saved_b = None, None
        if ctx.needs_input_grad[0]:
            saved_b = b
        if ctx.needs_input_grad[1]:
            saved_a = a
        ctx.save_for_backward(saved_a, saved_b)
        ctx.c = c

    def _backward(ctx, grad):
        a, b = ctx.saved_tensors
        grad_a, grad_b = None, None
        if ctx.needs_input_grad[0]:
            grad_a = grad * b
        if ctx.needs_input_grad[1]:
            grad_b = grad * a
        return grad_a, grad_b, None

    mul_add.register_fake(lambda a, b, c: torch.empty_like(a))
    mul_add.register_autograd(backward or _backward, setup_context=setup_context or _setup_context)
    return mul_add


def pair():
    return [torch.full((3,), value, dtype=torch.double, requires_grad=True) for value in (2.0, 5.0)]


def test_the_tutorial_is_right_also_twice_and_under_torch_func():
    op, (a, b) = tutorial_op(), pair()
    assert torch.autograd.gradcheck(op, (a, b))
    assert torch.autograd.gradgradcheck(op, (a, b))
    assert torch.func.grad(lambda t: op(t, b.detach()).sum())(a.detach()).tolist() == [5.0] * 3
    torch.library.opcheck(getattr(torch.ops, op.qualname.partition("::")[0]).mul_add, (a, b, 2.0))


def test_only_one_input_needs_a_gradient():
    op, (a, b) = tutorial_op(), pair()
    op(a, b.detach()).sum().backward()
    assert a.grad.tolist() == [5.0] * 3


def test_gradients_of_arguments_that_were_passed_suffice():
    op, (a, b) = tutorial_op(lambda ctx, grad: (grad, grad)), pair()
    assert torch.autograd.grad(op(a, b).sum(), b)[0].tolist() == [1.0] * 3


@pytest.mark.parametrize(
    ("returned", "phrases"),
    [
        (lambda g: g, ["returned 1 gradient,", "a, b, c", "It lacks b"]),
        (lambda g: (g, g, None, None), ["returned 4 gradients", "3 arguments: a, b, c"]),
    ],
)
def test_a_wrong_count_is_told_with_the_names(returned, phrases):
    op, (a, b) = tutorial_op(lambda ctx, grad: returned(grad)), pair()
    with pytest.raises(errors.GradientLengthError) as caught:
        op(a, b).sum().backward()
    assert [phrase for phrase in phrases if phrase not in str(caught.value)] == []


def test_a_gradient_for_what_is_no_tensor():
    op, (a, b) = tutorial_op(lambda ctx, grad: (grad, grad, grad)), pair()
    with pytest.raises(errors.UnwantedGradientError, match="'c': that argument is no tensor"):
        op(a, b).sum().backward()


def test_a_tensor_on_ctx_is_refused():
    def setup_context(ctx, inputs, output):
        ctx.y = output

    op, (a, b) = tutorial_op(setup_context=setup_context), pair()
    with pytest.raises(errors.HiddenTensorError, match=r"ctx\.y .*is a tensor"):
        op(a, b)


def test_an_attribute_that_was_not_set_is_named():
    op, (a, b) = tutorial_op(lambda ctx, grad: ctx.d), pair()
    with pytest.raises(AttributeError, match=r"no attribute 'd'\. Set were: c"):
        op(a, b).sum().backward()


def test_without_setup_context():
    op = tutorial_op()
    op.register_autograd(lambda ctx, grad: (grad * 3, None, None))
    a, b = pair()
    op(a, b).sum().backward()
    assert a.grad.tolist() == [3.0] * 3


def test_marks_and_materialized_gradients():
    seen = []

    @custom_op(fresh("two"))
    def two(x: Tensor) -> tuple[Tensor, Tensor]:
        return x * 2, x * 3

    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    two.register_autograd(lambda ctx, g, h: seen.append(h) or g * 2, setup_context=setup_context)
    a, _ = pair()
    first, second = two(a)
    first.sum().backward()
    assert (second.requires_grad, seen) == (False, [None])


def test_a_keyword_only_value_reaches_setup_context():
    @custom_op(fresh("kw"))
    def kw(x: Tensor, *, s: float = 2.0) -> Tensor:
        return x * s

    def setup_context(ctx, inputs, keyword_only_inputs, output):
        ctx.s = keyword_only_inputs["s"]

    kw.register_autograd(lambda ctx, grad: grad * ctx.s, setup_context=setup_context)
    a, _ = pair()
    kw(a, s=4.0).sum().backward()
    assert a.grad.tolist() == [4.0] * 3


def test_a_list_argument():
    @custom_op(fresh("total"))
    def total(xs: list[Tensor], k: float = 2.0) -> Tensor:
        return (xs[0] + xs[1]) * k

    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]

    total.register_autograd(
        lambda ctx, grad: ([grad * ctx.k, grad * ctx.k], None), setup_context=setup_context
    )
    a, b = pair()
    total([a, b]).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([2.0] * 3, [2.0] * 3)
