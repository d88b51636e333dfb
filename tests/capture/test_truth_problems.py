"""What a recording says of problems: where NaN and Inf were born, what was written over, what
raised, and what the recorder could not see.
"""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 (torch's own custom)

import autograd_lab as al
from autograd_lab.capture.formulas import formula_of, rule_of
from autograd_lab.recording import BackwardFinished, NodeFinished, OpCalled, ProblemSeen, Recording
from tests.capture.programs import Refuses, batch, small_net

INFINITE = torch.tensor(float("inf"))


def problem(recording: Recording, kind: str) -> ProblemSeen:
    (found,) = [one for one in recording.problems if one.kind == kind]
    return found


def said(recording: Recording, reason: str) -> str:
    (text,) = [event.text for event in recording.not_seen if event.reason == reason]
    return text


def record(body, **settings) -> Recording:
    with al.record(**settings) as rec:
        body()
    return rec.recording


@pytest.mark.parametrize("values", ["none", "auto"])
def test_nan_gradient_of_the_masked_root_is_born_at_sqrt(values):
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    with al.record(values=values) as rec:
        root = x.sqrt()
        torch.where(x > 0, root, 0).sum().backward()

    found = problem(rec.recording, "non-finite backward")
    assert rec.recording.nodes[found.node].name == "SqrtBackward0"
    assert found.source.text == "root = x.sqrt()"
    assert "NaN" in found.text
    assert "forward was finite" in found.text
    assert [one.kind for one in rec.recording.problems] == ["non-finite backward"]


@pytest.mark.parametrize("values", ["none", "auto"])
@pytest.mark.parametrize(
    ("program", "name", "what"),
    [
        (lambda x: 1 / (x * 0 + 1e-30) ** 2, "pow", "Inf"),
        (lambda x: (x * 0).log(), "log", "Inf"),
        (lambda x: (x * 0) * INFINITE, "mul", "NaN"),
        (lambda x: (x.half() * 0 + 6e4) * 2, "mul", "Inf"),
        (lambda x: (-x.abs() - 1).sqrt(), "sqrt", "NaN"),
        (lambda x: (x + 100).exp() @ torch.ones(2), "exp", "Inf"),
    ],
    ids=["1/x**2", "log(0)", "0*inf", "fp16 overflow", "root of a negative", "exp"],
)
def test_first_bad_number_of_forward_is_named_at_its_birth(program, name, what, values):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with al.record(values=values) as rec:
        y = program(x)
        (y.float() * 2 + 1).sum()

    found = problem(rec.recording, "non-finite forward")
    born = rec.recording.ops[found.op]
    assert name in born.name or born.name in ("reciprocal", "__rdiv__", "__rtruediv__", "div")
    assert what in found.text
    assert len([one for one in rec.recording.problems if "forward" in one.kind]) == 1


def test_bad_input_of_the_user_is_blamed_not_the_call():
    x = torch.tensor([1.0, float("nan")])
    with al.record() as rec:
        x.exp()

    text = problem(rec.recording, "non-finite forward").text
    assert "x already held it" in text


def test_large_gradients_overflow_in_backward_only():
    x = torch.tensor([1e-30, 1.0], dtype=torch.float64).float().requires_grad_()
    with al.record() as rec:
        x.sqrt().log().sum().backward(torch.tensor(1e20))

    found = problem(rec.recording, "non-finite backward")
    assert "Inf" in found.text
    assert rec.recording.nodes[found.node].name in ("LogBackward0", "SqrtBackward0")


def test_gradient_that_was_given_bad_is_not_blamed_on_a_node():
    x = batch(requires_grad=True)
    with al.record() as rec:
        y = x * 2
        y.backward(torch.full_like(y, float("nan")))

    assert "came into" in problem(rec.recording, "non-finite backward").text


def test_each_backward_has_its_own_first_bad_number():
    x = torch.tensor([0.0], requires_grad=True)
    with al.record() as rec:
        for _ in range(2):
            torch.where(x > 0, x.sqrt(), 0).sum().backward()

    assert [one.pass_id for one in rec.recording.problems] == [1, 2]


def test_mask_of_minus_infinity_is_no_problem():
    x = batch(requires_grad=True)
    with al.record() as rec:
        masked = x.masked_fill(x > 1, float("-inf"))
        masked.softmax(1).sum().backward()

    assert rec.recording.problems == ()


def test_attention_with_a_causal_mask_is_no_problem():
    net = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    with al.record(net, values="none") as rec:
        net(torch.randn(2, 5, 8), src_mask=mask, is_causal=True).sum().backward()

    assert rec.recording.problems == ()


NEGATIVE = float("-inf")
CAUSAL = torch.full((4, 4), NEGATIVE).triu(1)
MASKS = {
    "scaled after the mask": lambda s: s.masked_fill(s > 1, NEGATIVE) / 2.0,
    "view of a masked tensor": lambda s: s.masked_fill(s > 1, NEGATIVE).view(-1, 4),
    "mask added": lambda s: s + torch.full((4, 4), NEGATIVE).triu(1),
    "mask from outside": lambda s: s + CAUSAL,
    "two masks": lambda s: (s + CAUSAL).masked_fill(s > 1, NEGATIVE).T.clone(),
    "mask in place": lambda s: (s * 1).masked_fill_(s > 9, NEGATIVE).add_(CAUSAL),
}


@pytest.mark.parametrize("masked", MASKS.values(), ids=MASKS)
def test_infinity_on_purpose_stays_on_purpose_where_it_is_carried_on(masked):
    s = torch.linspace(0, 1, 16).view(4, 4).requires_grad_()
    with al.record() as rec:
        (masked(s).softmax(-1) @ s).sum().backward()

    assert rec.recording.problems == ()


def test_nan_that_comes_of_a_mask_is_a_problem():
    s = torch.zeros(2, 2, requires_grad=True)
    with al.record() as rec:
        masked = s.masked_fill(s == 0, NEGATIVE) / 2.0
        masked.softmax(-1)

    text = problem(rec.recording, "non-finite forward").text
    assert "First NaN in forward: softmax" in text
    assert "held Inf" in text


def test_infinity_of_another_input_is_a_problem_beside_a_mask():
    s = torch.tensor([1.0, NEGATIVE, 2.0, 3.0], requires_grad=True)
    with al.record() as rec:
        s + CAUSAL

    assert "; s already held it" in problem(rec.recording, "non-finite forward").text


class DividesByZero(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g / 0


def test_infinity_of_a_hook_is_part_of_the_backward():
    x = batch(requires_grad=True)
    with al.record() as rec:
        h = x.exp()
        h.register_hook(lambda g: g * INFINITE)
        h.sum().backward()

    (found,) = rec.recording.problems
    assert (found.kind, found.pass_id) == ("non-finite backward", 1)
    assert rec.recording.ops[found.op].name == "mul"
    assert "called in a hook during backward 1" in found.text
    assert "INFINITE already held it" in found.text
    assert "The forward was finite." in found.text


def test_gradients_that_a_hook_takes_are_known_to_be_finite():
    x = batch(requires_grad=True)
    with al.record() as rec:
        h = x.exp()
        h.register_hook(lambda g: g / 0)
        h.sum().backward()

    (found,) = rec.recording.problems
    assert "all its inputs were finite" in found.text


def test_infinity_of_a_custom_backward_names_its_node_and_its_line():
    x = batch(requires_grad=True)
    with al.record() as rec:
        DividesByZero.apply(x.exp()).sum().backward()

    (found,) = rec.recording.problems
    assert found.kind == "non-finite backward"
    assert rec.recording.nodes[found.node].name == "DividesByZeroBackward"
    assert found.source.text == "return g / 0"
    assert "The forward was finite." in found.text


def test_node_that_is_not_to_blame_on_the_hook_is_still_named():
    x = torch.zeros(3, requires_grad=True)
    with al.record() as rec:
        root = x.sqrt()
        loss = (root * 0).sum()
        loss.register_hook(lambda g: (g / 0, g)[1])
        loss.backward()

    assert ["div at" in one.text for one in rec.recording.problems] == [True, False]
    assert "Also NaN in backward 1: SqrtBackward0" in rec.recording.problems[1].text


@pytest.mark.parametrize("reentrant", [False, True])
def test_infinity_of_a_checkpointed_forward_is_one_of_forward(reentrant):
    x = torch.ones(3, requires_grad=True)
    with al.record() as rec:
        y = torch.utils.checkpoint.checkpoint(lambda h: h / 0, x, use_reentrant=reentrant)
        y.sum().backward()

    assert "First Inf in forward: div" in rec.recording.problems[0].text


def test_norm_of_gradients_that_were_reported_is_no_forward():
    x = torch.zeros(3, requires_grad=True)
    with al.record() as rec:
        (g,) = torch.autograd.grad(x.sqrt().sum(), x)
        g.square().sum()

    assert [one.kind for one in rec.recording.problems] == ["non-finite backward"]


def test_nan_in_grad_from_before_the_block_is_said_once():
    x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    x.grad = torch.full((3,), float("nan"))
    with al.record() as rec:
        for _ in range(2):
            (x * w).sum().backward()

    (found,) = rec.recording.problems
    assert (found.kind, found.pass_id) == ("non-finite backward", 1)
    assert ".grad of x already held NaN before this backward" in found.text


def test_grad_that_a_recorded_backward_made_bad_is_not_said_again():
    x = torch.tensor([0.0], requires_grad=True)
    with al.record() as rec:
        x.sqrt().sum().backward()
        (x * 2).sum().backward()

    assert [one.pass_id for one in rec.recording.problems] == [1]


def test_in_place_write_that_torch_refuses_is_shown_with_its_writer():
    x = torch.ones(3, requires_grad=True)
    with al.record() as rec:
        y = x.exp()
        z = y * 2
        y.add_(1)
        loss = z.sum() + y.sum()
        with pytest.raises(RuntimeError, match="modified by an inplace"):
            loss.backward()

    found = problem(rec.recording, "saved tensor modified")
    assert rec.recording.nodes[found.node].name == "ExpBackward0"
    assert "saved at version 0, now 1" in found.text
    assert found.source.text == "y.add_(1)"


def test_second_backward_over_a_freed_graph_is_said():
    x = batch(requires_grad=True)
    with al.record() as rec:
        y = x.exp().sum()
        y.backward()
        with pytest.raises(RuntimeError, match="second time"):
            y.backward()

    kinds = [one.kind for one in rec.recording.problems]
    assert "saved tensor freed" in kinds
    assert [event.error is None for event in rec.recording.events_of(BackwardFinished)] == [
        True,
        False,
    ]


def twice_through(rec, loss):
    with rec:
        y = loss()
        y.backward()
        y.backward()


def test_second_backward_over_a_freed_graph_is_one_line_and_its_error():
    x = batch(requires_grad=True)
    rec = al.record()
    with pytest.raises(RuntimeError, match="second time"):
        twice_through(rec, lambda: (x.exp().sin() * x).sum())

    freed, raised = rec.recording.problems
    assert (freed.kind, raised.kind) == ("saved tensor freed", "exception")
    assert (freed.pass_id, raised.pass_id) == (2, 2)
    assert rec.recording.nodes[freed.node].name == "MulBackward0"
    assert "; so were 3 more." in freed.text
    assert repr(rec.recording).count("Trying to backward through the graph") == 1


def test_error_of_the_block_that_no_backward_raised_is_said():
    x = batch(requires_grad=True)
    rec = al.record()
    with pytest.raises(ArithmeticError, match="refuses"):
        twice_through(rec, lambda: Refuses.apply(x.exp()).sum())
    other = al.record()
    with pytest.raises(ZeroDivisionError), other:
        raise ZeroDivisionError

    assert "The block ended with ZeroDivisionError" in other.recording.problems[-1].text
    assert "The block ended" not in repr(rec.recording)


def test_exception_in_backward_names_its_node_and_line():
    x = batch(requires_grad=True)
    with al.record() as rec, pytest.raises(ArithmeticError):
        Refuses.apply(x.exp()).sum().backward()

    first = rec.recording.problems[0]
    assert rec.recording.nodes[first.node].name == "RefusesBackward"
    assert "this backward refuses" in first.text


def test_loss_that_needs_no_gradient_is_said():
    with al.record() as rec, pytest.raises(RuntimeError, match="does not require grad"):
        batch().sum().backward()

    assert "does not require grad" in rec.recording.problems[0].text


def test_compiled_region_is_one_opaque_node():
    torch._dynamo.reset()
    net = torch.compile(small_net(), backend="aot_eager")
    recording = record(lambda: net(batch()).sum().backward(), model=net)

    assert "without torch.compile" in said(recording, "compiled")
    assert sum("CompiledFunction" in node.name for node in recording.nodes) == 1
    names = {tensor.name for tensor in recording.tensors if tensor.is_parameter}
    assert names == {"0.weight", "0.bias", "2.weight", "2.bias"}


@pytest.mark.filterwarnings("ignore:.*torch.jit.script. is deprecated")
def test_scripted_modules_are_said():
    net = torch.jit.script(small_net())
    recording = record(lambda: net(batch()).sum().backward(), model=net)

    assert "eager module" in said(recording, "scripted")
    assert len(recording.nodes) > 5


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace. is deprecated")
def test_traced_functions_are_said():
    recording = record(lambda: torch.jit.trace(lambda x: x * 2, (batch(),)))

    assert "torch.jit.trace" in said(recording, "traced")


def test_batched_gradients_have_a_reason_and_no_number():
    x = batch(requires_grad=True)
    recording = record(
        lambda: torch.autograd.grad(x.sin(), x, torch.ones(3, 5, 4), is_grads_batched=True)
    )

    shots = [s for event in recording.events_of(NodeFinished) for s in event.grad_inputs if s]
    assert {shot.note for shot in shots} == {"inside vmap or a functorch transform"}


def test_backward_inside_a_transform_is_said():
    recording = record(lambda: torch.func.grad(lambda x: x.sin().sum())(batch()))

    assert "outside the transform" in said(recording, "functorch")


def test_tensors_inside_vmap_have_a_reason_and_no_number():
    recording = record(lambda: torch.func.vmap(lambda row: row.sin())(batch()))

    shots = [s for event in recording.events_of(OpCalled) for s in event.outputs]
    inside = [shot for shot in shots if shot.note]
    assert inside
    assert all(shot.norm is None and shot.finite is None for shot in inside)


def test_calls_of_another_thread_are_said():
    out = []

    def body():
        thread = threading.Thread(target=lambda: out.append(small_net()(batch()).sum()))
        thread.start()
        thread.join()
        out[0].backward()

    recording = record(body)
    assert "another thread" in said(recording, "unseen calls")
    assert recording.ops == ()


def test_nodes_made_before_the_block_are_said():
    y = batch(requires_grad=True).exp().sum()
    recording = record(y.backward)

    assert "before the block" in said(recording, "unseen calls")
    assert len(recording.nodes) == 3


def test_fused_attention_without_grad_is_said():
    net = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = torch.randn(2, 5, 8)
    with torch.no_grad():
        expected = net(x)
        with al.record(net) as rec:
            found = net(x)

    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)  # facts: about 5e-7
    assert "fused" in said(rec.recording, "fused attention")


def test_empty_block_is_said():
    assert "nothing to show" in said(record(lambda: None), "empty")


def test_wrapped_models_are_said():
    recording = record(lambda: None, model=nn.DataParallel(small_net()))

    assert "Record model.module" in said(recording, "data parallel")


def test_gradients_under_ddp_are_said_to_be_this_ranks_own(tmp_path):
    store = f"file://{tmp_path / 'store'}"
    torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    try:
        net = nn.parallel.DistributedDataParallel(small_net())
        recording = record(lambda: net(batch()).sum().backward(), model=net)
    finally:
        torch.distributed.destroy_process_group()

    assert "before the reduction" in said(recording, "ddp")
    leaves = [node for node in recording.nodes if node.leaf is not None]
    assert len(leaves) == 4


RULES = {
    "AddBackward0": "da = g",
    "SubBackward0": "db = -g",
    "MulBackward0": "da = g * b",
    "DivBackward0": "da = g / b",
    "NegBackward0": "dx = -g",
    "PowBackward0": "n * x**(n - 1)",
    "MmBackward0": "da = g @ b.T",
    "BmmBackward0": "b.mT",
    "AddmmBackward0": "dbias = g",
    "SumBackward1": "dx = g",
    "MeanBackward0": "g / n",
    "ReluBackward0": "x > 0",
    "TanhBackward0": "tanh(x)**2",
    "SigmoidBackward0": "s * (1 - s)",
    "ExpBackward0": "g * exp(x)",
    "LogBackward0": "g / x",
    "SoftmaxBackward0": "sum(g * s)",
    "LogSoftmaxBackward0": "softmax(x) * sum(g)",
    "ViewBackward0": "view",
    "TBackward0": "view",
    "TransposeBackward0": "view",
    "PermuteBackward0": "view",
    "SelectBackward0": "view",
    "SliceBackward0": "view",
    "UnsqueezeBackward0": "view",
    "ExpandBackward0": "expanded",
    "UnsafeViewBackward0": "view",
    "AliasBackward0": "view",
    "ConvolutionBackward0": "spread back through w",
    "MaxPool2DWithIndicesBackward0": "maximum of each window",
    "NativeBatchNormBackward0": "(h - mean(h) - n * mean(h * n)) / std",
    "NativeLayerNormBackward0": "(h - mean(h) - n * mean(h * n)) / std",
    "EmbeddingBackward0": "sum of g",
}


@pytest.mark.parametrize(("name", "part"), RULES.items(), ids=RULES)
def test_plain_rule_of_each_common_node(name, part):
    assert part in rule_of(name)
    assert "\n" not in rule_of(name)
    assert formula_of(name)


def test_names_of_the_rules_are_names_that_torch_uses():
    x, w = batch(requires_grad=True), torch.ones(4, 3, requires_grad=True)
    with al.record() as rec:
        h = F.linear(x, w.T, torch.ones(3, requires_grad=True))
        y = ((h.relu() + h.sigmoid() - h.tanh()) * h.exp() / h.square().add(1).log()).neg() ** 3
        (y.softmax(1) + y.log_softmax(1)).view(-1).mean().add(h.sum()).backward()

    assert {node.short_name for node in rec.recording.nodes if node.rule is None} == set()


def test_formulas_are_torchs_own_words():
    assert formula_of("MulBackward0").splitlines()[0].startswith("self: mul_tensor_backward(grad")
    assert formula_of("TanhBackward0") == "self: tanh_backward(grad, result)"
    assert formula_of("PowBackward1") == formula_of("PowBackward1_copy")
    assert formula_of("NoSuchBackward0") is None
    assert rule_of("GeneratedBackwardFor_lab_scale_defaultBackward") is None


def test_a_write_after_the_backward_is_not_to_blame():
    x = torch.ones(3, requires_grad=True)
    with al.record() as rec:
        h = x.exp()
        h.mul_(2)
        with pytest.raises(RuntimeError, match="inplace"):
            h.sum().backward()
        with torch.no_grad():
            h.add_(1)
    found = problem(rec.recording, "saved tensor modified")
    assert rec.recording.ops[found.op].name == "mul_"


def test_an_exception_in_forward_names_the_line_that_raised():
    with pytest.raises(RuntimeError, match="matrix"), al.record() as rec:
        torch.mm(torch.ones(3), torch.ones(3))
    found = problem(rec.recording, "exception")
    assert found.source.text.strip() == "torch.mm(torch.ones(3), torch.ones(3))"
    assert found.source.place in found.text


def test_an_exception_in_a_custom_backward_names_the_line_that_raised():
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.no_such_method()

    x = torch.ones(3, requires_grad=True)
    with pytest.raises(AttributeError), al.record() as rec:
        Broken.apply(x).sum().backward()
    found = problem(rec.recording, "exception")
    assert found.source.text.strip() == "return g.no_such_method()"
    assert found.source.place in found.text
    assert "BrokenBackward" in found.text


@pytest.mark.parametrize(
    ("norm", "over"),
    [
        (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True, eps=1e-12), 0),
        (lambda x, w, b: F.layer_norm(x, (x.shape[1],), w, b, eps=1e-12), 1),
    ],
    ids=["batch", "layer"],
)
def test_the_plain_rule_of_a_norm_gives_torchs_gradients(norm, over):
    torch.manual_seed(0)
    x = torch.randn(5, 3, dtype=torch.double, requires_grad=True)
    w, b = (torch.randn(3, dtype=torch.double, requires_grad=True) for _ in range(2))
    y = norm(x, w, b)
    g = torch.randn_like(y)
    dx, dweight, dbias = torch.autograd.grad(y, (x, w, b), g)
    data = x.detach()
    std = data.var(over, keepdim=True, unbiased=False).sqrt()
    n, h = (data - data.mean(over, keepdim=True)) / std, g * w.detach()
    rule = (h - h.mean(over, keepdim=True) - n * (h * n).mean(over, keepdim=True)) / std
    torch.testing.assert_close(dx, rule)
    torch.testing.assert_close((dweight, dbias), ((g * n).sum(0), g.sum(0)))
