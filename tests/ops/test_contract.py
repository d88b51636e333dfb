"""Row by row: what torch's reference module did, ours does, with a message that says more.

The reference is asked in the same run; each row gives both the same op and the same backward.
"""

import collections
import warnings
from types import SimpleNamespace

import pytest
import torch

from autograd_lab import errors
from autograd_lab.ops import CustomOp, custom_op

from .samples import fresh

reference = pytest.importorskip("torch._custom_ops")
Pair = collections.namedtuple("Pair", "a b")


class Reference:
    """An op of the reference module, with the methods of ours."""

    def __init__(self, qualname, schema):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reference.custom_op(qualname, schema)
        self.qualname = qualname
        namespace, _, name = qualname.partition("::")
        self.call = getattr(getattr(torch.ops, namespace), name)

    def __call__(self, *args, **kwargs):
        return self.call(*args, **kwargs)

    def impl(self, device):
        return reference.impl(self.qualname, device_types=device)

    def impl_save_for_backward(self, function):
        return reference.impl_save_for_backward(self.qualname)(function)

    def impl_backward(self, output_differentiability=None):
        if callable(output_differentiability):
            return reference.impl_backward(self.qualname)(output_differentiability)
        return reference.impl_backward(self.qualname, output_differentiability)


def ours(qualname, schema):
    def function(): ...

    function.__name__ = qualname.partition("::")[2]
    return custom_op(qualname, schema)(function)


@pytest.fixture(params=[Reference, ours], ids=["reference", "ours"])
def make(request):
    def made(schema="(Tensor x) -> Tensor", kernel=lambda x: x * 2):
        op = request.param(fresh("row"), schema)
        op.impl("cpu")(kernel)
        return op

    made.is_ours = request.param is ours
    return made


def save_nothing(inputs, output):
    return None


def x():
    return torch.ones(3, requires_grad=True)


def test_row_1_nothing_registered(make):
    with pytest.raises(RuntimeError, match="Autograd has not been implemented for operator"):
        make()(x())


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, None])
def test_row_2_nothing_registered_and_no_gradient_needed(make, mode):
    op = make()
    if mode is None:
        assert op(torch.ones(3)).tolist() == [2.0] * 3
    else:
        with mode():
            assert op(x()).tolist() == [2.0] * 3


@pytest.mark.parametrize("found", ["save_for_backward", "backward"])
@pytest.mark.parametrize("given", [x, lambda: torch.ones(3)], ids=["grad", "no grad"])
def test_rows_3_4_6_half_registered(make, found, given):
    op = make()
    getattr(op, f"impl_{found}")(lambda *args: {})
    missing = {"save_for_backward": "backward", "backward": "save_for_backward"}[found]
    told = rf"'{found}' registration for .* at .*test_contract.py:\d+ .*find.*'{missing}' registr"
    with pytest.raises(RuntimeError, match=told):
        op(given())


def test_row_3_inference_mode_skips_autograd(make):
    op = make()
    op.impl_save_for_backward(save_nothing)
    with torch.inference_mode():
        assert op(torch.ones(3)).tolist() == [2.0] * 3


@pytest.mark.parametrize("first", ["save", "backward"])
def test_row_5_in_either_order(make, first):
    op = make()
    steps = [
        lambda: op.impl_save_for_backward(save_nothing),
        lambda: op.impl_backward(lambda ctx, saved, grad: {"x": grad * 2}),
    ]
    for step in steps if first == "save" else steps[::-1]:
        step()
    a = x()
    op(a).sum().backward()
    assert a.grad.tolist() == [2.0] * 3


def test_row_7_arguments_of_the_save_function(make):
    seen = SimpleNamespace()
    op = make("(Tensor x, float k) -> (Tensor, Tensor)", lambda x, k: (x * k, x + k))

    def save(inputs, output):
        seen.fields, seen.kind, seen.name = inputs._fields, type(output), type(inputs).__name__

    op.impl_save_for_backward(save)
    op.impl_backward(lambda ctx, saved, g, h: {"x": g + h})
    op(x(), 2.0)
    assert (seen.fields, seen.kind, seen.name) == (("x", "k"), tuple, "row_args")


@pytest.mark.parametrize(
    "tree",
    [
        None,
        3,
        "text",
        [1, (2, {"a": None})],
        collections.OrderedDict(b=1, a=(2,)),
        Pair(1, [2]),
    ],
    ids=str,
)
def test_rows_8_29_a_saved_tree_comes_back(make, tree):
    seen = []
    op = make()
    op.impl_save_for_backward(lambda inputs, output: tree)
    op.impl_backward(lambda ctx, saved, grad: seen.append(saved) or {"x": grad})
    op(x()).sum().backward()
    assert (seen[0], type(seen[0])) == (tree, type(tree))


def test_rows_9_d11_no_save_where_nothing_needs_a_gradient(make):
    seen = []
    op = make()
    op.impl_save_for_backward(lambda inputs, output: seen.append(1))
    op.impl_backward(lambda ctx, saved, grad: {"x": grad})
    with torch.no_grad():
        op(x())
    op(torch.ones(3))
    assert len(seen) == (0 if make.is_ours else 2)


