"""The gradient flow of real models with one planted fault each, and of healthy ones."""

from __future__ import annotations

import json
import math

import pytest
import torch
from torch import nn

import autograd_lab as al
from autograd_lab.errors import StepError
from autograd_lab.recording import Recording
from autograd_lab.replay import gradient_flow
from tests.replay.building import Builder, chain


def stack(activation, *, depth=20, width=32, gain=None):
    layers = []
    for _ in range(depth):
        linear = nn.Linear(width, width)
        if gain is not None:
            nn.init.normal_(linear.weight, std=gain / math.sqrt(width))
        layers += [linear, activation()]
    return nn.Sequential(*layers)


def record_step(model, inputs=None):
    inputs = torch.randn(16, 32) if inputs is None else inputs
    with al.record(model, values="none") as rec:
        model(inputs).square().mean().backward()
    return rec.recording


def kinds(flow):
    return [finding.what for finding in flow.findings]


class FiveStates(nn.Module):
    """One layer in each state."""

    def __init__(self):
        super().__init__()
        self.a, self.frozen = nn.Linear(4, 4), nn.Linear(4, 4)
        self.dead, self.unused, self.cut = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        self.frozen.requires_grad_(False)

    def forward(self, x):
        h = self.frozen(self.a(x)) + (self.dead(x) - 1e6).relu()
        return h + self.cut(x).detach()


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture
def five_states():
    return FiveStates()


def states_of(flow):
    return {row.name: row.state for row in flow.parameters}


def test_five_states_are_told_apart(five_states):
    flow = gradient_flow(record_step(five_states, torch.randn(8, 4)))
    expected = {
        "a": "value",
        "frozen": "frozen",
        "dead": "zero",
        "unused": "unused",
        "cut": "unused",
    }
    assert states_of(flow) == {
        f"{layer}.{part}": state for layer, state in expected.items() for part in ("weight", "bias")
    }


def test_zeros_left_by_zero_grad_do_not_make_an_unused_parameter_zero(five_states):
    for parameter in five_states.parameters():
        parameter.grad = torch.zeros_like(parameter)
    flow = gradient_flow(record_step(five_states, torch.randn(8, 4)))
    assert states_of(flow)["unused.weight"] == "unused"
    assert states_of(flow)["frozen.weight"] == "frozen"


def test_nan_makes_parameters_non_finite(five_states):
    flow = gradient_flow(record_step(five_states, torch.full((8, 4), float("nan"))))
    assert states_of(flow)["a.weight"] == "non-finite"


def test_each_state_but_value_is_a_finding(five_states):
    flow = gradient_flow(record_step(five_states, torch.randn(8, 4)))
    assert kinds(flow) == ["zero", "unused", "frozen"]
    zero, unused, frozen = flow.findings
    assert zero.where.startswith("relu (")
    assert "dead.weight" in zero.evidence
    assert "cut.bias" in unused.where
    assert "frozen.weight" in frozen.where


def test_parameter_norms_are_those_of_torch():
    model = stack(nn.Tanh, depth=3)
    flow = gradient_flow(record_step(model))
    norms = {row.name: row.norm for row in flow.parameters}
    assert norms == {
        name: pytest.approx(parameter.grad.norm().item(), rel=1e-5)
        for name, parameter in model.named_parameters()
    }


def test_second_step_counts_what_it_added_and_not_the_sum():
    model = nn.Linear(32, 4)
    x = torch.randn(16, 32)
    with al.record(model) as rec:
        model(x).sum().backward()
        model(x).sum().backward()
    first, second = (gradient_flow(rec.recording, one).parameters for one in (1, 2))
    assert {row.name: row.norm for row in first} == {row.name: row.norm for row in second}


def test_shared_parameter_counts_its_uses():
    model = nn.Linear(4, 4)
    with al.record(model) as rec:
        model(model(torch.randn(2, 4))).sum().backward()
    bias = next(row for row in gradient_flow(rec.recording).parameters if row.name == "bias")
    assert (bias.uses, bias.shared) == (2, True)


