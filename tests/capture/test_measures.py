"""Norms against torch's own in float64, for every way in which a tensor lies in memory."""

from __future__ import annotations

import math

import pytest
import torch

import autograd_lab as al
from autograd_lab.capture import measures

SIDE = 300  # 90 000 elements: measured at once, by a dot product


def numbers(*shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(0))


LAYOUTS = {
    "contiguous": lambda: numbers(SIDE, SIDE),
    "double": lambda: numbers(SIDE, SIDE, dtype=torch.float64),
    "transposed": lambda: numbers(SIDE, SIDE).T,
    "permuted": lambda: numbers(4, SIDE, SIDE).permute(2, 0, 1),
    "one row, permuted": lambda: numbers(1, SIDE, SIDE).permute(2, 0, 1),
    "columns of a wider one": lambda: numbers(SIDE, 3 * SIDE)[:, SIDE : 2 * SIDE],
    "every second element": lambda: numbers(4 * SIDE * SIDE)[::2],
    "expanded": lambda: numbers(1, SIDE).expand(SIDE, SIDE),
    "several dot products": lambda: numbers(3, SIDE, SIDE * 4),
    "strided and too large to copy": lambda: numbers(1 << 22)[::2][: (1 << 21) + 1],
    "small": lambda: numbers(3, 5),
    "no dimensions": lambda: numbers(),
    "empty": lambda: numbers(0, 3),
    "sum of squares overflows": lambda: numbers(SIDE, SIDE) * 1e25,
    "sum of squares underflows": lambda: numbers(SIDE, SIDE) * 1e-30,
    "all the same": lambda: torch.full((1 << 20,), 0.1),
}


@pytest.mark.parametrize("values", ["none", "auto"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_norm_is_torchs_norm_in_float64(layout, values):
    x = LAYOUTS[layout]()
    with al.record(values=values) as rec:
        x.view_as(x)
    (event,) = rec.recording.events
    norm = torch.linalg.vector_norm(x.double()).item()
    # float32 sums of 2**18 equal squares lose up to 2e-5; 9 digits are stored
    assert event.inputs[0].norm == pytest.approx(norm, rel=3e-5, abs=0)
    assert event.inputs[0].finite


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf], ids=str)
@pytest.mark.parametrize(
    "layout", ["contiguous", "columns of a wider one", "small", "several dot products"]
)
def test_one_bad_element_is_noticed(layout, bad):
    x = LAYOUTS[layout]().clone()
    x.view(-1)[7] = bad
    with al.record(values="none") as rec:
        x.view_as(x)
    shot = rec.recording.events[0].inputs[0]
    assert shot.finite is False
    assert math.isnan(shot.norm) == math.isnan(bad)


def test_small_tensors_of_one_shape_keep_their_own_norms():
    rows = [numbers(7) * scale for scale in (1.0, 1e-30, 0.0, 1e30)]
    with al.record(values="none") as rec:
        torch.stack(rows)
    (event,) = rec.recording.events
    expected = [torch.linalg.vector_norm(row.double()).item() for row in rows]
    assert [shot.norm for shot in event.inputs] == pytest.approx(expected, rel=1e-6, abs=0)


@pytest.fixture
def far(monkeypatch):
    """Numbers are fetched at the end of the block, as from an accelerator."""
    monkeypatch.setattr(measures, "NEAR", frozenset())


def test_a_parameter_that_held_nan_is_to_blame_on_an_accelerator_too(far):
    net = torch.nn.Linear(3, 3)
    with torch.no_grad():
        net.weight[0, 0] = math.nan
    with al.record(net, values="none") as rec:
        net(torch.ones(2, 3)).sum().backward()
    assert "weight already held it" in rec.recording.problems[0].text


def test_a_norm_that_overflows_on_an_accelerator_is_no_inf(far):
    x = torch.full((20,), 1e200, dtype=torch.float64)
    with al.record(values="none") as rec:
        x.clone()
    (shot,) = rec.recording.events[0].outputs
    assert shot.finite is True
    assert rec.recording.problems == ()


def test_norms_fetched_at_the_end_are_those_read_at_once(far):
    x = numbers(7, 5)
    with al.record(values="none") as rec:
        x.clone()
    (shot,) = rec.recording.events[0].outputs
    assert shot.norm == pytest.approx(torch.linalg.vector_norm(x.double()).item())