def test_rows_10_11_12_gradients_passed_in(make):
    seen = []

    def kernel(x):
        return x * 2, x.long(), [x * 3, x * 4], 5

    op = make("(Tensor x) -> (Tensor, Tensor, Tensor[], int)", kernel)
    op.impl_save_for_backward(save_nothing)
    op.impl_backward(lambda ctx, saved, *grads: seen.append(grads) or {"x": grads[0]})
    op(x())[0].sum().backward()
    g, integer, listed, number = seen[0]
    assert g.tolist() == [1.0] * 3
    assert (integer.dtype, integer.tolist()) == (torch.long, [0] * 3)
    assert [one.tolist() for one in listed] == [[0.0] * 3] * 2
    assert number is None


@pytest.mark.parametrize(
    ("row", "schema", "args", "returned", "phrase", "kind"),
    [
        (14, "(Tensor x) -> Tensor", (), lambda g: g, "to be a dict but got", "GradientDictError"),
        (
            14,
            "(Tensor x) -> Tensor",
            (),
            lambda g: None,
            "to be a dict but got",
            "GradientDictError",
        ),
        (15, "(Tensor x) -> Tensor", (), lambda g: {}, "keys", "GradientKeysError"),
        (15, "(Tensor x) -> Tensor", (), lambda g: {"x": g, "z": g}, "keys", "GradientKeysError"),
        (
            15,
            "(Tensor x, int k) -> Tensor",
            (1,),
            lambda g: {"x": g, "k": None},
            "keys",
            "GradientKeysError",
        ),
        (16, "(Tensor x) -> Tensor", (), lambda g: {"x": 1.0}, "'x'", "GradientTypeError"),
        (
            *(17, "(Tensor x, Tensor? y) -> Tensor", (None,)),
            *(lambda g: {"x": g, "y": g}, "'y'", "UnwantedGradientError"),
        ),
        (
            *(18, "(Tensor x, Tensor[] y) -> Tensor", ([torch.ones(3)] * 2,)),
            *(
                lambda g: {"x": g, "y": None},
                "hold a list of gradients but got",
                "GradientLengthError",
            ),
        ),
        (
            *(18, "(Tensor x, Tensor[] y) -> Tensor", ([torch.ones(3)] * 2,)),
            *(
                lambda g: {"x": g, "y": g},
                "hold a list of gradients but got",
                "GradientLengthError",
            ),
        ),
        (
            *(19, "(Tensor x, Tensor[] y) -> Tensor", ([torch.ones(3)] * 2,)),
            *(lambda g: {"x": g, "y": [g]}, "list of 2 gradients but got 1", "GradientLengthError"),
        ),
        (
            *(20, "(Tensor x, Tensor[] y) -> Tensor", ([torch.ones(3)] * 2,)),
            *(lambda g: {"x": g, "y": [g, 1]}, r"y", "GradientTypeError"),
        ),
        (
            *(21, "(Tensor x, Tensor?[] y) -> Tensor", ([torch.ones(3), None],)),
            *(lambda g: {"x": g, "y": [g, g]}, r"y", "UnwantedGradientError"),
        ),
    ],
)
def test_rows_14_to_21_and_24_wrong_gradients(make, row, schema, args, returned, phrase, kind):
    op = make(schema, lambda x, *rest: x * 2)
    op.impl_save_for_backward(save_nothing)
    op.impl_backward(lambda ctx, saved, grad: returned(grad))
    loss = op(x(), *args).sum()
    with pytest.raises(RuntimeError, match=phrase) as caught:
        loss.backward()
    if make.is_ours:
        assert type(caught.value).__name__ == kind
        assert f"In the backward of '{op.qualname}' at " in str(caught.value)
        assert "test_contract.py:" in str(caught.value)
    else:
        assert "In the backward function defined for" in str(caught.value)


def test_rows_13_18_22_23_what_is_allowed(make):
    op = make(
        "(Tensor x, Tensor[] y, int k, float[] fs) -> Tensor", lambda x, y, k, fs: x + y[0] + y[1]
    )
    op.impl_save_for_backward(save_nothing)
    op.impl_backward(lambda ctx, saved, grad: {"y": (grad * 2, None), "x": None})
    a, b, c = x(), x(), x()
    grads = torch.autograd.grad(op(a, [b, c], 1, [1.0]).sum(), [a, b, c], allow_unused=True)
    assert [g is None for g in grads] == [True, False, True]
    assert grads[1].tolist() == [2.0] * 3


def test_row_23_a_list_of_numbers_without_a_list_of_tensors(make):
    op = make("(Tensor x, int[] dims) -> Tensor", lambda x, dims: x * 2)
    op.impl_save_for_backward(save_nothing)
    op.impl_backward(lambda ctx, saved, grad: {"x": grad * 2})
    a = x()
    op(a, [1, 2]).sum().backward()
    assert a.grad.tolist() == [2.0] * 3