def test_autograd_grad_is_read_from_the_gradients_it_returned():
    model = nn.Linear(4, 1)
    with al.record(model) as rec:
        loss = model(torch.ones(3, 4)).sum()
        (grad,) = torch.autograd.grad(loss, [model.bias])
    flow = gradient_flow(rec.recording)
    bias = next(row for row in flow.parameters if row.name == "bias")
    assert (bias.state, bias.norm) == ("value", grad.norm().item())
    assert flow.findings == ()


def test_gain_leaves_weight_gradients_out():
    model = stack(nn.Tanh, depth=2)
    with al.record(model) as rec:
        inner = model[1](model[0](torch.randn(16, 32)))
        inner.retain_grad()
        out = model[2](inner)
        out.retain_grad()
        out.square().mean().backward()
    row = next(row for row in gradient_flow(rec.recording).rows if row.name == "AddmmBackward0")
    received, returned = (tensor.grad.square().mean().sqrt().item() for tensor in (out, inner))
    assert row.gain == pytest.approx(returned / received, rel=1e-4)


def test_sigmoid_stack_vanishes_by_sixteen_decades():
    flow = gradient_flow(record_step(stack(nn.Sigmoid)))
    assert kinds(flow) == ["vanishing"]
    assert -19 < flow.decades < -14
    assert "decades" in flow.findings[0].evidence


@pytest.mark.parametrize(
    ("activation", "gain", "what"),
    [(nn.ReLU, 3.0, "exploding"), (nn.Tanh, 0.3, "vanishing")],
    ids=["relu gain 3", "tanh gain 0.3"],
)
def test_stacks_whose_parameter_gradients_are_flat_are_found(activation, gain, what):
    assert kinds(gradient_flow(record_step(stack(activation, gain=gain)))) == [what]


class SmallConvnet(nn.Sequential):
    def __init__(self):
        layers, channels = [], 1
        for width in (8, 16, 32):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
            layers += [nn.MaxPool2d(2)]
            channels = width
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


class SmallTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.encoder(x).mean(1))


class Attention(nn.Module):
    """Residual attention with separate projections; the longest path ends behind a softmax."""

    def __init__(self, width=32):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        weights = (self.q(x) @ self.k(x).mT / x.shape[-1] ** 0.5).softmax(-1)
        return x + weights @ self.v(x)


def post_norm_transformer():
    layers = [nn.TransformerEncoderLayer(32, 4, 64, batch_first=True) for _ in range(12)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 32, 10))


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (lambda: stack(nn.ReLU, gain=math.sqrt(2)), (16, 32)),
        (SmallConvnet, (32, 1, 16, 16)),
        (SmallTransformer, (4, 64, 32)),
        (post_norm_transformer, (4, 64, 32)),
        (lambda: nn.Sequential(*[Attention() for _ in range(6)]), (4, 64, 32)),
        (lambda: nn.Linear(32, 10), (16, 32)),
    ],
    ids=["relu gain sqrt 2", "convnet", "transformer", "post-norm", "attention", "one layer"],
)
def test_healthy_models_have_no_finding(model, inputs):
    model = model()
    with al.record(model, values="none") as rec:
        out = model(torch.randn(inputs)).flatten(1)
        nn.functional.cross_entropy(out, torch.zeros(len(out), dtype=torch.long)).backward()
    assert gradient_flow(rec.recording).findings == ()


def test_nan_of_the_backward_only_names_its_birth():
    x = torch.zeros(3, requires_grad=True)
    with al.record() as rec:
        torch.where(x > 0, x.sqrt(), 0 * x).sum().backward()
    (finding,) = gradient_flow(rec.recording).findings
    assert finding.what == "non-finite"
    assert finding.where.startswith("SqrtBackward0")
    assert "The forward was finite" in finding.evidence


def test_one_other_node_holds_it_and_numbers_are_written_as_words():
    x = torch.zeros(3, requires_grad=True)
    with al.record() as rec:
        x.sqrt().mul(0).sum().backward()
    (finding,) = gradient_flow(rec.recording).findings
    assert "returned norm NaN; 1 other node of this pass holds NaN or Inf too" in finding.evidence
    assert "so does the gradient of x" in finding.evidence


