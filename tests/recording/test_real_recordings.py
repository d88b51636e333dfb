"""What was recorded from real programs goes through a file whole, small and without recursion."""

from __future__ import annotations

import inspect
import json
import sys
from contextlib import contextmanager

import pytest
import torch
from torch import nn

import autograd_lab as al

LENGTH = 5_000


@contextmanager
def little_stack(frames):
    """Leave room for that many more calls, as a notebook deep in other code might."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + frames)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def recorded_chain():
    x = torch.ones(3, requires_grad=True)

    def step():
        y = x
        for _ in range(LENGTH):
            y = y * 1.0001
        y.sum().backward()

    return al.record_step(step)


@pytest.fixture(scope="module")
def chain():
    return recorded_chain()


def transformer_step(values):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    model = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
    x = torch.randn(4, 16, 32)
    return al.record_step(lambda: model(x).square().mean().backward(), model=model, values=values)


def test_a_chain_of_5000_calls_comes_back_equal_from_a_small_stack(chain, tmp_path):
    with little_stack(60):
        path = chain.save(tmp_path / "chain.json")
        loaded = al.load_recording(path)
        assert loaded == chain
    assert len(loaded.nodes) == LENGTH + 2
    assert path.stat().st_size < 400 * LENGTH


@pytest.mark.parametrize("values", ["none", "auto", "all"])
def test_a_transformer_step_comes_back_equal(values, tmp_path):
    recording = transformer_step(values)
    assert al.load_recording(recording.save(tmp_path / "step.json")) == recording


def test_a_transformer_step_without_values_takes_at_most_150_kb(tmp_path):
    path = transformer_step("none").save(tmp_path / "step.json")
    assert path.stat().st_size <= 150_000
    assert [entry.name for entry in tmp_path.iterdir()] == ["step.json"]


def test_values_of_a_real_recording_go_beside_the_json(tmp_path):
    x = torch.randn(200, 200, dtype=torch.complex64, requires_grad=True)
    recording = al.record_step(lambda: (x * 2).abs().sum().backward(), values="all")
    path = recording.save(tmp_path / "step.json")
    assert json.loads(path.read_bytes())["values"]["file"] in {p.name for p in tmp_path.iterdir()}
    assert al.load_recording(path) == recording


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.complex64], ids=str)
def test_a_recorded_dtype_comes_back(dtype, tmp_path):
    x = torch.tensor([1.0, float("nan"), -0.0], dtype=dtype, requires_grad=True)
    recording = al.record_step(lambda: (x * 3).abs().sum().backward(), values="all")
    loaded = al.load_recording(recording.save(tmp_path / "step.json"))
    assert loaded == recording
    assert loaded.tensors[0].dtype == str(dtype).removeprefix("torch.")
