"""An op goes through every transformation of torch, with the right derivatives."""

import copy

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint

from autograd_lab.errors import ForwardModeError
from autograd_lab.ops import custom_op

from .samples import fresh, many_op, mulsin_op, mulsin_tangent, raw

pytestmark = [  # torch's own, from its forward mode, its vmap without a rule, its anomaly mode
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated"),
    pytest.mark.filterwarnings("ignore:There is a performance drop"),
    pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled"),
]


@pytest.fixture(scope="module")
def op():
    return mulsin_op()


@pytest.fixture(scope="module")
def forward_op():
    op = mulsin_op()
    op.impl_jvp(mulsin_tangent)
    return op


@pytest.fixture
def x():
    torch.manual_seed(0)
    return torch.randn(4, dtype=torch.double, requires_grad=True)


@pytest.fixture
def w():
    torch.manual_seed(1)
    return torch.randn(4, dtype=torch.double, requires_grad=True)


def first(x, w):
    return 2 * x.detach().cos() * w.detach()


def second(x, w):
    return -2 * x.detach().sin() * w.detach()


def compiled(function):
    return torch.compile(function, fullgraph=True, backend="aot_eager")


def test_call_through_torch_ops(op, x, w):
    assert torch.equal(torch.autograd.grad(raw(op)(x, w, 2.0).sum(), x)[0], first(x, w))


def test_gradcheck_and_gradgradcheck(op, x, w):
    assert torch.autograd.gradcheck(lambda a, b: op(a, b, 2.0), (x, w), check_batched_grad=True)
    assert torch.autograd.gradgradcheck(lambda a, b: op(a, b, 2.0), (x, w))


def test_opcheck(op, x, w):
    torch.library.opcheck(raw(op).default, (x, w, 2.0))


@pytest.mark.parametrize("through", ["torch.ops", "the op"])
def test_compile_fullgraph(op, x, w, through):
    call = raw(op) if through == "torch.ops" else op
    loss = compiled(lambda a, b: call(a, b, 2.0).sum())(x, w)
    assert torch.allclose(torch.autograd.grad(loss, x)[0], first(x, w))


def test_node_is_named_after_the_op(op, x, w):
    assert op(x, w, 2.0).grad_fn.name() == "mulsin_customopBackward"


def test_func_grad_and_vjp(op, x, w):
    def loss(a):
        return op(a, w.detach(), 2.0).sum()

    assert torch.allclose(torch.func.grad(loss)(x.detach()), first(x, w))
    assert torch.allclose(
        torch.func.vjp(loss, x.detach())[1](torch.tensor(1.0).double())[0], first(x, w)
    )


def test_func_grad_of_grad(op, x, w):
    def loss(a):
        return op(a, w.detach(), 2.0).sum()

    got = torch.func.grad(lambda a: torch.func.grad(loss)(a).sum())(x.detach())
    assert torch.allclose(got, second(x, w))


def test_jacrev_and_jacrev_of_jacrev(op, x, w):
    def call(a):
        return op(a, w.detach(), 2.0)

    assert torch.allclose(torch.func.jacrev(call)(x.detach()), torch.diag(first(x, w)))
    got = torch.func.jacrev(torch.func.jacrev(call))(x.detach()).sum((0, 1))
    assert torch.allclose(got, second(x, w))


def test_vmap_loops_without_a_rule(op, w):
    batch = torch.randn(3, 4, dtype=torch.double)
    assert torch.allclose(
        torch.vmap(lambda a: op(a, w.detach(), 2.0))(batch), 2 * batch.sin() * w.detach()
    )


def test_vmap_uses_a_rule(w):
    op, batches = mulsin_op(), []

    @op.impl_vmap
    def _(info, in_dims, x, w, k):
        batches.append(info.batch_size)
        return op(x, w, k), in_dims[0]

    batch = torch.randn(3, 4, dtype=torch.double)
    assert torch.vmap(lambda a: op(a, w.detach(), 2.0))(batch).shape == (3, 4)
    assert batches == [3]


def test_vmap_of_grad_with_batched_weights(op):
    weights = torch.arange(12.0).double().view(3, 4)
    xs = torch.ones(3, 4).double()
    got = torch.vmap(torch.func.grad(lambda a, v: op(a, v, 2.0).sum()))(xs, weights)
    assert torch.allclose(got, 2 * xs.cos() * weights)


def test_func_grad_over_an_outer_graph(op, x, w):
    got = torch.func.grad(lambda a: op(a, w, 2.0).sum())(x.detach())
    assert torch.allclose(torch.autograd.grad(got.sum(), w)[0], 2 * x.detach().cos())


