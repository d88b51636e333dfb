"""Where the reference module or torch.library is silent or breaks: a right result, or words."""

import gc
import re
import weakref
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from autograd_lab import errors
from autograd_lab.ops import custom_op

from .samples import fresh, mulsin_op, scaled_op


def x(*shape):
    return torch.ones(shape or (3,), requires_grad=True)


@dataclass
class Held:
    t: Tensor
    n: int


class Box:
    def __init__(self, y):
        self.y = y


def backward_error(backward, kind, schema="(Tensor x) -> Tensor", given=None):
    """What the backward of 2x raises."""
    op = scaled_op(backward, schema=schema)
    loss = op(x() if given is None else given).sum()
    with pytest.raises(kind) as caught:
        loss.backward()
    return str(caught.value)


@pytest.mark.parametrize("given", [{}, {"k": 2.0}, {"k": 3.0}], ids=str)
def test_d1_every_argument_by_name(given):
    @custom_op(fresh("scaled"))
    def scaled(x: Tensor, k: float = 2.0) -> Tensor:
        return x * k

    scaled.impl_save_for_backward(lambda inputs, output: inputs.k)
    scaled.impl_backward(lambda ctx, saved, grad: {"x": grad * saved})
    a = x()
    scaled(a, **given).sum().backward()
    assert a.grad.tolist() == [given.get("k", 2.0)] * 3


def test_d3_no_class_and_no_garbage_for_a_call():
    op = scaled_op()
    for _ in range(2):  # what torch and pytest make once is not of the call
        op(x()).sum().backward()
    gc.collect()
    gc.disable()
    try:
        for _ in range(10):
            op(x()).sum().backward()
        assert gc.collect() < 10
    finally:
        gc.enable()


SAVES = {
    "output": lambda inputs, output: output,
    "dataclass": lambda inputs, output: {"d": Held(output, 3)},
    "nested": lambda inputs, output: [{"a": (inputs.x, None)}, (output, [output])],
    "intermediate": lambda inputs, output: inputs.x.exp(),
}


@pytest.mark.parametrize("save", SAVES.values(), ids=SAVES)
def test_d4_output_and_input_are_freed_without_gc(save):
    op = scaled_op(save=save)
    gc.collect()
    gc.disable()
    try:
        a = x()
        b = a * 1
        y = op(b)
        references = [weakref.ref(y), weakref.ref(b)]
        y.sum().backward()
        del y, b
        assert [r() for r in references] == [None, None]
    finally:
        gc.enable()


def test_d4_a_hidden_tensor_is_named():
    op = scaled_op(save=lambda inputs, output: {"box": Box(output)})
    with pytest.raises(errors.HiddenTensorError, match=r"saved\['box'\] is a Box.*\['y'\]"):
        op(x())


@pytest.mark.parametrize(
    ("shape", "phrase"),
    [
        ((4, 3), r"sum it over dim 0 .*gradient\.sum\(\(0,\)\)"),
        ((1,), r"gradient\.expand\(\(3,\)\)"),
        ((2,), "same|one number for each element"),
        ((1, 3), r"sum it over dim 0"),
    ],
)
def test_d6_17_a_wrong_shape_is_an_error_that_says_what_torch_would_do(shape, phrase):
    told = backward_error(
        lambda ctx, saved, grad: {"x": torch.ones(shape)}, errors.GradientShapeError
    )
    assert f"shape {shape}" in told
    assert "shape (3,)" in told
    assert re.search(phrase, told)


def test_a_transposed_gradient_is_recognised():
    told = backward_error(
        lambda ctx, saved, grad: {"x": grad.T}, errors.GradientShapeError, given=x(2, 3)
    )
    assert "gradient.T has the shape of the input" in told


@pytest.mark.parametrize("dtype", [torch.double, torch.half])
def test_20_a_cast_is_a_warning_with_both_dtypes(dtype):
    op = scaled_op(lambda ctx, saved, grad: {"x": grad.to(dtype)})
    name = str(dtype).removeprefix("torch.")
    with pytest.warns(errors.GradientDtypeWarning, match=f"'x' is {name}, the input is float32"):
        op(x()).sum().backward()


def test_a_complex_gradient_of_a_real_input_is_refused():
    told = backward_error(
        lambda ctx, saved, grad: {"x": grad.to(torch.cfloat)}, errors.GradientTypeError
    )
    assert "gradient.real" in told


