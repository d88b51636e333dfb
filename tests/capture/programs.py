"""Programs that a user may write: forward and backward in every way, from fresh inputs.

Each returns what it computed and what its own hooks saw; some end in an exception.
"""

from __future__ import annotations

import copy
import io
import pickle
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 (torch's own custom)
from torch.utils.checkpoint import checkpoint

Program = Callable[[], object]
ALL: list[Program] = []


def program(function: Program) -> Program:
    """Add a function to the list."""
    ALL.append(function)
    return function


def small_net(*, inplace: bool = False) -> nn.Sequential:
    """Two linear layers, the same at each call under the same seed."""
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=inplace), nn.Linear(8, 3))


def batch(requires_grad: bool = False) -> torch.Tensor:
    """Five rows of four numbers, none of them zero."""
    return torch.linspace(-1.3, 1.1, 20).reshape(5, 4).requires_grad_(requires_grad)


def grads(module: nn.Module) -> list[torch.Tensor | None]:
    """The gradients of all parameters."""
    return [parameter.grad for parameter in module.parameters()]


@program
def two_linear_layers():
    net, x = small_net(), batch(requires_grad=True)
    loss = F.cross_entropy(net(x), torch.tensor([0, 1, 2, 0, 1]))
    loss.backward()
    return loss, grads(net), x.grad


@program
def convolution_with_batch_norm_and_dropout_in_place():
    net = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Dropout(0.3, inplace=True)
    )
    net(torch.randn(3, 2, 6, 6)).square().sum().backward()
    return grads(net), list(net.buffers())


@program
def recurrent_layers():
    net = nn.LSTM(4, 5, num_layers=2, bidirectional=True, batch_first=True)
    output, state = net(torch.randn(2, 6, 4))
    output.sum().backward()
    return output, state, grads(net)


@program
def attention_in_training():
    net = nn.MultiheadAttention(8, 2, dropout=0.1, batch_first=True)
    x = torch.randn(2, 5, 8, requires_grad=True)
    output, weights = net(x, x, x)
    (output.sum() + weights.square().sum()).backward()
    return output, weights, grads(net), x.grad


@program
def transformer_with_two_backwards():
    net = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    for _ in range(2):
        net(torch.randn(2, 5, 8)).square().mean().backward()
    return grads(net)


@program
def attention_in_eval_mode_that_needs_gradients():
    net = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    net(torch.randn(2, 5, 8)).square().mean().backward()
    return grads(net)


@program
def shared_module_and_tied_weights():
    embed, relu = nn.Embedding(7, 4), nn.ReLU()
    head = nn.Linear(4, 7, bias=False)
    head.weight = embed.weight
    h = relu(relu(embed(torch.tensor([1, 2, 2]))) - 0.1)
    head(h).sum().backward()
    return embed.weight.grad


@program
def sparse_embedding():
    embed = nn.Embedding(7, 4, sparse=True)
    optimizer = torch.optim.SparseAdam(embed.parameters())
    for _ in range(2):
        embed(torch.tensor([1, 2, 2])).square().sum().backward()
        optimizer.step()
    return embed.weight, embed.weight.grad


@program
def nested_containers_and_keywords():
    def step(x, *, mask=None, deep):
        return {"a": x * mask, "b": [deep["w"][0] @ x.T, (x.sin(),)]}

    x, w = batch(requires_grad=True), torch.ones(2, 4, requires_grad=True)
    out = step(x, mask=(x > 0).float(), deep={"w": [w]})
    torch.autograd.backward([out["a"].sum(), out["b"][0].sum(), out["b"][1][0].sum()])
    return out, x.grad, w.grad


@dataclass
class Prediction:
    """An output that is neither a tensor nor a tuple."""

    logits: torch.Tensor
    hidden: torch.Tensor


@program
def module_that_returns_a_dataclass():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 5), nn.Linear(5, 2)

        def forward(self, x):
            hidden = self.a(x).tanh()
            return Prediction(self.b(hidden), hidden)

    net = Net()
    prediction = net(batch())
    (prediction.logits.sum() + prediction.hidden.prod()).backward()
    return prediction, grads(net)


