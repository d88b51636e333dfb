"""Programs in which torch's own machinery stands between the user and the engine: compilers,
transforms, modes, process groups.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch._dynamo.utils import counters
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from tests.capture.programs import Program, batch, grads, small_net

ALL: list[Program] = []


def program(function: Program) -> Program:
    """Add a function to the list."""
    ALL.append(function)
    return function


def _compiled(*, fullgraph: bool):
    torch._dynamo.reset()
    counters.clear()
    net = small_net()
    compiled = torch.compile(net, backend="aot_eager", fullgraph=fullgraph)
    for _ in range(2):
        compiled(batch()).square().sum().backward()
    breaks = sum(counters["graph_break"].values())
    return grads(net), counters["stats"]["unique_graphs"], breaks


@program
def compiled_as_one_graph():
    return _compiled(fullgraph=True)


@program
def compiled():
    return _compiled(fullgraph=False)


@program
def compiled_with_a_graph_break():
    torch._dynamo.reset()
    counters.clear()

    @torch.compile(backend="aot_eager")
    def step(x):
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    x = batch(requires_grad=True)
    step(x).sum().backward()
    return x.grad, counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())


@program
def scripted_function_and_module():
    @torch.jit.script
    def gate(x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x) * x

    net = torch.jit.script(small_net())
    x = batch(requires_grad=True)
    net(gate(x)).sum().backward()
    return x.grad, grads(net)


@program
def traced_function():
    x = batch(requires_grad=True)
    traced = torch.jit.trace(lambda t: (t * 2).relu().view(-1), (batch(),))
    traced(x).sum().backward()
    return x.grad, re.sub(r" # .*", "", str(traced.graph))  # without source lines


@program
def exported_module():
    return str(torch.export.export(small_net(), (batch(),)).graph)


@program
def graph_traced_with_its_backward():
    def step(x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad((x * x).sum(), x)

    return make_fx(step)(batch()).code, torch.fx.symbolic_trace(small_net()).code


@program
def functional_transforms():
    w = torch.linspace(-1, 1, 12).reshape(3, 4)

    def loss(w, row):
        return (w @ row).tanh().sum()

    gradient = torch.func.grad(loss)(w, batch()[0])
    rows = torch.func.vmap(torch.func.grad(loss), (None, 0))(w, batch())
    jacobian = torch.func.jacrev(lambda w: (w @ batch()[0]).sin())(w)
    value, pull = torch.func.vjp(lambda w: w.exp(), w)
    tangent = torch.func.jvp(torch.sin, (w,), (torch.ones_like(w),))
    return gradient, rows, jacobian, value, pull(torch.ones_like(w)), tangent


@program
def functional_call_with_per_sample_gradients():
    net = small_net()
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def loss(parameters, row):
        return torch.func.functional_call(net, parameters, (row,)).square().sum()

    return torch.func.vmap(torch.func.grad(loss), (None, 0))(parameters, batch())


@program
def batched_gradients():
    x = batch(requires_grad=True)
    y = x.sin().sum(1)
    (rows,) = torch.autograd.grad(y, x, torch.eye(5), is_grads_batched=True)
    jacobian = torch.autograd.functional.jacobian(torch.exp, batch()[0], vectorize=True)
    hessian = torch.autograd.functional.hessian(lambda x: x.pow(3).sum(), batch()[0])
    return rows, jacobian, hessian


@program
def forward_mode():
    x = batch()
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        return torch.autograd.forward_ad.unpack_dual(dual.sin()).tangent


@program
def gradient_check():
    x = torch.linspace(-1, 1, 4, dtype=torch.float64, requires_grad=True)
    first = torch.autograd.gradcheck(torch.tanh, (x,))
    return first, torch.autograd.gradgradcheck(torch.tanh, (x,))


class LogOfDispatch(TorchDispatchMode):
    """A user's own record of every kernel call."""

    def __init__(self):
        super().__init__()
        self.log = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.log.append(str(func))
        return func(*args, **(kwargs or {}))


class LogOfFunctions(TorchFunctionMode):
    """A user's own record of every call."""

    def __init__(self):
        super().__init__()
        self.log = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.log.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


def _work(net=None):
    net = net or small_net(inplace=True)
    x = batch(requires_grad=True)
    net(x).sigmoid().sum().backward()
    return x.grad, grads(net)


@program
def dispatch_mode_of_the_user():
    with LogOfDispatch() as mode:
        result = _work()
    return mode.log, result


@program
def dispatch_mode_of_the_user_sees_an_error():
    x = torch.ones(3, requires_grad=True)
    log = []
    with LogOfDispatch() as mode:
        y = x.exp()
        z = y * 2
        y.add_(1)
        try:
            (z.sum() + y.sum()).backward()
        except RuntimeError as error:
            log.append(str(error))
    return mode.log, log


@program
def dispatch_mode_entered_between_forward_and_backward():
    net = small_net()
    loss = net(batch()).square().sum()
    with LogOfDispatch() as mode:
        loss.backward()
    return mode.log, grads(net)


@program
def function_mode_of_the_user():
    with LogOfFunctions() as mode:
        result = _work()
    return mode.log, result


@program
def function_mode_switched_off():
    x = batch(requires_grad=True)
    with LogOfFunctions() as mode, torch._C.DisableTorchFunction():
        (x * 2).sum().backward()
    return mode.log, x.grad


@program
def device_context_and_default_device():
    with torch.device("meta"):
        shape = torch.ones(2, 3).device.type
        net = nn.Linear(4, 3)
        meta = net(torch.ones(5, 4))
    with torch.device("cpu"):
        return shape, meta.device.type, _work()


@program
def deterministic_algorithms():
    torch.use_deterministic_algorithms(True)
    try:
        return _work()
    finally:
        torch.use_deterministic_algorithms(False)


@program
def distributed_data_parallel_in_one_process():
    with tempfile.TemporaryDirectory() as folder:
        store = f"file://{Path(folder) / 'store'}"
        torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
        try:
            net = small_net()
            ddp = nn.parallel.DistributedDataParallel(net)
            optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
            for _ in range(3):
                optimizer.zero_grad()
                ddp(batch()).square().sum().backward()
                optimizer.step()
            return grads(net), list(net.parameters())
        finally:
            torch.distributed.destroy_process_group()


@program
def data_parallel_without_devices():
    net = nn.DataParallel(small_net())
    net(batch()).sum().backward()
    return grads(net)


@torch.library.custom_op("autograd_lab_tests::scale", mutates_args=())
def scale(x: torch.Tensor, k: float) -> torch.Tensor:
    """A user's op that the dispatcher knows."""
    return x * k


scale.register_autograd(
    lambda ctx, grad: (grad * ctx.k, None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "k", inputs[1]),
)


@program
def custom_op_of_the_user():
    x = batch(requires_grad=True)
    scale(x.exp(), 2.0).sum().backward()
    return x.grad


@program
def data_loader():
    data = torch.utils.data.TensorDataset(batch(), torch.arange(5))
    loader = torch.utils.data.DataLoader(data, batch_size=2, shuffle=True)
    return [(x, y) for x, y in loader]