def test_another_device_is_refused():
    told = backward_error(
        lambda ctx, saved, grad: {"x": grad.to("meta")}, errors.GradientDeviceError
    )
    assert "is on meta, the input is on cpu" in told


def test_d7_36_the_message_has_the_name_of_the_op():
    op = custom_op(fresh("scaled"), "(Tensor x) -> Tensor")(_stub())
    op.impl("cpu")(lambda x: x * 2)
    with pytest.raises(errors.MissingRegistrationError, match=op.qualname):
        op(x())


def _stub():
    def scaled(): ...

    return scaled


def test_d8_registering_again_replaces_and_graphs_keep_their_formula():
    op, a = scaled_op(), x()
    before = op(a).sum()
    op.impl_backward(lambda ctx, saved, grad: {"x": grad * 7})
    op.impl("cpu")(lambda x: x * 5)
    after = op(a).sum()
    assert torch.autograd.grad(before, a)[0].tolist() == [2.0] * 3
    assert torch.autograd.grad(after, a)[0].tolist() == [7.0] * 3
    assert after.item() == 15.0


def test_d9_one_return_in_parentheses():
    op = custom_op(fresh("scaled"), "(Tensor x) -> (Tensor)")(_stub())
    op.impl("cpu")(lambda x: x * 2)
    assert op(torch.ones(1)).tolist() == [2.0]


def test_d9_a_tuple_of_one_is_told_what_to_write():
    def scaled(x: Tensor) -> tuple[Tensor]: ...

    with pytest.raises(errors.OpDefinitionError, match="Write '-> Tensor'"):
        custom_op(fresh("scaled"))(scaled)


def writing_op():
    @custom_op(fresh("writes"), mutates_args=("out",))
    def writes(x: Tensor, out: Tensor) -> None:
        out.copy_(x * 2)

    return writes


def test_d12_an_op_that_writes_counts_versions_and_compiles():
    op, out = writing_op(), torch.zeros(3)
    before = out._version
    op(torch.ones(3), out)
    assert out.tolist() == [2.0] * 3
    assert out._version > before
    compiled = torch.compile(lambda a, o: op(a, o), fullgraph=True, backend="aot_eager")
    compiled(torch.full((3,), 2.0), out)
    assert out.tolist() == [4.0] * 3


def test_d12_a_backward_for_an_op_that_writes_is_refused_with_the_reason():
    op = writing_op()
    for register in (op.impl_backward, op.impl_save_for_backward, op.impl_jvp):
        with pytest.raises(errors.RegistrationError, match="it writes into out"):
            register(lambda *args: None)
    with pytest.raises(errors.RegistrationError, match="it writes into out"):
        op.register_autograd(lambda *args: None)
    with pytest.raises(errors.RegistrationError, match="it writes into out"):
        op(x(), torch.zeros(3))


def exp_op(save, backward=lambda ctx, saved, grad: {"x": grad * saved}, **more):
    op = custom_op(fresh("scaled"), "(Tensor x) -> Tensor")(_stub())
    op.impl("cpu")(torch.exp)
    op.impl_save_for_backward(save, **more)
    op.impl_backward(backward)
    return op


def test_1_a_second_derivative_through_an_intermediate_raises():
    op, a = exp_op(lambda inputs, output: inputs.x.exp()), x()
    (first,) = torch.autograd.grad(op(a).sum(), a, create_graph=True)
    assert torch.allclose(first, a.exp())
    with pytest.raises(errors.DoubleBackwardError, match="goes through saved"):
        torch.autograd.grad(first.sum(), a)


def test_1_a_second_derivative_through_an_intermediate_raises_under_torch_func_too():
    op = exp_op(lambda inputs, output: inputs.x.exp())
    gradient = torch.func.grad(lambda a: op(a).sum())
    with pytest.raises(errors.DoubleBackwardError):
        torch.func.grad(lambda a: gradient(a).sum())(torch.ones(3))


