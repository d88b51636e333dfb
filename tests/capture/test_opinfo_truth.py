"""What a recording says of an op's outputs is what the op returned, over torch's own database."""

import math
import warnings

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import autograd_lab as al
from autograd_lab.recording import OpCalled
from tests.capture.running import seed_all, tensors_in

OPS = [op for op in op_db if op.supports_autograd and op.supports_dtype(torch.float64, "cpu")]


def norms_of(op, values):
    """(what torch says, what the last recorded call says) of the outputs; None where it raised."""
    seed_all(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sample = next(iter(op.sample_inputs("cpu", torch.float64, requires_grad=True)), None)
        if sample is None:
            return None
        with al.record(values=values) as rec:
            try:
                output = op(sample.input, *sample.args, **sample.kwargs)
            except RuntimeError:
                return None
        real = [
            float(torch.linalg.vector_norm(tensor.detach().to_dense().reshape(-1)))
            for tensor in tensors_in(output)
            if tensor.is_floating_point() or tensor.is_complex()
        ]
    calls = list(rec.recording.events_of(OpCalled))
    told = [shot.norm for shot in calls[-1].outputs if shot.norm is not None] if calls else []
    return real, told


@pytest.mark.parametrize(("values", "step", "at_least"), [("none", 1, 400), ("auto", 4, 100)])
def test_norms_of_recorded_outputs_are_those_of_torch(values, step, at_least):
    compared, wrong = 0, []
    for op in OPS[::step]:
        found = norms_of(op, values)
        if (
            found is None
            or len(found[0]) != len(found[1])
            or op.name.startswith(("empty", "new_e"))
        ):
            continue
        compared += 1
        pairs = zip(*found, strict=True)
        if not all(math.isclose(a, b, rel_tol=1e-6) or (a != a and b != b) for a, b in pairs):
            wrong.append((op.formatted_name, *found))
    assert wrong == []
    assert compared >= at_least
