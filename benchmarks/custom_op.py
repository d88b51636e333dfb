"""`python -m benchmarks.custom_op`: print what a call of a custom op costs, as ratios.

Compared is a plain autograd.Function that does the same, in one interleaved run: thread CPU time of
`a * b * k` on tensors of three elements, the least of the rounds. Beside it stand torch's own
custom_op and, where it is importable, torch's reference module.
"""

from __future__ import annotations

import gc
import importlib
import json
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from autograd_lab.ops import custom_op

from .measure import options_of

MODES = ("no_grad forward", "grad forward", "forward + backward")
TARGETS = {"ours, flat tuple": (1.3, 2.2, 1.7), "ours, dict": (1.3, 2.4, 1.8)}
CALLS = 300
SCHEMA = "(Tensor a, Tensor b, float k) -> Tensor"
Call = Callable[..., Tensor]


class Product(torch.autograd.Function):
    """What all others are compared with."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, k: float) -> Tensor:  # noqa: ANN401
        """Multiply."""
        ctx.save_for_backward(a, b)
        ctx.k = k
        return a * b * k

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:  # noqa: ANN401
        """Multiply by the other one."""
        (grad,) = grad_outputs
        a, b = ctx.saved_tensors
        return grad * b * ctx.k, grad * a * ctx.k, None


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, and store the same as JSON where asked to."""
    options = options_of("benchmarks.custom_op", __doc__, 21, arguments)
    torch.set_num_threads(1)
    calls = _calls()
    gc.freeze()  # collecting then looks at what the calls made alone
    times = _least_us(calls, options.rounds)
    plain = times["autograd.Function"]
    found: dict[str, Any] = {"torch": str(torch.__version__), "rounds": options.rounds, "us": times}
    print(f"{'ratio to a plain autograd.Function':36}" + "".join(f"{mode:>22}" for mode in MODES))
    for name, row in times.items():
        targets = TARGETS.get(name, (None,) * 3)
        cells = [
            f"{us / base:6.2f}" + (f" (<= {target})" if target else f" ({us:5.1f} us)")
            for us, base, target in zip(row, plain, targets, strict=True)
        ]
        print(f"  {name:34}" + "".join(f"{cell:>22}" for cell in cells))
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def _calls() -> dict[str, Call]:
    """The same op, written in each way."""
    calls: dict[str, Call] = {
        "autograd.Function": Product.apply,
        "torch.library.custom_op": _torchs(),
    }
    reference = _reference()
    if reference is not None:
        calls["reference module, dict"] = reference
    calls["ours, flat tuple"] = _ours("flat", _save_flat, _backward_of_flat)
    calls["ours, dict"] = _ours("dict", _save_dict, _backward_of_dict)
    return calls


def _least_us(calls: dict[str, Call], rounds: int) -> dict[str, list[float]]:
    a, b = (torch.randn(3, requires_grad=True) for _ in range(2))
    ones = torch.ones(3)
    best = {name: [float("inf")] * 3 for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            row = best[name]
            with torch.no_grad():
                row[0] = min(row[0], _us(lambda call=call: call(a, b, 2.5)))
            row[1] = min(row[1], _us(lambda call=call: call(a, b, 2.5)))
            row[2] = min(
                row[2], _us(lambda call=call: torch.autograd.grad(call(a, b, 2.5), (a, b), ones))
            )
    return best


def _us(run: Callable[[], object]) -> float:
    """Microseconds of one run, without what others left behind.

    The reference makes a class in each call: the way measured after it would pay for collecting
    them.
    """
    gc.collect()
    for _ in range(CALLS // 10):
        run()
    start = time.thread_time()
    for _ in range(CALLS):
        run()
    return (time.thread_time() - start) / CALLS * 1e6


def _ours(name: str, save: Callable[..., Any], backward: Callable[..., Any]) -> Call:
    op = custom_op(f"bench::{name}", SCHEMA)(_named(name))
    op.impl("cpu")(_product)
    op.impl_save_for_backward(save)
    op.impl_backward(backward)
    return getattr(torch.ops.bench, name).default


def _named(name: str) -> Callable[[], None]:
    def stub() -> None: ...

    stub.__name__, stub.__annotations__ = name, {}
    return stub


def _product(a: Tensor, b: Tensor, k: float) -> Tensor:
    return a * b * k


def _save_flat(inputs: Any, output: Tensor) -> Any:  # noqa: ANN401
    return inputs.a, inputs.b


def _backward_of_flat(ctx: Any, saved: Any, grad: Tensor) -> dict[str, Tensor]:  # noqa: ANN401
    return {"a": grad * saved[1] * 2.5, "b": grad * saved[0] * 2.5}


def _save_dict(inputs: Any, output: Tensor) -> Any:  # noqa: ANN401
    return {"a": inputs.a, "b": inputs.b, "k": inputs.k}


def _backward_of_dict(ctx: Any, saved: Any, grad: Tensor) -> dict[str, Tensor]:  # noqa: ANN401
    return {"a": grad * saved["b"] * saved["k"], "b": grad * saved["a"] * saved["k"]}


def _torchs() -> Call:
    op = torch.library.custom_op("bench::torchs", _product, mutates_args=())

    def save(ctx: Any, inputs: Any, output: Tensor) -> None:  # noqa: ANN401
        ctx.save_for_backward(inputs[0], inputs[1])
        ctx.k = inputs[2]

    op.register_autograd(Product.backward, setup_context=save)
    return op


def _reference() -> Call | None:
    """Torch's reference module; None where this torch no longer has it."""
    try:
        module = importlib.import_module("torch._custom_ops")
    except ImportError:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module.custom_op("bench::reference", SCHEMA)
        module.impl("bench::reference", device_types="cpu")(_product)
        module.impl_save_for_backward("bench::reference")(_save_dict)
        module.impl_backward("bench::reference")(_backward_of_dict)
    return torch.ops.bench.reference.default


if __name__ == "__main__":
    main()