def test_1_an_output_or_a_constant_is_no_intermediate():
    a = x()
    op = exp_op(lambda inputs, output: output)
    (first,) = torch.autograd.grad(op(a).sum(), a, create_graph=True)
    assert torch.allclose(torch.autograd.grad(first.sum(), a)[0], a.exp())
    op = exp_op(
        lambda inputs, output: {"y": output, "c": torch.ones(3)},
        lambda ctx, saved, grad: {"x": grad * saved["y"] * saved["c"]},
        constants=["c"],
    )
    (first,) = torch.autograd.grad(op(a).sum(), a, create_graph=True)
    assert torch.allclose(torch.autograd.grad(first.sum(), a)[0], a.exp())


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_1_a_first_derivative_through_an_intermediate_is_right_under_torch_func():
    op = exp_op(lambda inputs, output: inputs.x.exp())
    assert torch.allclose(
        torch.func.grad(lambda a: op(a).sum())(torch.ones(3)), torch.ones(3).exp()
    )
    batch = torch.randn(2, 3)
    got = torch.func.vmap(torch.func.grad(lambda a: op(a).sum()))(batch)
    assert torch.allclose(got, batch.exp())


@pytest.mark.parametrize(
    ("returned", "phrases"),
    [
        ({"grad_x": None}, ["Did you mean 'x' by 'grad_x'?"]),
        ({}, ["Return x's gradient, or None"]),
        ({"x": None, "banana": None}, ["'banana' is no argument of the op"]),
    ],
)
def test_10_to_14_missing_and_unexpected_names(returned, phrases):
    told = backward_error(lambda ctx, saved, grad: returned, errors.GradientKeysError)
    assert [phrase for phrase in phrases if phrase not in told] == []


def test_16_an_unused_output_gets_zeros():
    seen = []
    op = custom_op(fresh("scaled"), "(Tensor x) -> (Tensor, Tensor)")(_stub())
    op.impl("cpu")(lambda x: (x * 2, x * 3))
    op.impl_save_for_backward(lambda inputs, output: None)
    op.impl_backward(lambda ctx, saved, g, h: seen.append(h) or {"x": g})
    op(x())[0].sum().backward()
    assert seen[0].tolist() == [0.0] * 3


def test_25_writing_into_a_received_gradient_is_an_error():
    op = scaled_op(lambda ctx, saved, grad: {"x": grad.mul_(2)})
    with pytest.raises(errors.GradientMutatedError, match="wrote into the gradient of output 0"):
        op(x()).backward(torch.ones(3))


KERNELS = {
    "input": (lambda x: x, "output is input 'x'"),
    "view": (lambda x: x.view(-1), "output is a view of input 'x'"),
    "of two": (lambda x: (x * 2, x.view(-1)), r"output\[1\] is a view of input 'x'"),
    "twice": (lambda x: (y := x * 2, y), r"output\[1\] is output\[0\]"),
}


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize(("kernel", "phrase"), KERNELS.values(), ids=KERNELS)
def test_29_30_an_output_that_is_no_tensor_of_its_own(kernel, phrase, grad):
    many = isinstance(kernel(torch.ones(1)), tuple)
    schema = f"(Tensor x) -> {'(Tensor, Tensor)' if many else 'Tensor'}"
    op = custom_op(fresh("scaled"), schema)(_stub())
    op.impl("cpu")(kernel)
    op.impl_save_for_backward(lambda inputs, output: None)
    op.impl_backward(lambda ctx, saved, *grads: {"x": grads[0]})
    with torch.set_grad_enabled(grad), pytest.raises(errors.AliasedOutputError, match=phrase):
        op(x())


def test_a_view_of_a_tensor_of_its_own_is_allowed():
    op = custom_op(fresh("scaled"), "(Tensor x) -> Tensor")(_stub())
    op.impl("cpu")(lambda x: (x * 2).view(-1))
    assert op(torch.ones(2, 2)).shape == (4,)


@pytest.mark.parametrize(
    ("annotation", "fix"),
    [
        (dict, "a list of tensors and a list of str"),
        (tuple[int, int], "list[int]"),
        (torch.nn.Parameter, "Write Tensor"),
        (list, "list[Tensor]"),
        (complex, "two floats"),
    ],
    ids=str,
)
def test_33_the_nearest_supported_spelling(annotation, fix):
    def scaled(x: Tensor, k) -> Tensor: ...

    scaled.__annotations__["k"] = annotation
    with pytest.raises(errors.OpDefinitionError, match=r"'k'.*has unsupported type") as caught:
        custom_op(fresh("scaled"))(scaled)
    assert fix in str(caught.value)
    assert len(str(caught.value)) < 400


