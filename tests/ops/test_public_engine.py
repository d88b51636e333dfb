"""Where torch lacks a private name, ops run on its public API, and what they can't do is said."""

import pytest
import torch
from torch import Tensor

from autograd_lab import errors, torch_private
from autograd_lab.ops import custom_op, op

from .samples import fresh

MISSING = torch_private.KernelNames(missing=("_C._after_autograd_keyset",))


@pytest.fixture(autouse=True)
def hidden_names(monkeypatch):
    monkeypatch.setattr(op, "kernel_names", lambda: MISSING)


def define(schema, kernel, name="scaled"):
    def scaled(): ...

    with pytest.warns(errors.PublicEngineWarning, match="_C._after_autograd_keyset.*can't do"):
        made = custom_op(fresh(name), schema)(scaled)
    made.impl("cpu")(kernel)
    return made


def test_gradients_by_name_with_lists_optionals_and_defaults():
    made = define(
        "(Tensor x, Tensor[] ys, int[] dims, Tensor? z=None, float k=2.0) -> (Tensor, Tensor[])",
        lambda x, ys, dims, z, k: (x * k + ys[0], [ys[0] * 3, ys[1] * 4]),
    )
    seen = []
    made.impl_save_for_backward(lambda inputs, output: {"k": inputs.k, "x": inputs.x})

    @made.impl_backward()
    def _(ctx, saved, g, gs):
        seen.append(ctx.needs_input_grad)
        return {"x": g * saved["k"], "ys": [g + gs[0] * 3, gs[1] * 4], "z": None}

    x, a, b = (torch.ones(3, requires_grad=True) for _ in range(3))
    out, many = made(x, [a, b], [])
    grads = torch.autograd.grad(out.sum() + many[1].sum(), (x, a, b))
    assert [g.tolist() for g in grads] == [[2.0] * 3, [1.0] * 3, [4.0] * 3]
    assert (seen[0]["x"], seen[0]["ys"], seen[0]["k"]) == (True, (True, True), False)


def test_the_same_checks():
    made = define("(Tensor x) -> Tensor", lambda x: x * 2)
    with pytest.raises(errors.MissingRegistrationError):
        made(torch.ones(1, requires_grad=True))
    made.impl_save_for_backward(lambda inputs, output: None)
    made.impl_backward(lambda ctx, saved, grad: {})
    with pytest.raises(errors.GradientKeysError):
        made(torch.ones(1, requires_grad=True)).sum().backward()


def test_register_autograd():
    made = define("(Tensor x, float k=2.0) -> Tensor", lambda x, k: x * k)

    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]

    made.register_autograd(lambda ctx, grad: (grad * ctx.k, None), setup_context=setup_context)
    x = torch.ones(1, requires_grad=True)
    made(x).sum().backward()
    assert x.grad.tolist() == [2.0]


@pytest.mark.parametrize(
    ("schema", "name"),
    [("(Tensor x, *, Tensor s) -> Tensor", "s"), ("(Tensor?[] xs) -> Tensor", "xs")],
)
def test_what_would_be_silently_lost_is_refused(schema, name):
    made = define(schema, lambda *args, **kwargs: torch.ones(1))
    with pytest.raises(errors.RegistrationError, match=f"would lose the gradient of {name}"):
        made.impl_backward(lambda ctx, saved, grad: {})


def test_forward_mode_is_refused():
    made = define("(Tensor x) -> Tensor", lambda x: x * 2)
    with pytest.raises(errors.RegistrationError, match="forward mode"):
        made.impl_jvp(lambda ctx, saved, tangents: None)


def test_opcheck():
    made = define("(Tensor x) -> Tensor", lambda x: x * 2)
    made.impl_abstract(torch.empty_like)
    made.impl_save_for_backward(lambda inputs, output: None)
    made.impl_backward(lambda ctx, saved, grad: {"x": grad * 2})
    namespace = made.qualname.partition("::")[0]
    x: Tensor = torch.ones(3, requires_grad=True)
    torch.library.opcheck(getattr(torch.ops, namespace).scaled.default, (x,))
