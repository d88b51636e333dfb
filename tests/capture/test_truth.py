"""What a recording says of values, gradients, nodes and saved tensors is what torch says."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 (torch's own custom)

import autograd_lab as al
from autograd_lab.recording import (
    BackwardStarted,
    GradAccumulated,
    GradNode,
    NodeFinished,
    NodeStarted,
    OpCalled,
    OptimizerStepped,
    Recording,
    Snapshot,
)
from tests.capture.programs import ReentrantSquare, batch, small_net

RELATIVE = 1e-5  # a float32 sum of squares, and nine digits kept


def snapshots_of(recording: Recording, kind, name: str) -> list[Snapshot]:
    """All snapshots in one field of one type of event."""
    return [shot for event in recording.events_of(kind) for shot in getattr(event, name) if shot]


def node_named(recording: Recording, name: str) -> GradNode:
    (node,) = [node for node in recording.nodes if node.name == name]
    return node


def watched(root: torch.Tensor, **options) -> list[tuple[str, list[torch.Tensor | None]]]:
    """Run backward with hooks of our own; names and grad_inputs in the order of the engine."""
    log, seen, stack = [], set(), [root.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        node.register_hook(
            lambda gi, go, node=node: log.append(
                (node.name(), [None if g is None else g.detach().clone() for g in gi])
            )
        )
        stack += [target for target, _ in node.next_functions]
    root.backward(**options)
    return log


TENSORS = {
    "float32": torch.linspace(-3, 5, 300),
    "large": torch.randn(400, 400, generator=torch.Generator().manual_seed(0)),
    "float64": torch.linspace(-3, 5, 7, dtype=torch.float64),
    "bfloat16": torch.linspace(-3, 5, 64).bfloat16(),
    "float16 whose squares overflow": torch.full((4,), 6e4).half(),
    "tiny": torch.full((4,), 1e-38),
    "denormal": torch.full((4,), 1e-44),
    "huge": torch.full((2000,), 3e38),
    "huge doubles": torch.full((2000,), 1e300, dtype=torch.float64),
    "zeros": torch.zeros(3, 4),
    "empty": torch.zeros(0, 3),
    "scalar": torch.tensor(-2.5),
    "transposed": torch.arange(6.0).reshape(2, 3).T,
    "expanded": torch.ones(1).expand(5),
    "complex64": torch.tensor([3 + 4j, 1j]),
    "large complex128": torch.full((3000,), 3 + 4j, dtype=torch.complex128),
    "conjugated": torch.tensor([3 + 4j, 1j]).conj(),
    "sparse": torch.sparse_coo_tensor([[0, 0, 2]], [3.0, 4.0, 5.0], (4,), check_invariants=True),
}


@pytest.mark.parametrize("values", ["none", "auto", "all"])
@pytest.mark.parametrize("tensor", TENSORS.values(), ids=TENSORS)
def test_norm_and_rms_are_torchs(tensor, values):
    with al.record(values=values) as rec:
        tensor.clone()

    shot = snapshots_of(rec.recording, OpCalled, "outputs")[0]
    dense = (tensor.to_dense() if tensor.is_sparse else tensor).to(torch.complex128)
    scale = float(dense.abs().max()) if dense.numel() else 0.0
    norm = float(torch.linalg.vector_norm(dense / scale)) * scale if scale else 0.0
    assert shot.norm == pytest.approx(norm, rel=RELATIVE, abs=0)
    assert shot.rms == pytest.approx(norm / math.sqrt(max(1, tensor.numel())), rel=RELATIVE, abs=0)
    assert (shot.finite, shot.numel, shot.note) == (True, tensor.numel(), None)


@pytest.mark.parametrize("values", ["none", "auto", "all"])
@pytest.mark.parametrize("count", [3, 5000], ids=["small", "large"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex64], ids=str)
def test_one_bad_element_makes_a_tensor_not_finite(bad, dtype, count, values):
    tensor = torch.ones(count, dtype=dtype)
    tensor[-1] = bad
    with al.record(values=values) as rec:
        tensor.clone()

    shot = snapshots_of(rec.recording, OpCalled, "outputs")[0]
    assert shot.finite is False
    assert math.isnan(shot.norm) if math.isnan(bad) else shot.norm == math.inf


@pytest.mark.parametrize("tensor", TENSORS.values(), ids=TENSORS)
def test_values_kept_are_the_elements(tensor):
    with al.record(values="all") as rec:
        tensor.clone()

    values = snapshots_of(rec.recording, OpCalled, "outputs")[0].values
    dense = tensor.coalesce().values() if tensor.is_sparse else tensor
    wide = dense.float() if dense.dtype in (torch.float16, torch.bfloat16) else dense
    expected = wide.resolve_conj().numpy()
    assert values.sampled_from is None
    assert values.array.tobytes() == np.ascontiguousarray(expected).tobytes()


def test_integers_and_bools_keep_values_and_have_no_norm():
    x = torch.tensor([1.0, 2.0])
    with al.record() as rec:
        torch.arange(4)
        x.gt(1)

    shots = snapshots_of(rec.recording, OpCalled, "outputs")
    assert [shot.norm for shot in shots] == [None, None]
    assert [shot.values.array.tolist() for shot in shots] == [[0, 1, 2, 3], [False, True]]
    assert all(shot.finite for shot in shots)


def test_large_tensor_keeps_a_stated_sample():
    tensor = torch.arange(90.0 * 70).reshape(90, 70)
    with al.record() as rec:
        tensor.clone()

    values = snapshots_of(rec.recording, OpCalled, "outputs")[0].values
    assert values.sampled_from == (90, 70)
    assert values.array.size <= 1024
    assert np.isin(values.array, tensor.numpy()).all()


@pytest.mark.parametrize("values", ["none", "auto"])
def test_sequence_of_nodes_and_gradients_equals_that_of_independent_hooks(values):
    def loss():
        torch.manual_seed(0)
        net = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        return F.mse_loss(net(torch.randn(2, 5, 8)), torch.zeros(2, 5, 8)), net

    root, keep = loss()
    expected = watched(root)
    root, keep = loss()
    with al.record(values=values) as rec:
        root.backward()
    del keep

    recording = rec.recording
    finished = list(recording.events_of(NodeFinished))
    assert [recording.nodes[e.node].name for e in finished] == [name for name, _ in expected]
    for event, (name, grads) in zip(finished, expected, strict=True):
        if "AccumulateGrad" not in name:
            found = [-1.0 if shot is None else shot.norm for shot in event.grad_inputs]
            norms = [-1.0 if g is None else float(torch.linalg.vector_norm(g)) for g in grads]
            assert found == pytest.approx(norms, rel=RELATIVE, abs=1e-30), name


def test_each_node_starts_before_it_finishes_and_once():
    with al.record() as rec:
        small_net()(batch()).sum().backward()

    order = [e for e in rec.recording.events if isinstance(e, (NodeStarted, NodeFinished))]
    assert [type(e).__name__ for e in order] == ["NodeStarted", "NodeFinished"] * (len(order) // 2)
    assert all(a.node == b.node for a, b in zip(order[::2], order[1::2], strict=True))


def test_edges_are_torchs_next_functions():
    x, w = batch(requires_grad=True), torch.ones(4, requires_grad=True)
    with al.record() as rec:
        y = (x * w + x).sum(1)
        y.max().backward()

    nodes = rec.recording.nodes
    found = [(n.short_name, [nodes[e.node].short_name for e in n.edges if e]) for n in nodes]
    assert sorted(found) == [
        ("AccumulateGrad", []),
        ("AccumulateGrad", []),
        ("AddBackward0", ["MulBackward0", "AccumulateGrad"]),
        ("MaxBackward1", ["SumBackward1"]),
        ("MulBackward0", ["AccumulateGrad", "AccumulateGrad"]),
        ("SumBackward1", ["AddBackward0"]),
    ]
    leaf = nodes[node_named(rec.recording, "AddBackward0").edges[1].node].leaf
    assert rec.recording.tensors[leaf].name == "x"


def test_input_that_needs_no_gradient_has_no_edge_and_no_gradient():
    x = batch(requires_grad=True)
    with al.record() as rec:
        (x * torch.ones(4)).sum().backward()

    node = node_named(rec.recording, "MulBackward0")
    (event,) = [e for e in rec.recording.events_of(NodeFinished) if e.node == node.id]
    assert (node.edges[1], event.grad_inputs[1]) == (None, None)
    assert event.grad_inputs[0].norm == pytest.approx(math.sqrt(20))


def test_accumulation_is_before_plus_added():
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    with al.record() as rec:
        (x * 3).sum().backward()
        (x * x).sum().backward()

    first, second = rec.recording.events_of(GradAccumulated)
    arrays = [s.values.array for s in (second.before, second.added, second.after)]
    assert first.before is None
    assert first.after.values.array.tolist() == first.added.values.array.tolist() == [3, 3]
    assert [a.tolist() for a in arrays] == [[3, 3], [2, -4], [5, -1]]
    assert x.grad.tolist() == [5, -1]
    assert rec.recording.tensors[second.leaf].name == "x"
    assert rec.recording.tensors[second.after.tensor].name == "x.grad"


@pytest.mark.parametrize("values", ["none", "auto"])
@pytest.mark.parametrize("clear", ["data.zero_", "zero_", "None", "hook"])
def test_gradient_cleared_between_backwards_is_seen_cleared(clear, values):
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    if clear == "hook":
        x.register_post_accumulate_grad_hook(lambda leaf: [leaf.grad.data.zero_()].clear())
    with al.record(values=values) as rec:
        for _ in range(2):
            (x * 3).sum().backward()
            if clear == "data.zero_":
                x.grad.data.zero_()
            elif clear == "zero_":
                x.grad.zero_()
            elif clear == "None":
                x.grad = None

    _, second = rec.recording.events_of(GradAccumulated)
    assert (second.before.norm if second.before else 0) == 0
    assert second.added.norm == pytest.approx(math.sqrt(18))


def test_gradient_edited_in_place_by_a_hook_is_never_a_wrong_number():
    x = torch.tensor([3.0, 4.0], requires_grad=True)
    with al.record(values="none") as rec:
        y = x * 1
        y.register_hook(lambda g: g.zero_())
        (y * x.detach()).sum().backward()

    for shot in snapshots_of(rec.recording, NodeFinished, "grad_inputs"):
        assert shot.norm in (0, 5, pytest.approx(math.sqrt(2))) or shot.note


def test_output_that_the_next_call_overwrites_keeps_its_own_norm():
    torch.manual_seed(0)
    norm, x = nn.BatchNorm1d(8), torch.randn(8, 8)
    with al.record(values="none") as rec:
        y = norm(x)
        F.relu_(y)

    shots = snapshots_of(rec.recording, OpCalled, "outputs")
    first, second = [shot for shot in shots if shot.numel == 64]
    assert first.norm == pytest.approx(8.0, rel=1e-3)
    assert second.norm == pytest.approx(float(y.detach().norm()), rel=RELATIVE)
    assert (first.tensor, second.version) == (second.tensor, first.version + 1)


def test_number_that_somebody_may_have_changed_is_not_given():
    x = torch.ones(4)
    with al.record(values="none") as rec:
        y = x * 2
        with torch._C.DisableTorchFunction():
            y.mul_(10)  # the recorder does not see this call

    (shot, *_) = snapshots_of(rec.recording, OpCalled, "outputs")
    assert (shot.norm, shot.note) in [(4.0, None), (None, "modified after capture")]


def test_saved_tensors_are_named_and_measured_as_torch_has_them():
    x, w = batch(requires_grad=True), torch.ones(4, 2, requires_grad=True)
    with al.record() as rec:
        y = (x @ w).exp()
        y.sum().backward()

    mm, exp = (node_named(rec.recording, f"{n}Backward0") for n in ("Mm", "Exp"))
    slots = {slot.name: slot for slot in mm.saved}
    assert {name: (s.shape, s.nbytes, s.dtype, s.version) for name, s in slots.items()} == {
        "self": ((5, 4), 80, "float32", 0),
        "mat2": ((4, 2), 32, "float32", 0),
    }
    assert [(s.name, s.shape, s.nbytes) for s in exp.saved] == [("result", (5, 2), 40)]
    names = [
        rec.recording.tensors[s.tensor].name for s in (slots["self"], slots["mat2"], exp.saved[0])
    ]
    assert names == ["x", "w", "y"]


def test_saved_tensors_that_share_memory_share_a_storage_number():
    x = batch(requires_grad=True)
    with al.record() as rec:
        y = x.exp()
        (y * y).sum().backward()

    slots = [slot for node in rec.recording.nodes for slot in node.saved]
    assert len({slot.storage for slot in slots}) == 1
    assert sorted(slot.name for slot in slots) == ["other", "result", "self"]


def test_slot_packed_by_a_hook_names_it_and_is_left_alone():
    calls, x = [], batch(requires_grad=True)

    def unpack(packed):
        calls.append("unpack")
        return packed

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x.exp()
    with al.record() as rec:
        y.sum().backward()

    (slot,) = node_named(rec.recording, "ExpBackward0").saved
    assert slot.packed_by.endswith("unpack")
    assert calls == ["unpack"]


def test_python_function_shows_its_saved_tensors_and_where_it_is_defined():
    x = batch(requires_grad=True)
    with al.record() as rec:
        ReentrantSquare.apply(x).sum().backward()

    node = node_named(rec.recording, "ReentrantSquareBackward")
    assert [(slot.name, slot.shape) for slot in node.saved] == [("saved[0]", (5, 4))]
    assert "programs.py:" in node.formula
    assert [event.inside for event in rec.recording.events_of(BackwardStarted)] == [None, node.id]


def test_double_backward_runs_eleven_nodes_that_the_first_one_made():
    x = torch.linspace(-1, 1, 6, requires_grad=True)
    with al.record() as rec:
        y = torch.tanh(x * x * x)
        (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        first.sum().backward()

    recording = rec.recording
    finished = Counter(event.pass_id for event in recording.events_of(NodeFinished))
    plain = torch.tanh(x * x * x)
    (again,) = torch.autograd.grad(plain.sum(), x, create_graph=True)
    ran = [recording.nodes[e.node] for e in recording.events_of(NodeFinished) if e.pass_id == 2]
    assert finished == {1: 4, 2: len(watched(again.sum()))}
    made = {node.made_in_pass for node in ran if node.leaf is None}
    assert made <= {1, None}
    assert any(node.made_in_pass == 1 for node in ran)
    assert all(
        recording.nodes[node.made_in_node].short_name.endswith(("Backward0", "Backward1"))
        for node in ran
        if node.made_in_pass
    )


def test_passes_say_how_the_engine_was_called():
    x = batch(requires_grad=True)
    with al.record() as rec:
        y = x.exp()
        torch.autograd.grad(y, x, torch.full_like(y, 2), retain_graph=True)
        y.sum().backward()

    first, second = rec.recording.events_of(BackwardStarted)
    assert (first.accumulates, first.retain_graph, first.create_graph) == (False, True, False)
    assert (second.accumulates, second.retain_graph) == (True, False)
    assert first.grad_outputs[0].norm == pytest.approx(2 * math.sqrt(20))
    assert rec.recording.nodes[first.roots[0]].name == "ExpBackward0"
    assert (first.pass_id, second.pass_id) == (1, 2)
    assert "torch.autograd.grad" in first.source.text


def test_checkpointing_marks_what_is_run_again():
    net, x = small_net(), batch(requires_grad=True)
    with al.record() as rec:
        h = torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False)
        h.sum().backward()

    flags = [(op.name, op.recomputed) for op in rec.recording.ops]
    assert flags[:4] == [("linear", False), ("relu", False), ("linear", False), ("sum", False)]
    assert {flag for _, flag in flags[4:]} == {True}
    assert ("linear", True) in flags


@pytest.mark.parametrize("make", [torch.optim.Adam, torch.optim.SGD, torch.optim.RMSprop])
@pytest.mark.parametrize("foreach", [True, False])
def test_optimizer_step_is_one_event_with_its_parameters(make, foreach):
    net, x = small_net(), batch()
    optimizer = make(net.parameters(), lr=0.1, foreach=foreach)
    with al.record(net) as rec:
        for _ in range(2):
            net(x).sum().backward()
            optimizer.step()

    steps = list(rec.recording.events_of(OptimizerStepped))
    names = [[rec.recording.tensors[number].name for number in step.parameters] for step in steps]
    assert [step.optimizer for step in steps] == [make.__name__] * 2
    assert [sorted(one) for one in names] == [["0.bias", "0.weight", "2.bias", "2.weight"]] * 2
    assert {op.name for op in rec.recording.ops} == {"linear", "relu", "sum"}


def test_unused_frozen_and_dead_parameters_are_in_the_recording():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.frozen, self.unused = nn.Linear(4, 3), nn.Linear(3, 3), nn.Linear(2, 2)
            self.dead = nn.Linear(3, 1)
            self.frozen.requires_grad_(False)

        def forward(self, x):
            h = self.frozen(self.used(x))
            return h.sum() + (self.dead(h) - 1e6).relu().sum()

    net = Net()
    with al.record(net) as rec:
        net(batch()).backward()

    tensors = {tensor.name: tensor for tensor in rec.recording.tensors if tensor.is_parameter}
    assert set(tensors) == {name for name, _ in net.named_parameters()}
    assert not tensors["frozen.weight"].requires_grad
    got = {e.leaf: e.added.norm for e in rec.recording.events_of(GradAccumulated)}
    assert got[tensors["dead.weight"].id] == 0
    assert got[tensors["used.weight"].id] > 0
    assert not {tensors["unused.weight"].id, tensors["frozen.bias"].id} & set(got)


@pytest.mark.parametrize("budget", [0, 100, 5000, 64_000_000])
def test_budget_is_kept_and_said(budget):
    with al.record(values="all", max_bytes=budget) as rec:
        for dtype in (torch.float32, torch.bfloat16, torch.complex64, torch.int64, torch.bool):
            torch.ones(200).to(dtype)

    shots = snapshots_of(rec.recording, OpCalled, "outputs")
    kept = sum({shot.tensor: shot.values.nbytes for shot in shots if shot.values}.values())
    said = [event for event in rec.recording.not_seen if event.reason == "budget"]
    assert kept <= budget
    assert bool(said) == any(shot.values is None for shot in shots)
    assert all(str(budget) in event.text for event in said)
    assert all(shot.norm is not None for shot in shots if shot.finite and shot.numel == 1)


def test_every_recording_comes_back_from_its_file(tmp_path):
    net = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    with al.record(net, values="all") as rec:
        net(torch.randn(2, 5, 8)).square().mean().backward()
        torch.randn(200, 100).exp()

    path = rec.recording.save(tmp_path / "step.json")

    assert al.load_recording(path) == rec.recording


def test_a_grad_that_the_program_reads_is_the_one_that_backward_wrote():
    net = nn.Linear(3, 2)
    with al.record(net) as rec:
        net(torch.ones(4, 3)).sum().backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        net.bias.grad.norm()
    recording = rec.recording
    written = {
        event.leaf: event.after for event in recording.events if isinstance(event, GradAccumulated)
    }
    read = [op.inputs for op in recording.ops if op.name == "_foreach_norm"]
    assert set(read[0]) == {shot.tensor for shot in written.values()}
    names = {recording.tensors[tensor].name for tensor in read[0]}
    assert names == {"weight.grad", "bias.grad"}
    (last,) = (op for op in recording.ops if op.name == "norm" and op.source.text.count("bias"))
    assert recording.tensors[last.inputs[0]].name == "bias.grad"