def no_annotation(x) -> Tensor: ...
def no_return(x: Tensor): ...
def varargs(*x: Tensor) -> Tensor: ...
def positional(x: Tensor, /) -> Tensor: ...
def named_self(self: Tensor) -> Tensor: ...


@pytest.mark.parametrize(
    ("function", "phrase"),
    [
        (3, "Expected a Python function"),
        (no_annotation, "must have a type annotation"),
        (no_return, "No return type annotation was provided"),
        (varargs, "variadic positional"),
        (positional, "positional-only"),
        (named_self, "argument named self"),
    ],
)
def test_39_41_44_what_no_op_can_be_made_of(function, phrase):
    name = getattr(function, "__name__", "three")
    with pytest.raises(ValueError, match=phrase):
        custom_op(fresh(name))(function)


def test_40_another_name():
    with pytest.raises(ValueError, match="function named 'no_return'"):
        custom_op(fresh("other"))(no_return)


@pytest.mark.parametrize("schema", ["(Tensor y) -> Tensor", "(Tensor x, int k) -> Tensor"])
def test_42_a_schema_with_other_arguments(schema):
    def scaled(x): ...

    with pytest.raises(ValueError, match="Make the signature match the schema"):
        custom_op(fresh("scaled"), schema)(scaled)


@pytest.mark.parametrize("grad", [True, False])
def test_a_kernel_that_lacks_a_return(grad):
    op = scaled_op()
    op.impl("cpu")(lambda x: None)
    with torch.set_grad_enabled(grad), pytest.raises(errors.CustomOpError, match="lacks a return"):
        op(x())


def test_mutates_args_beside_a_schema():
    with pytest.raises(ValueError, match="Say in the schema what is written into"):
        custom_op(fresh("scaled"), "(Tensor x) -> Tensor", mutates_args=["x"])(_stub())


def test_42_annotations_beside_a_schema():
    with pytest.raises(ValueError, match="type annotations, too"):
        custom_op(fresh("no_return"), "(Tensor x) -> Tensor")(no_return)


@pytest.mark.parametrize("given", ["gpu", "CPU", "Autograd", 3, ["cpu", "tpu"], lambda x: x])
def test_45_a_device_that_is_none(given):
    with pytest.raises(errors.RegistrationError, match="we only support device_type in"):
        scaled_op().impl(given)


def test_45_several_devices():
    op = custom_op(fresh("scaled"), "(Tensor x) -> Tensor")(_stub())
    op.impl(["cpu", "cuda"])(lambda x: x * 2)
    assert op(torch.ones(1)).tolist() == [2.0]


def test_48_the_rule_for_shapes_serves_meta_and_fake_and_can_be_replaced():
    op = mulsin_op()
    meta = torch.ones(4, device="meta")
    assert op(meta, meta, 1.0).shape == (4,)
    op.impl_abstract(lambda x, w, k: x.new_empty(2))
    assert op(meta, meta, 1.0).shape == (2,)


def test_49_a_kernel_without_tensors():
    op = custom_op(fresh("scaled"), "(int n) -> Tensor")(_stub())
    op.impl_factory()(lambda n: torch.ones(n))
    op.impl_factory(lambda n: torch.zeros(n))
    assert op(3).tolist() == [0.0] * 3


def test_60_repr_and_what_the_function_said():
    @custom_op(fresh("scaled"))
    def scaled(x: Tensor) -> Tensor:
        """Twice x."""
        return x * 2

    assert repr(scaled) == f'<CustomOp(op="{scaled.qualname}")>'
    assert (scaled.__name__, scaled.__doc__, scaled.__module__) == (
        *("scaled", "Twice x."),
        __name__,
    )


def test_ctx_of_backward():
    seen = []

    def backward(ctx, saved, grad):
        seen.append((ctx.op, ctx.needs_input_grad, ctx.keeps_graph, ctx.needs_double))
        seen.append(ctx.inputs_meta["x"].shape)
        return {"x": grad * 2}

    op = scaled_op(backward)
    op(x()).sum().backward(retain_graph=True)
    assert seen == [(op.qualname, {"x": True}, True, False), (3,)]