@pytest.mark.parametrize("batched", [False, True], ids=["grad", "vmap of grad"])
def test_compile_of_func_grad(op, x, w, batched):
    gradient = torch.func.grad(lambda a: op(a, w.detach(), 2.0).sum())
    if batched:
        gradient = torch.vmap(gradient)
    point = x.detach().expand(3, 4).clone() if batched else x.detach()
    assert torch.allclose(compiled(lambda a: gradient(a))(point), first(x, w).expand_as(point))


def test_forward_mode_without_a_formula_raises(op, x, w):
    with pytest.raises(ForwardModeError, match="no impl_jvp"):
        torch.func.jvp(lambda a: op(a, w.detach(), 2.0), (x.detach(),), (torch.ones(4).double(),))


def test_jvp_jacfwd_hessian(forward_op, x, w):
    def call(a):
        return forward_op(a, w.detach(), 2.0)

    ones = torch.ones(4).double()
    assert torch.allclose(torch.func.jvp(call, (x.detach(),), (ones,))[1], first(x, w))
    assert torch.allclose(torch.func.jacfwd(call)(x.detach()), torch.diag(first(x, w)))
    hessian = torch.func.hessian(lambda a: call(a).sum())(x.detach())
    assert torch.allclose(hessian, torch.diag(second(x, w)))


def test_dual_level(forward_op, x, w):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.detach(), torch.ones(4).double())
        tangent = forward_ad.unpack_dual(forward_op(dual, w.detach(), 2.0)).tangent
        assert torch.allclose(tangent, first(x, w))


