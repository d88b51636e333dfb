"""Recording changes no result, gradient or exception of any op and any module that torch itself
tests.

The samples are torch.testing's: op_db and module_db. A sample whose plain run differs from its
own plain run (linalg.lstsq with gelsy depends on memory alignment) says nothing: it is counted
apart.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import pytest
import torch
from torch.testing._internal import common_utils
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.opinfo import core

from autograd_lab.capture.formulas import formula_of
from tests.capture.running import difference, plain, reasons, recorded, seed_all, tensors_in

OPS = [op for op in op_db if op.supports_autograd and torch.float64 in op.supported_dtypes("cpu")]


@dataclass
class Tally:
    """What was found over many samples; every list names the sample."""

    compared: int = 0
    differing: list[str] = field(default_factory=list)
    restless: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    raised: int = 0
    node_names: set[str] = field(default_factory=set)

    def add(self, name: str, program: Callable[[], object], **settings) -> None:
        """Run a program three times, and put the sample where it belongs."""
        expected = plain(program)
        if plain(program) != expected:
            self.restless.append(name)
            return
        found, recording = recorded(program, **settings)
        self.compared += 1
        self.raised += expected.error is not None
        self.node_names |= {node.name for node in recording.nodes}
        if found != expected:
            self.differing.append(f"{name}: {difference(expected, found)}")
        if "recorder failed" in reasons(recording):
            self.failed.append(f"{name}: {[event.text for event in recording.not_seen]}")


def op_program(op, number: int) -> Callable[[], object]:
    """Forward and backward of one sample, from fresh inputs."""

    def run():
        samples = op.sample_inputs("cpu", torch.float64, requires_grad=True)
        sample = next(islice(samples, number, None))
        arguments = [sample.input, *sample.args, *sample.kwargs.values()]
        seed_all(1)
        result = op(sample.input, *sample.args, **sample.kwargs)
        wanted = [x for x in tensors_in(arguments) if x.requires_grad and x.is_leaf]
        outputs = [y for y in tensors_in(result) if y.requires_grad]
        if not outputs or not wanted:
            return result, ()
        return result, torch.autograd.grad(outputs, wanted, weights(outputs), allow_unused=True)

    return run


def module_program(info, number: int, *, training: bool, dtype: torch.dtype):
    """Forward and backward of one sample of a module, in train or eval mode."""

    def run():
        sample = module_samples(info, training, dtype)[number]
        made = sample.constructor_input
        module = info.module_cls(*made.args, **made.kwargs).to(dtype).train(training)
        given = sample.forward_input
        seed_all(1)
        result = module(*given.args, **given.kwargs)
        outputs = [y for y in tensors_in(result) if y.requires_grad]
        if outputs:
            torch.autograd.backward(outputs, weights(outputs))
        inputs = tensors_in([*given.args, *given.kwargs.values()])
        grads = [x.grad for x in (*inputs, *module.parameters()) if x.is_leaf]
        return result, grads, list(module.buffers())

    return run


def module_samples(info, training: bool, dtype: torch.dtype) -> list:
    """The samples of a module."""
    return list(
        info.module_inputs_func(
            info, device="cpu", dtype=dtype, requires_grad=True, training=training
        )
    )


def weights(outputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Fixed gradients of the outputs, no two elements alike."""
    return [
        torch.linspace(0.5, 1.5, y.numel(), dtype=torch.float64).reshape(y.shape).to(y.dtype)
        for y in outputs
    ]


@pytest.fixture(scope="module", autouse=True)
def quick_samples_that_always_warn() -> Iterator[None]:
    """Samples look for the unittest that asks for them in the source of the whole stack, and
    torch.manual_seed keeps the stack for CUDA: two minutes under pytest. And a warning given once
    per process would tell first runs from second ones.
    """
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(action="ignore"):
        patch.setattr(common_utils, "extract_test_fn", lambda: None)
        patch.setattr(core, "extract_test_fn", lambda: None)
        patch.setattr(common_utils, "set_rng_seed", seed_all)
        torch.set_warn_always(True)
        yield
        torch.set_warn_always(False)


@pytest.fixture(scope="module")
def ops() -> Tally:
    """All ops, the first two samples of each, norms only; every fourth with values as well."""
    tally = Tally()
    for position, op in enumerate(OPS):
        seed_all(0)
        samples = op.sample_inputs("cpu", torch.float64, requires_grad=True)
        for number in range(len(list(islice(samples, 2)))):
            values = "auto" if position % 4 == 0 else "none"
            tally.add(f"{op.formatted_name} [{number}]", op_program(op, number), values=values)
    return tally


def test_no_op_changes_its_result_gradient_or_exception(ops):
    assert ops.differing == []


def test_recorder_itself_fails_on_no_op(ops):
    assert ops.failed == []


def test_comparison_of_ops_does_not_shrink_in_silence(ops):
    assert ops.compared >= 1000
    assert len(ops.restless) <= 5, ops.restless


def test_formulas_are_known_for_the_nodes_of_torchs_own_database(ops):
    named = {name for name in ops.node_names if formula_of(name)}
    assert len(named) >= 313, sorted(ops.node_names - named)


@pytest.fixture(scope="module")
def modules() -> Tally:
    """All modules in train and eval mode, the first three samples of each."""
    tally = Tally()
    for info in module_db:
        dtype = torch.float64 if torch.float64 in info.dtypes else info.dtypes[0]
        for training in (True, False):
            for number in range(min(3, len(module_samples(info, training, dtype)))):
                name = f"{info.name} {'train' if training else 'eval'} [{number}]"
                program = module_program(info, number, training=training, dtype=dtype)
                tally.add(name, program, values="none")
    return tally


def test_no_module_changes_its_result_gradient_or_exception(modules):
    assert modules.differing == []


def test_recorder_itself_fails_on_no_module(modules):
    assert modules.failed == []


def test_comparison_of_modules_does_not_shrink_in_silence(modules):
    assert modules.compared >= 250
    assert modules.restless == []