def test_mask_is_no_forward_that_was_not_finite():
    x = torch.zeros(3, requires_grad=True)
    with al.record() as rec:
        masked = x.masked_fill(torch.tensor([True, False, False]), float("-inf")) / 2
        (masked.softmax(0) + x.sqrt()).sum().backward()
    (finding,) = gradient_flow(rec.recording).findings
    assert "The forward was finite" in finding.evidence


def test_infinity_of_a_hook_is_no_forward_that_was_not_finite():
    x = torch.ones(3, requires_grad=True)
    with al.record() as rec:
        y = x.exp()
        y.register_hook(lambda g: g / 0)
        y.sum().backward(retain_graph=True)
        y.sum().backward()
    (finding,) = gradient_flow(rec.recording, 2).findings
    assert "The forward was finite" in finding.evidence


def test_nan_of_the_forward_sends_to_the_forward():
    x = torch.zeros(3, requires_grad=True)
    with al.record() as rec:
        (x.log() * x).sum().backward()
    (finding,) = gradient_flow(rec.recording).findings
    assert finding.what == "non-finite"
    assert "log" in finding.try_


def test_unused_of_one_pass_is_no_finding_when_another_pass_uses_it():
    model = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)})
    with al.record(model) as rec:
        model["a"](torch.randn(2, 4)).sum().backward()
        model["b"](torch.randn(2, 4)).sum().backward()
    flow = gradient_flow(rec.recording)
    assert states_of(flow)["a.weight"] == "unused"
    assert flow.findings == ()


def test_default_is_the_last_pass_that_accumulates():
    x = torch.ones(3, requires_grad=True)
    with al.record() as rec:
        x.exp().sum().backward()
        torch.autograd.grad(x.exp().sum(), x)
    assert gradient_flow(rec.recording).pass_id == 1


def test_unknown_pass_names_those_there_are():
    with pytest.raises(StepError, match="The recording has 1"):
        gradient_flow(chain(3), 7)


def test_recording_without_a_backward_says_so():
    flow = gradient_flow(Recording())
    assert (flow.rows, flow.pass_id) == ((), None)
    assert "no backward pass" in flow.note


def test_a_pass_that_stopped_accuses_no_parameter():
    build = Builder()
    build.parameter("never.weight")
    y = build.op("mul", build.op("exp", build.tensor("x", leaf=True)), build.parameter("w"))
    build.backward(y, stop_after=1)
    flow = gradient_flow(build.recording())
    assert (states_of(flow)["w"], flow.findings) == ("unused", ())
    assert "planted" in flow.note


def test_reentrant_checkpoint_counts_what_it_accumulated_inside():
    model = nn.Linear(4, 4)
    x = torch.randn(2, 4, requires_grad=True)
    with al.record(model) as rec:
        torch.utils.checkpoint.checkpoint(model, x, use_reentrant=True).sum().backward()
    assert states_of(gradient_flow(rec.recording))["weight"] == "value"


def test_rows_come_in_order_of_execution():
    flow = gradient_flow(chain(4))
    assert [row.name for row in flow.rows] == ["SinBackward0"] * 4 + [
        "torch::autograd::AccumulateGrad"
    ]


def test_product_of_a_chain_is_the_product_of_its_gains():
    build = Builder()
    h = build.tensor("x", leaf=True)
    for _ in range(6):
        h = build.op("sin", h)
    build.backward(h, gain=0.5)
    flow = gradient_flow(build.recording())
    assert flow.product == pytest.approx(0.5**5)
    assert [row.gain for row in flow.rows[:6]] == pytest.approx([0.5] * 6)


def test_table_is_strict_json_also_with_nan(five_states):
    table = gradient_flow(record_step(five_states, torch.full((8, 4), float("nan")))).table()
    assert json.loads(json.dumps(table, allow_nan=False)) == table
    assert {row["kind"] for row in table} == {"node", "parameter"}