def test_gradcheck_of_forward_mode(forward_op, x, w):
    def call(a, b):
        return forward_op(a, b, 2.0)

    assert torch.autograd.gradcheck(call, (x, w), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(call, (x, w), check_fwd_over_rev=True)


@pytest.mark.parametrize(
    ("returned", "phrase"),
    [(1.0, "object of type float"), ((None, None), "object of type tuple"), ("x", "type str")],
)
def test_a_wrong_tangent_is_named(x, w, returned, phrase):
    op = mulsin_op()
    op.impl_jvp(lambda ctx, saved, tangents: returned)
    with pytest.raises(ForwardModeError, match=phrase):
        torch.func.jvp(lambda a: op(a, w.detach(), 2.0), (x.detach(),), (torch.ones(4).double(),))


def test_autocast_casts_by_place_and_by_name():
    @custom_op(fresh("kw"))
    def kw(x: torch.Tensor, *, w: torch.Tensor) -> torch.Tensor:
        return x * w

    kw.impl_save_for_backward(lambda inputs, output: (inputs.x, inputs.w))
    kw.impl_backward(lambda ctx, saved, grad: {"x": grad * saved[1], "w": grad * saved[0]})
    kw.impl_autocast("cpu", torch.bfloat16)
    x = torch.randn(4, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = kw(x, w=torch.randn(4))
    y.sum().backward()
    assert (y.dtype, x.grad.dtype) == (torch.bfloat16, torch.float32)


def test_no_grad_and_inference_mode(op, x, w):
    with torch.no_grad():
        assert not op(x, w, 2.0).requires_grad
    with torch.inference_mode():
        assert op(x, w, 2.0).is_inference()


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(op, x, w, reentrant):
    checkpoint(lambda a: op(a, w, 2.0).sum(), x, use_reentrant=reentrant).backward()
    assert torch.allclose(x.grad, first(x, w))


def test_saved_tensor_hooks_see_every_saved_tensor(op, x, w):
    packed, unpacked = [], []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: packed.append(t) or t, lambda t: unpacked.append(t) or t
    ):
        loss = op(x, w, 2.0).sum()
    loss.backward()
    assert (len(packed), len(unpacked)) == (2, 2)


def test_a_saved_input_written_before_backward_is_noticed(op, x, w):
    w2 = w.detach().clone()
    loss = op(x, w2, 2.0).sum()
    w2.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_anomaly_mode(op, x, w):
    with torch.autograd.detect_anomaly():
        op(x, w, 2.0).sum().backward()
    assert torch.allclose(x.grad, first(x, w))


def test_make_fx_keeps_the_op_as_one_node(op, x, w):
    graph = make_fx(lambda a: op(a, w.detach(), 2.0))(x.detach())
    assert raw(op).default in [node.target for node in graph.graph.nodes]


class Scale(torch.nn.Module):
    def __init__(self, op):
        super().__init__()
        self.op = op
        self.w = torch.nn.Parameter(torch.ones(4, dtype=torch.double))

    def forward(self, x):
        return self.op(x, self.w, 2.0)


def test_a_module_that_uses_an_op_is_deep_copied(op, x, w):
    copied = copy.deepcopy(Scale(op))
    assert copied.op is op
    copied(x).sum().backward()
    assert torch.allclose(copied.w.grad, 2 * x.detach().sin())


def test_a_module_that_uses_an_op_is_exported(op, x):
    program = torch.export.export(Scale(op), (x.detach(),))
    assert raw(op).default in [node.target for node in program.graph.nodes]
    assert torch.allclose(program.module()(x.detach()), 2 * x.detach().sin())


@pytest.fixture(scope="module")
def many():
    return many_op()


@pytest.fixture
def xs():
    torch.manual_seed(0)
    return [torch.randn(3, dtype=torch.double, requires_grad=True) for _ in range(2)]


@pytest.fixture
def b():
    return torch.randn(3, dtype=torch.double, requires_grad=True)


class TestListsOptionalsAndSeveralOutputs:
    def test_gradients_of_lists(self, many, xs, b):
        total, order, doubled = many(xs, b, [1, 2])
        grads = torch.autograd.grad(total.sum() + doubled[0].sum(), [*xs, b])
        assert (order.requires_grad, doubled[0].requires_grad) == (False, True)
        assert [g.tolist() for g in grads] == [[5.0] * 3, [6.0] * 3, [1.0] * 3]
        assert (many.seen["xs"], many.seen["b"]) == ((True, True), True)
        assert many.seen["scale"] is False

    def test_optional_left_out(self, many, xs):
        assert torch.autograd.grad(many(xs, None, [1])[0].sum(), xs)[0].tolist() == [3.0] * 3

    def test_call_by_keyword(self, many, xs):
        total = many(xs=xs, b=None, idx=[1], scale=2.0)[0]
        assert torch.autograd.grad(total.sum(), xs)[0].tolist() == [2.0] * 3

    def test_gradcheck(self, many, xs, b):
        def call(p, q, r):
            outputs = many([p, q], r, [1], 2.0)
            return [outputs[0], *outputs[2]]

        assert torch.autograd.gradcheck(call, (*xs, b))

    def test_opcheck(self, many, xs, b):
        torch.library.opcheck(raw(many).default, (xs, b, [1]))

    def test_empty_list(self, many, b):
        assert many([], b, [1])[2] == []

    def test_compile(self, many, xs, b):
        def loss(p, q, r):
            outputs = many([p, q], r, [1])
            return outputs[0].sum() + outputs[2][0].sum()

        grads = torch.autograd.grad(compiled(loss)(*xs, b), xs)
        assert grads[0].tolist() == [5.0] * 3


def test_optional_elements_of_a_list_keep_their_gradient():
    @custom_op(fresh("holes"), "(Tensor?[] xs) -> Tensor")
    def holes(): ...

    holes.impl("cpu")(lambda xs: sum(t for t in xs if t is not None) * 2.0)
    holes.impl_save_for_backward(lambda inputs, output: [t is not None for t in inputs.xs])
    holes.impl_backward(lambda ctx, saved, g: {"xs": [g * 2 if there else None for there in saved]})
    x = torch.randn(3, requires_grad=True)
    assert torch.autograd.grad(holes([x, None]).sum(), x)[0].tolist() == [2.0] * 3


@pytest.mark.parametrize(
    ("schema", "given", "want"),
    [
        ("(Tensor x, *, float s=2.0) -> Tensor", {"s": 3.0}, 3.0),
        ("(Tensor x, *, float s=2.0) -> Tensor", {"s": 2.0}, 2.0),
        ("(Tensor x, *, float s=2.0) -> Tensor", {}, 2.0),
        ("(Tensor x, *, Tensor s) -> Tensor", {"s": torch.full((2,), 4.0)}, 4.0),
        ("(Tensor x, float s=2.0) -> Tensor", {}, 2.0),
        ("(Tensor x, float s=2.0) -> Tensor", {"s": 2.0}, 2.0),
    ],
)
def test_defaults_and_keyword_only_arguments(schema, given, want):
    @custom_op(fresh("kw"), schema)
    def kw(): ...

    @kw.impl("cpu")
    def _(x, s):
        return x * s

    kw.impl_save_for_backward(lambda inputs, output: (inputs.x, inputs.s))

    @kw.impl_backward()
    def _(ctx, saved, grad):
        more = {"s": grad * saved[0]} if isinstance(saved[1], torch.Tensor) else {}
        return {"x": grad * saved[1], **more}

    x = torch.ones(2, requires_grad=True)
    y = kw(x, **given)
    assert y.tolist() == torch.autograd.grad(y.sum(), x)[0].tolist() == [want] * 2
