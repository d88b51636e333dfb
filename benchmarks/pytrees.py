"""`python -m benchmarks.pytrees`: print what saving a tree and unpacking it costs, as ratios.

Compared is the code of torch's reference module for custom ops, where it is importable, in one
interleaved run: thread CPU time on one ctx without an engine, medians over rounds.
"""

from __future__ import annotations

import importlib
import json
import statistics
import time
import warnings
from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from autograd_lab.pytrees import save_pytree_for_backward, unpack_saved

from .measure import options_of

TARGETS = {"flat tuple": 0.1, "nested dict": 0.4}
CALLS = 300
Pair = namedtuple("Pair", "p q")


@dataclass
class Point:
    """A container that the reference does not know: it keeps the tensors on ctx."""

    x: torch.Tensor
    y: torch.Tensor


class Ctx:
    """As torch's ctx, without the graph."""

    def save_for_backward(self, *tensors: torch.Tensor) -> None:
        """Keep the tensors."""
        self.saved_tensors = tensors


Way = tuple[Callable[[Any, Any], None], Callable[[Any], Any]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, and store the same as JSON where asked to."""
    options = options_of("benchmarks.pytrees", __doc__, 51, arguments)
    torch.set_num_threads(1)
    reference = _reference()
    ways: dict[str, Way] = {"ours": (save_pytree_for_backward, unpack_saved)}
    if reference is not None:
        ways["reference"] = reference
    found: dict[str, Any] = {"torch": str(torch.__version__), "rounds": options.rounds}
    print("save + unpack         ours us   reference us   ratio")
    for name, tree in _trees().items():
        times = _median_us(ways, tree, options.rounds)
        found[name] = times
        against, target = times.get("reference"), TARGETS.get(name)
        ratio = "" if against is None else f"{times['ours'] / against:8.3f}"
        shown = "             -" if against is None else f"{against:14.2f}"
        wanted = f"   (target <= {target}x)" if target else ""
        print(f"  {name:18} {times['ours']:8.2f} {shown}{ratio}{wanted}")
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def _trees() -> dict[str, Any]:
    a, b = torch.randn(3), torch.randn(3)
    return {
        "single tensor": a,
        "flat tuple": (a, b),
        "dict with a scalar": {"a": a, "b": b, "k": 2.0},
        "nested dict": {"t": [a, (b,)], "m": {"k": 2.0, "n": None}},
        "named tuple": Pair(a, {"z": b}),
        "dataclass": Point(a, b),
    }


def _reference() -> Way | None:
    """The reference module's pair of functions; None where this torch no longer ships it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            module = importlib.import_module("torch._custom_op.autograd")
    except ImportError:
        return None
    return module.save_pytree_for_backward, module.unpack_saved


def _median_us(ways: dict[str, Way], tree: object, rounds: int) -> dict[str, float]:
    """Microseconds of one save and unpack, by way; each round runs every way in turn."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 2):
        for name, (save, unpack) in ways.items():
            start = time.thread_time()
            for _ in range(CALLS):
                ctx = Ctx()
                save(ctx, tree)
                unpack(ctx)
            if number >= 2:
                times[name].append((time.thread_time() - start) / CALLS * 1e6)
    return {name: statistics.median(values) for name, values in times.items()}


if __name__ == "__main__":
    main()