def test_row_25_output_differentiability(make):
    op = make("(Tensor x) -> (Tensor, Tensor, Tensor[])", lambda x: (x * 2, x * 3, [x * 4, x * 5]))
    op.impl_save_for_backward(save_nothing)
    op.impl_backward(output_differentiability=[True, False, False])(
        lambda ctx, saved, g, h, many: {"x": g}
    )
    a, b, many = op(x())
    assert [one.requires_grad for one in (a, b, *many)] == [True, False, False, False]


def test_row_26_true_for_an_output_that_is_no_tensor(make):
    op = make("(Tensor x) -> (Tensor, int)", lambda x: (x * 2, 3))
    op.impl_save_for_backward(save_nothing)
    op.impl_backward([True, True])(lambda ctx, saved, g, n: {"x": g})
    told = r"output_differentiability=\[True, True\].*type .*int.* that is not a Tensor"
    with pytest.raises(RuntimeError, match=told):
        op(x())


@pytest.mark.parametrize("wrong", [(True,), [True, True], [1], [], True])
def test_rows_27_53_wrong_output_differentiability(make, wrong):
    with pytest.raises(
        RuntimeError, match="expected output_differentiability to be a list of bools"
    ):
        make().impl_backward(wrong)(lambda ctx, saved, g: {})


def test_row_28_hooks_see_every_saved_tensor(make):
    packed = []
    op = make()
    op.impl_save_for_backward(
        lambda inputs, output: {"a": inputs.x, "b": [output, (torch.ones(1), 3)]}
    )
    op.impl_backward(lambda ctx, saved, grad: {"x": grad})
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        op(x())
    assert len(packed) == 3


@pytest.mark.parametrize(
    "save", [save_nothing, lambda inputs, output: inputs.x], ids=["nothing", "x"]
)
def test_row_31_backward_twice(make, save):
    op = make()
    op.impl_save_for_backward(save)
    op.impl_backward(lambda ctx, saved, grad: {"x": grad})
    loss = op(x()).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


def test_row_32_name_of_the_node(make):
    op = make()
    op.impl_save_for_backward(save_nothing)
    op.impl_backward(lambda ctx, saved, grad: {"x": grad})
    assert op(x()).grad_fn.name() == "row_customopBackward"


def test_row_33_double_backward(make):
    op = make(kernel=lambda x: x**3)
    op.impl_save_for_backward(lambda inputs, output: inputs.x)
    op.impl_backward(lambda ctx, saved, grad: {"x": grad * 3 * saved**2})
    a = torch.tensor([2.0], requires_grad=True)
    (first,) = torch.autograd.grad(op(a).sum(), a, create_graph=True)
    assert torch.autograd.grad(first.sum(), a)[0].tolist() == [12.0]


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("zz", "namespace"),
        ("a.b::f", r"\."),
        ("aten::f", "is a reserved namespace"),
        ("torch::f", "is a reserved namespace"),
        ("prims::f", "is a reserved namespace"),
        ("lab::f.out", "overload"),
    ],
)
def test_rows_35_to_38_names(name, phrase):
    for define in (Reference, ours):
        with pytest.raises(ValueError, match=phrase):
            define(name, "(Tensor x) -> Tensor")


@pytest.mark.parametrize(
    "schema",
    [
        "(Tensor x) -> Tensor(a)",
        "(Tensor(a) x) -> Tensor(a)",
        "(Tensor x) -> ()",
        "(Tensor self) -> Tensor",
        "(Tensor x -> Tensor",
    ],
)
def test_rows_43_44_schemas_that_no_op_can_have(schema):
    with pytest.raises(errors.OpDefinitionError):
        ours(fresh("row"), schema)
    with pytest.raises(Exception):  # noqa: B017, PT011 (ValueError, or one of its parser's own)
        Reference(fresh("row"), schema)


@pytest.mark.parametrize("returns", ["str", "Tensor?", "Scalar", "int[]"])
def test_row_51_returns_that_have_no_backward(make, returns):
    op = make(f"(Tensor x) -> {returns}", lambda x: None)
    with pytest.raises(RuntimeError, match=r"not (one of|in).*SymInt"):
        op.impl_backward(lambda ctx, saved, grad: {})


def test_row_54_no_kernel_for_the_device():
    for define in (Reference, ours):
        op = define(fresh("row"), "(Tensor x) -> Tensor")
        with pytest.raises(NotImplementedError, match="there is no cpu impl registered"):
            op(torch.ones(1))


def test_row_55_no_tensors():
    for define in (Reference, ours):
        op = define(fresh("row"), "(Tensor[] x) -> Tensor")
        with pytest.raises(
            NotImplementedError, match=r"(?s)no Tensor inputs to this operator.*impl_factory"
        ):
            op([])


def test_row_56_no_meta_kernel(make):
    with pytest.raises(
        NotImplementedError, match="Meta tensors, but there was no fake impl or Meta"
    ):
        make()(torch.ones(1, device="meta"))


def test_row_57_constructor():

    with pytest.raises(RuntimeError, match="The CustomOp constructor is private"):
        CustomOp("lab::x")