def _with_optimizer(make):
    net, x = small_net(), batch()
    optimizer = make(net.parameters())

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), torch.ones(5, 3))
        loss.backward()
        return loss

    losses = [optimizer.step(closure) for _ in range(3)]
    return losses, list(net.parameters()), optimizer.state_dict()["state"]


@program
def adam_steps():
    return _with_optimizer(lambda parameters: torch.optim.Adam(parameters, lr=0.05))


@program
def adamw_steps_one_parameter_at_a_time():
    return _with_optimizer(lambda parameters: torch.optim.AdamW(parameters, foreach=False))


@program
def fused_adam_steps():
    return _with_optimizer(lambda parameters: torch.optim.Adam(parameters, fused=True))


@program
def sgd_with_momentum():
    return _with_optimizer(lambda ps: torch.optim.SGD(ps, 0.1, momentum=0.9, nesterov=True))


@program
def lbfgs():
    return _with_optimizer(lambda ps: torch.optim.LBFGS(ps, line_search_fn="strong_wolfe"))


@program
def gradient_clipping_and_scheduler():
    net = small_net()
    optimizer = torch.optim.SGD(net.parameters(), 0.5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    norms = []
    for _ in range(3):
        optimizer.zero_grad(set_to_none=False)
        net(batch()).square().sum().backward()
        norms.append(nn.utils.clip_grad_norm_(net.parameters(), 0.1))
        optimizer.step()
        scheduler.step()
    return norms, list(net.parameters())


@program
def optimizer_in_backward():
    net, log = small_net(), []

    def update(parameter):
        log.append(parameter.grad.norm().item())
        with torch.no_grad():
            parameter -= 0.1 * parameter.grad
        parameter.grad = None

    for parameter in net.parameters():
        parameter.register_post_accumulate_grad_hook(update)
    for _ in range(2):
        net(batch()).square().sum().backward()
    return log, list(net.parameters()), grads(net)


@program
def hooks_that_edit_gradients_in_place():
    x, log = batch(requires_grad=True), []
    y = x * 2
    z = y.tanh()
    y.register_hook(lambda g: (log.append(g.sum().item()), g.mul_(3))[1])
    z.register_hook(lambda g: g.clamp_(-0.5, 0.5))
    z.grad_fn.register_prehook(lambda gs: (gs[0] * 2,))
    y.grad_fn.register_hook(lambda gi, go: (gi[0] + 1, *gi[1:]))
    x.register_post_accumulate_grad_hook(lambda leaf: leaf.grad.neg_())
    z.square().sum().backward()
    return log, x.grad


@program
def order_of_the_users_own_hooks():
    x, log = batch(requires_grad=True), []
    y = x.exp()
    for number in range(2):
        name = f"y{number}"
        y.register_hook(lambda g, name=name: log.append(("tensor", name, g.sum().item())))
        y.grad_fn.register_prehook(lambda gs, name=name: log.append(("before", name)))
        y.grad_fn.register_hook(lambda gi, go, name=name: log.append(("after", name)))
    x.register_hook(lambda g: log.append(("leaf", g.sum().item())))
    net = small_net()
    net.register_forward_hook(lambda m, i, o: log.append("forward"))
    net[0].register_full_backward_hook(lambda m, gi, go: log.append(("module", len(gi))))
    net(y).sum().backward()
    return log, x.grad, len(x._backward_hooks), len(net._forward_hooks)


@program
def hook_that_removes_itself_and_registers_another():
    x, log = batch(requires_grad=True), []
    y = x * 3

    def once(grad):
        log.append("once")
        handle.remove()
        y.grad_fn.register_hook(lambda gi, go: log.append("late"))

    handle = y.register_hook(once)
    for _ in range(2):
        y.sum().backward(retain_graph=True)
    return log, x.grad


@program
def gradient_edges_as_roots():
    x = batch(requires_grad=True)
    y = x.sin()
    edge = torch.autograd.graph.get_gradient_edge(y)
    middle = torch.autograd.grad(edge, x, torch.ones_like(y), retain_graph=True)
    torch.autograd.backward(edge, torch.full_like(y, 2.0))
    return middle, x.grad


@program
def several_roots_and_retained_graph():
    x = batch(requires_grad=True)
    h = x.exp()
    a, b = h.sum(), h * x
    torch.autograd.backward([a, b], [None, torch.ones_like(b)], retain_graph=True)
    first = x.grad.clone()
    a.backward()
    h2 = x.detach().exp()
    h2.retain_grad() if h2.requires_grad else None
    return first, x.grad


@program
def double_backward():
    x = torch.linspace(-1, 1, 6, requires_grad=True)
    y = torch.tanh(x * x * x)
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    second.square().sum().backward()
    return first, second, x.grad


@program
def second_backward_over_a_freed_graph():
    x = batch(requires_grad=True)
    y = x.exp().sum()
    y.backward()
    y.backward()


@program
def loss_that_does_not_require_grad():
    batch().sum().backward()


@program
def in_place_on_a_saved_tensor():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    z = y * 2
    y.add_(1)
    (z.sum() + y.sum()).backward()


@program
def in_place_on_a_leaf():
    x = batch(requires_grad=True)
    x.add_(1)


@program
def shape_error_halfway_in_forward():
    net = small_net()
    net[2](net[0](batch())[:, :5])


@program
def exception_in_a_hook_leaves_some_gradients():
    a, b, log = batch(requires_grad=True), batch(requires_grad=True), []

    def refuse(grad):
        message = "no further"
        raise ValueError(message)

    h = a * 2
    h.register_hook(refuse)
    try:
        (h.exp() + b).sum().backward()
    except ValueError as error:
        log.append(str(error))
    return log, a.grad, b.grad


@program
def in_place_on_views():
    x = torch.ones(4, 4, requires_grad=True)
    y = x * 1
    row = y[0]
    y[1] = 5
    row.mul_(3)
    y[:, 2] += row.sum()
    y.T[0].sub_(1)
    with torch.no_grad():
        y[3].zero_()
    y.square().sum().backward()
    return y, x.grad


@program
def gradients_edited_through_data():
    x = batch(requires_grad=True)
    for _ in range(3):
        (x * 2).sum().backward()
        x.data -= 0.1 * x.grad
        x.grad.data.zero_()
    return x, x.grad


class ReentrantSquare(torch.autograd.Function):
    """Calls autograd.grad inside its backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            (inner,) = torch.autograd.grad((x * x).sum(), x)
        return grad * inner


@program
def function_that_calls_grad_inside():
    x = batch(requires_grad=True)
    ReentrantSquare.apply(x.sin()).sum().backward()
    return x.grad


class NamesOfItsOwn(torch.autograd.Function):
    """Keeps things under the names that torch's nodes use."""

    @staticmethod
    def forward(ctx, x, factor, label):
        ctx.name, ctx.variable, ctx.leaf = label, x, True
        ctx.register_hook, ctx.register_prehook = None, "mine"
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        assert ctx.name == "label"
        return grad * ctx.factor, None, None


@program
def function_with_attributes_named_like_those_of_nodes():
    x = batch(requires_grad=True)
    NamesOfItsOwn.apply(x.exp(), 3, "label").sum().backward()
    return x.grad


class EditsItsGradient(torch.autograd.Function):
    """Writes into the gradient it receives."""

    @staticmethod
    def forward(ctx, first, x):
        ctx.mark_dirty(x)
        return x.mul_(first)

    @staticmethod
    def backward(ctx, grad):
        return None, grad.mul_(2)


@program
def function_that_writes_into_its_gradient():
    x = batch(requires_grad=True)
    y = EditsItsGradient.apply(3, x * 1)
    y.square().sum().backward()
    return y, x.grad


class Refuses(torch.autograd.Function):
    """Raises in its backward."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        message = "this backward refuses"
        raise ArithmeticError(message)


@program
def function_whose_backward_raises():
    x = batch(requires_grad=True)
    Refuses.apply(x.exp()).sum().backward()


class WrongCount(torch.autograd.Function):
    """Returns two gradients for one input."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


@program
def function_that_returns_too_many_gradients():
    WrongCount.apply(batch(requires_grad=True)).sum().backward()


class Deep(torch.autograd.Function):
    """Calls backward inside its backward, many levels deep."""

    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        if ctx.depth:
            with torch.enable_grad():
                Deep.apply(x.detach().requires_grad_(), ctx.depth - 1).sum().backward()
        return grad * 2, None


@program
def backward_inside_backward_deeper_than_one_thread_goes():
    x = torch.ones(2, requires_grad=True)
    Deep.apply(x, 80).sum().backward()
    return x.grad


def _checkpointed(use_reentrant: bool):
    first, second, log = small_net(), nn.Linear(3, 4), []

    def block(h):
        log.append(torch.is_grad_enabled())
        return F.dropout(first(h).tanh(), 0.5)

    x = batch(requires_grad=True)
    h = checkpoint(block, x, use_reentrant=use_reentrant)
    second(h).square().sum().backward()
    return log, x.grad, grads(first), grads(second)


@program
def reentrant_checkpoint():
    return _checkpointed(use_reentrant=True)


@program
def checkpoint_by_saved_tensor_hooks():
    return _checkpointed(use_reentrant=False)


@program
def saved_tensor_hooks_of_the_user():
    log, x = [], batch(requires_grad=True)

    def pack(tensor):
        log.append(("pack", tuple(tensor.shape)))
        return tensor.numpy(force=True).copy()

    def unpack(array):
        log.append(("unpack", array.shape))
        return torch.from_numpy(array)

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = (x.exp() * x).sigmoid()
    y.sum().backward()
    return log, x.grad


@program
def save_on_cpu():
    x = batch(requires_grad=True)
    with torch.autograd.graph.save_on_cpu():
        y = x.exp().tanh()
    y.sum().backward()
    return x.grad


@program
def saved_tensor_hooks_that_raise():
    def refuse(packed):
        message = "unpack refused"
        raise LookupError(message)

    x = batch(requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, refuse):
        y = x.exp()
    y.sum().backward()


@program
def allow_mutation_on_saved_tensors():
    x = batch(requires_grad=True)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.exp()
        z = y * 2
        y.add_(1)
        (z.sum() + y.sum()).backward()
    return x.grad


@program
def forward_without_grad_and_inference_mode():
    net, x = small_net(), batch()
    with torch.no_grad():
        a = net(x)
    with torch.inference_mode():
        b = net(x)
        c = b * 2
        c.add_(1)
    return a, b.clone(), c.clone(), b.is_inference()


@program
def complex_numbers():
    z = torch.tensor([1 + 2j, -0.5j, 3.0], requires_grad=True)
    (z.conj() * z + torch.fft.fft(z)).abs().sum().backward()
    return z.grad


@program
def half_precision():
    out = []
    for dtype in (torch.bfloat16, torch.float16):
        x = batch().to(dtype).requires_grad_()
        (x * x).sum().backward()
        out.append(x.grad)
    return out


@program
def float8():
    x = batch(requires_grad=True)
    y = (x * 2).to(torch.float8_e4m3fn)
    (x * y.float()).sum().backward()
    return y, x.grad


@program
def autocast_to_bfloat16():
    net = small_net()
    with torch.autocast("cpu", torch.bfloat16):
        out = net(batch())
    out.float().square().mean().backward()
    return out, grads(net)


@program
def empty_and_scalar_tensors():
    e, s = torch.zeros(0, 3, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    (e.sum() + s.exp() + e.reshape(3, 0).prod()).backward()
    return e.grad, s.grad


@program
def outputs_that_get_no_gradient():
    x, w = batch(requires_grad=True), torch.ones(4, requires_grad=True)
    a, b = x.split(2, dim=1)
    values, _ = x.max(dim=1)
    (a.sum() + values[0]).backward()
    unused = torch.autograd.grad((x * 2).sum(), [x, w], allow_unused=True)
    zeros = torch.autograd.grad((x * 2).sum(), [x, w], materialize_grads=True)
    return b, x.grad, w.grad, unused, zeros


@program
def infinite_and_nan_gradients():
    x = torch.tensor([0.0, 1.0, -1.0], requires_grad=True)
    torch.where(x > 0, x.sqrt(), 0).sum().backward()
    y = torch.full((2,), 1e-30, requires_grad=True)
    (1 / y**2).sum().backward()
    return x.grad, y.grad


@program
def anomaly_mode():
    x, error = torch.tensor([0.0], requires_grad=True), None
    with warnings.catch_warnings(record=True) as caught, torch.autograd.detect_anomaly():
        try:
            torch.where(x > 0, x.sqrt(), 0).sum().backward()
        except RuntimeError as raised:
            error = str(raised)
    return error, [str(warning.message).partition("\n")[0] for warning in caught]


@program
def backward_in_another_thread():
    net, x, errors = small_net(), batch(), []
    loss = net(x).square().sum()

    def run():
        try:
            loss.backward()
            loss.backward()
        except RuntimeError as error:
            errors.append(str(error)[:60])

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return errors, grads(net)


@program
def forward_in_another_thread():
    net, out = small_net(), []
    thread = threading.Thread(target=lambda: out.append(net(batch()).sum()))
    thread.start()
    thread.join()
    (out[0] * 2).backward()
    return grads(net)


@program
def two_threads_train_at_once():
    nets = [small_net(), small_net()]

    def train(net):
        for _ in range(5):
            net(batch()).square().sum().backward()

    threads = [threading.Thread(target=train, args=(net,)) for net in nets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [grads(net) for net in nets]


@program
def model_copied_and_pickled_inside():
    net, x = small_net(), batch()
    twin = copy.deepcopy(net)
    net(x).sum().backward()
    data = pickle.dumps(net.state_dict())
    buffer = io.BytesIO()
    torch.save(net, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, weights_only=False)
    leaf = copy.deepcopy(batch(requires_grad=True))
    return bool(data), grads(twin), list(loaded.parameters()), leaf, sorted(vars(net))


@program
def generator_of_microbatches():
    net = small_net()

    def losses():
        for part in batch().split(2):
            yield net(part).square().sum()

    seen = []
    for loss in losses():
        loss.backward()
        seen.append(loss.item())
    return seen, grads(net)


@program
def nested_tensors():
    x, y = torch.ones(2, 3, requires_grad=True), torch.ones(4, 3, requires_grad=True)
    both = torch.nested.as_nested_tensor([x, y], layout=torch.jagged)
    (both * 2).values().sum().backward()
    old = torch.nested.as_nested_tensor([x, y], layout=torch.strided)
    return (old * 3).unbind(), x.grad, y.grad


@program
def quantized_and_integer_tensors():
    q = torch.quantize_per_tensor(batch(), 0.1, 3, torch.qint8)
    return q.dequantize(), torch.arange(4) // 2, torch.tensor([True]) & torch.tensor([False])


class LoggingTensor(torch.Tensor):
    """A subclass that sees its own calls."""

    log: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.log.append(getattr(func, "__name__", "?"))
        return super().__torch_function__(func, types, args, kwargs)


@program
def subclass_that_logs_its_calls():
    LoggingTensor.log = []
    x = batch().as_subclass(LoggingTensor).requires_grad_()
    y = (x * 2).relu()
    y.sum().backward()
    return list(LoggingTensor.log), x.grad


@program
def lazy_modules():
    net = nn.Sequential(nn.LazyConv1d(2, 3), nn.Flatten(), nn.LazyLinear(3))
    net(torch.randn(2, 3, 6)).sum().backward()
    return grads(net)


@program
def parametrized_and_weight_normed_modules():
    net = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
    other = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2))
    other(net(batch())).sum().backward()
    return grads(net), grads(other), list(other.buffers())


@program
def nothing_at_all():
    return None
