"""Gradients that are exactly 0 are blamed on the call whose zeros they come from."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import autograd_lab as al
from autograd_lab.replay import gradient_flow


def zeros_of(model, inputs, *, named=True):
    """The findings of exact zeros in one step."""
    with al.record(model if named else None) as rec:
        model(inputs).sum().backward()
    return [one for one in gradient_flow(rec.recording).findings if one.what == "zero"]


def dead(layer):
    nn.init.constant_(layer.bias, -1e3)
    return layer


@pytest.mark.parametrize("inplace", [False, True])
def test_dead_relu_is_one_finding_that_names_the_relu_its_module_and_its_line(inplace):
    relu = nn.ReLU(inplace)
    model = nn.Sequential(dead(nn.Linear(4, 4)), relu, nn.Linear(4, 2))
    (found,) = zeros_of(model, torch.ones(3, 4))

    assert found.where.startswith("relu in 1 (")
    assert "2.weight, 0.bias, 0.weight is exactly 0" in found.evidence
    assert "leaky" in found.try_


def test_zeros_that_pooling_and_views_carry_on_lead_to_the_relu():
    conv = dead(nn.Conv2d(1, 2, 3))
    tail = [nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 2, bias=False), nn.Linear(2, 2)]
    (found,) = zeros_of(nn.Sequential(conv, nn.ReLU(), *tail), torch.ones(2, 1, 6, 6))

    assert found.where.startswith("relu in 1 (")
    assert "5.weight, 4.weight, 0.weight, 0.bias" in found.evidence


def test_weight_that_starts_at_zero_is_named():
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    nn.init.zeros_(model[2].weight)
    (found,) = zeros_of(model, torch.ones(3, 4), named=False)

    assert "was given model.2.weight, which is 0 in every element" in found.evidence


def test_relu_written_as_maximum_is_named_and_not_its_zeros():
    x = torch.ones(3, requires_grad=True)
    (found,) = zeros_of(lambda x: torch.maximum(x - 5, torch.zeros(3)), x, named=False)

    assert found.where.startswith("maximum (")


def test_zeros_of_a_node_whose_forward_had_none_are_its_own():
    x = torch.ones(3, requires_grad=True)
    (found,) = zeros_of(lambda x: (x * 5).clamp(0, 1), x, named=False)

    assert found.where.startswith("ClampBackward1 (")
    assert "returned exact zeros" in found.evidence


def test_relu_that_is_dead_in_one_of_two_uses_is_no_finding():
    act, x = nn.ReLU(), torch.ones(3, requires_grad=True)
    assert zeros_of(lambda x: act(x - 5) + act(x + 1), x, named=False) == []
