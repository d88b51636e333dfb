"""Frames of recordings built by hand, where every number can be counted, and of real ones."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
import torch
from torch import nn

import autograd_lab as al
from autograd_lab.errors import StepError
from autograd_lab.recording import (
    BackwardFinished,
    BackwardStarted,
    GradAccumulated,
    NodeFinished,
    NodeStarted,
    OpCalled,
    OptimizerStepped,
    Recording,
)
from autograd_lab.replay import frame_at
from tests.replay.building import Builder, chain, perceptron


def step_after(recording, kind, *, nth=0, **fields):
    """The step whose frame is the one right after the nth such event."""
    fits = [
        step
        for step, event in enumerate(recording.events, start=1)
        if isinstance(event, kind) and all(getattr(event, k) == v for k, v in fields.items())
    ]
    return fits[nth]


def after(recording, kind, **where):
    return frame_at(recording, step_after(recording, kind, **where))


@pytest.fixture
def two_layers():
    build = Builder()
    x = build.tensor("x")
    w1, w2 = build.parameter("fc1.weight"), build.parameter("fc2.weight")
    h = build.op("linear", x, w1, saved=[("self", 100, 1)])
    h = build.op("relu", h, saved=[("result", 200, 2)])
    y = build.op("linear", h, w2, saved=[("self", 200, 2), ("mat2", 40, 3)])
    build.backward(y)
    return build.recording()


def test_first_frame_is_before_anything(two_layers):
    frame = frame_at(two_layers, 0)
    assert (frame.event, frame.phase, frame.running, frame.ops_done) == (None, "between", None, 0)
    assert (frame.done, frame.waiting, frame.saved_alive, frame.grads) == (set(), {}, (), {})


def test_empty_recording_has_one_frame():
    assert frame_at(Recording(), 0).saved_nbytes == 0


@pytest.mark.parametrize("index", [-1, 99])
def test_step_outside_names_the_range(two_layers, index):
    with pytest.raises(StepError, match=f"steps 0 .* to {len(two_layers.events)}"):
        frame_at(two_layers, index)


def test_each_frame_shows_the_event_before_it(two_layers):
    shown = [frame_at(two_layers, i + 1).event for i in range(len(two_layers.events))]
    assert shown == list(two_layers.events)


def test_phases_follow_the_program(two_layers):
    assert after(two_layers, OpCalled).phase == "forward"
    assert after(two_layers, BackwardStarted).phase == "backward 1"
    assert after(two_layers, NodeStarted).phase == "backward 1"
    assert after(two_layers, BackwardFinished).phase == "between"


def test_optimizer_step_is_a_phase_of_its_own(two_layers):
    build = Builder()
    build.events.append(OptimizerStepped(optimizer="SGD", op_count=2))
    assert frame_at(build.recording(), 1).phase == "optimizer"


def test_a_node_runs_between_its_start_and_its_end(two_layers):
    started = step_after(two_layers, NodeStarted)
    node = two_layers.events[started - 1].node
    assert frame_at(two_layers, started).running == node
    assert node not in frame_at(two_layers, started).done
    assert frame_at(two_layers, started + 1).running is None
    assert node in frame_at(two_layers, started + 1).done


def test_saved_tensors_live_from_their_op_to_the_end_of_their_node(two_layers):
    (relu,) = [node.id for node in two_layers.nodes if node.name == "ReluBackward0"]
    born = step_after(two_layers, OpCalled, nth=1)
    freed = step_after(two_layers, NodeFinished, node=relu)
    alive = [
        i
        for i in range(len(two_layers.events) + 1)
        if relu in {saved.node for saved in frame_at(two_layers, i).saved_alive}
    ]
    assert alive == list(range(born, freed))


def test_a_storage_that_two_nodes_save_counts_once(two_layers):
    frame = after(two_layers, OpCalled, nth=2)
    assert sum(saved.nbytes for saved in frame.saved_alive) == 540
    assert frame.saved_nbytes == 340


def test_an_address_that_comes_again_is_another_storage():
    build = Builder()
    for nbytes in (100, 700):
        build.backward(build.op("exp", build.parameter("w"), saved=[("result", nbytes, 1)]))
    recording = build.recording()
    starts = [at for at, one in enumerate(recording.events) if isinstance(one, BackwardStarted)]
    assert [frame_at(recording, start).saved_nbytes for start in starts] == [100, 700]


def test_a_shared_storage_stays_until_the_last_node_frees_it(two_layers):
    last_linear = after(two_layers, NodeFinished, nth=0)
    relu = after(two_layers, NodeFinished, nth=1)
    assert (last_linear.saved_nbytes, relu.saved_nbytes) == (300, 100)


@pytest.mark.parametrize(
    ("flags", "is_kept"),
    [
        ({"create_graph": True}, True),
        ({"retain_graph": True}, True),
        ({"create_graph": True, "retain_graph": False}, False),
        ({}, False),
    ],
    ids=["create", "retain", "create without retain", "neither"],
)
def test_a_pass_frees_the_graph_where_torch_does(flags, is_kept):
    x = torch.ones(3, requires_grad=True)
    with al.record() as rec:
        y = x.exp()
        torch.autograd.grad(y.sum(), x, **flags)
    recording = rec.recording
    alive = {kept.node for kept in frame_at(recording, len(recording.events)).saved_alive}
    (exp,) = [node.id for node in recording.nodes if node.made_by == 0]
    assert (exp in alive) is is_kept
    with contextlib.nullcontext() if is_kept else pytest.raises(RuntimeError, match="freed"):
        _ = y.grad_fn._saved_result


def test_a_pass_that_retains_the_graph_frees_nothing():
    build = Builder()
    y = build.op("exp", build.tensor("x", leaf=True), saved=[("result", 8, 1)])
    build.backward(y, retain_graph=True)
    middle = len(build.events)
    build.backward(y)
    recording = build.recording()
    assert frame_at(recording, middle).saved_nbytes == 8
    assert frame_at(recording, len(recording.events)).saved_nbytes == 0


def test_saved_tensors_of_an_unseen_op_live_from_the_start_of_their_pass():
    build = Builder()
    x = build.tensor("x", leaf=True)
    y = build.op("exp", x, saved=[("result", 8, 1)])
    build.nodes[-1] = build.nodes[-1].__class__(
        id=build.nodes[-1].id, name="Own", edges=build.nodes[-1].edges, saved=build.nodes[-1].saved
    )
    build.backward(y)
    recording = build.recording()
    assert after(recording, OpCalled).saved_nbytes == 0
    assert after(recording, BackwardStarted).saved_nbytes == 8


def test_a_node_waits_until_all_its_gradients_are_there():
    build = Builder()
    x = build.op("exp", build.tensor("x", leaf=True))
    a, b = build.op("sin", x), build.op("cos", x)
    build.backward(build.op("add", a, b))
    recording = build.recording()
    exp = build.node_of[x]
    waits = [frame_at(recording, i).waiting for i in range(len(recording.events) + 1)]
    assert [wait for wait in waits if wait] == [{exp: (1, 2)}] * 2
    ready = [exp in frame_at(recording, i).ready for i in range(len(recording.events) + 1)]
    starts = [i for i, one in enumerate(recording.events) if isinstance(one, NodeStarted)]
    assert [i for i, is_ready in enumerate(ready) if is_ready] == [starts[3]]


def test_an_edge_that_brings_none_counts_as_a_gradient_received():
    build = Builder()
    x = build.op("exp", build.tensor("x", leaf=True))
    a, b = build.op("sin", x), build.op("cos", x)
    y = build.op("add", a, b)
    one = build.start_pass(build.node_of[y])
    build.run(one, build.node_of[y])
    build.run(one, build.node_of[b], returned=None)
    assert frame_at(build.recording(), len(build.events)).waiting == {build.node_of[x]: (1, 2)}


def test_edges_of_nodes_that_this_pass_never_reaches_are_not_waited_for():
    build = Builder()
    x = build.op("exp", build.tensor("x", leaf=True))
    a, _ = build.op("sin", x), build.op("cos", x)
    build.backward(a)
    recording = build.recording()
    assert all(not frame_at(recording, i).waiting for i in range(len(recording.events) + 1))


def test_a_pass_that_was_not_asked_for_a_leaf_leaves_it_out_of_waiting():
    build = Builder()
    w = build.parameter("w")
    y = build.op("mul", build.op("mul", build.tensor("x", leaf=True), w), w)
    one = build.start_pass(build.node_of[y], accumulates=False)
    build.run(one, build.node_of[y])
    build.finish_pass(one)
    assert frame_at(build.recording(), len(build.events)).waiting == {}


def test_an_error_half_way_leaves_what_waited_waiting():
    build = Builder()
    x = build.op("exp", build.tensor("x", leaf=True))
    a, b = build.op("sin", x), build.op("cos", x)
    build.backward(build.op("add", a, b), stop_after=2)
    last = frame_at(build.recording(), len(build.events))
    assert last.waiting == {build.node_of[x]: (1, 2)}
    assert (last.phase, last.running, len(last.done)) == ("between", None, 2)


def test_an_error_inside_a_node_ends_its_run():
    build = Builder()
    y = build.op("exp", build.tensor("x", leaf=True))
    one = build.start_pass(build.node_of[y])
    build.start(one, build.node_of[y])
    build.finish_pass(one, "RuntimeError: planted")
    last = frame_at(build.recording(), len(build.events))
    assert (last.running, last.done) == (None, frozenset())


def test_done_starts_again_with_each_pass():
    build = Builder()
    y = build.op("exp", build.tensor("x", leaf=True))
    build.backward(y, retain_graph=True)
    build.backward(y)
    recording = build.recording()
    assert len(after(recording, BackwardFinished, nth=0).done) == 2
    assert len(after(recording, BackwardStarted, nth=1).done) == 0


def test_a_nested_pass_gives_way_to_the_outer_one():
    build = Builder()
    x = build.tensor("x", leaf=True)
    y, z = build.op("own", x), build.op("sin", x)
    outer = build.start_pass(build.node_of[y])
    build.start(outer, build.node_of[y])
    build.backward(z)
    recording = build.recording()
    inner = after(recording, NodeStarted, nth=1)
    assert (inner.phase, inner.running) == ("backward 2", build.node_of[z])
    last = frame_at(recording, len(recording.events))
    assert (last.phase, last.pass_id, last.running) == ("backward 1", 1, build.node_of[y])


def test_interleaved_passes_of_two_threads_are_told_apart_by_their_events():
    build = Builder()
    y = build.op("exp", build.tensor("x", leaf=True))
    z = build.op("sin", build.tensor("w", leaf=True))
    one, two = build.start_pass(build.node_of[y]), build.start_pass(build.node_of[z])
    build.run(one, build.node_of[y])
    build.run(two, build.node_of[z])
    recording = build.recording()
    assert after(recording, NodeFinished, nth=0).done == {build.node_of[y]}
    assert after(recording, NodeFinished, nth=1).done == {build.node_of[z]}


def test_grads_hold_the_sum_after_each_pass():
    build = Builder()
    x = build.tensor("x", leaf=True)
    y = build.op("exp", x)
    build.backward(y, retain_graph=True)
    build.backward(y)
    recording = build.recording()
    first = after(recording, BackwardFinished, nth=0).grads
    second = after(recording, BackwardFinished, nth=1).grads
    assert (first[x].norm, second[x].norm) == (1.0, 2.0)


def test_a_grad_from_before_the_recording_is_there_from_the_first_frame():
    build = Builder()
    x = build.tensor("x", leaf=True)
    y = build.op("exp", x)
    build.grads[x] = 5.0
    build.backward(y)
    recording = build.recording()
    assert frame_at(recording, 0).grads[x].norm == 5.0
    assert frame_at(recording, len(recording.events)).grads[x].norm == 6.0


def test_a_grad_cleared_between_passes_is_gone_when_the_next_one_starts():
    build = Builder()
    x = build.tensor("x", leaf=True)
    y = build.op("exp", x)
    build.backward(y, retain_graph=True)
    build.grads.clear()
    build.backward(y)
    recording = build.recording()
    assert x in after(recording, BackwardFinished, nth=0).grads
    assert x not in after(recording, BackwardStarted, nth=1).grads


def test_a_grad_that_a_hook_set_to_none_does_not_exist():
    x = torch.ones(3, requires_grad=True)
    handle = x.register_post_accumulate_grad_hook(lambda leaf: setattr(leaf, "grad", None))
    with al.record() as rec:
        x.exp().sum().backward()
    handle.remove()
    recording = rec.recording
    assert frame_at(recording, len(recording.events)).grads == {}
    assert x.grad is None
    assert "no leaves with a new gradient" in repr(recording)
    assert ".grad now none" in repr(recording)


def test_a_grad_that_is_cleared_while_it_accumulates_is_gone_again():
    build = Builder()
    x = build.tensor("x", leaf=True)
    build.backward(build.op("exp", x))
    build.events = [
        replace(event, after=None) if isinstance(event, GradAccumulated) else event
        for event in build.events
    ]
    last = frame_at(build.recording(), len(build.events))
    assert last.grads == {}
    assert "gains norm 1 and is None again" in repr(after(build.recording(), GradAccumulated))


def test_frames_of_one_step_are_equal_and_of_two_steps_are_not(two_layers):
    assert frame_at(two_layers, 3) == frame_at(two_layers, 3)
    assert frame_at(two_layers, 3) != frame_at(two_layers, 4)


def test_everything_is_done_and_freed_at_the_end():
    recording = perceptron(5, residual=True)
    last = frame_at(recording, len(recording.events))
    assert last.done == {node.id for node in recording.nodes}
    assert (last.waiting, last.saved_alive, last.saved_nbytes) == ({}, (), 0)


def test_a_chain_keeps_all_its_saved_tensors_until_backward():
    frame = after(chain(50), BackwardStarted)
    assert (frame.saved_nbytes, len(frame.saved_alive)) == (50 * 24, 50)


@pytest.fixture
def trained_twice():
    """A real net, its optimizer cleared and stepped between two backward passes."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with al.record(net) as rec:
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.randn(5, 4)).sum().backward()
            optimizer.step()
    return net, rec.recording


def test_grads_at_the_end_are_those_of_torch(trained_twice):
    net, recording = trained_twice
    grads = frame_at(recording, len(recording.events)).grads
    assert {recording.tensors[leaf].name: grad.norm for leaf, grad in grads.items()} == {
        name: pytest.approx(parameter.grad.norm().item(), rel=1e-5)
        for name, parameter in net.named_parameters()
    }


def test_real_saved_bytes_are_those_that_can_be_counted(trained_twice):
    _, recording = trained_twice
    at_backward = after(recording, BackwardStarted)
    inputs, hidden, weight = 5 * 4 * 4, 5 * 8 * 4, 3 * 8 * 4
    assert at_backward.saved_nbytes == inputs + hidden + weight
    assert after(recording, BackwardFinished).saved_nbytes == 0


def test_zero_grad_between_two_real_steps_empties_the_grads(trained_twice):
    _, recording = trained_twice
    assert len(after(recording, OptimizerStepped).grads) == 4
    assert after(recording, BackwardStarted, nth=1).grads == {}


def test_real_nodes_wait_only_while_gradients_are_missing(trained_twice):
    _, recording = trained_twice
    frames = [frame_at(recording, step) for step in range(len(recording.events) + 1)]
    assert all(received < expected for f in frames for received, expected in f.waiting.values())
    assert (frames[-1].waiting, frames[-1].ready) == ({}, frozenset())
    for step, event in enumerate(recording.events, 1):
        if isinstance(event, NodeStarted) and recording.nodes[event.node].id in frames[step].done:
            assert event.node in frames[step - 1].ready


@pytest.mark.parametrize("wanted", ["x", "w"])
def test_a_node_that_a_pass_leaves_out_is_never_ready(wanted):
    x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    with al.record() as rec:
        y = ((x * w).exp() * x * w).sum()
        torch.autograd.grad(y, {"x": x, "w": w}[wanted])
    frames = [frame_at(rec.recording, step) for step in range(len(rec.recording.events) + 1)]
    ready = {node for frame in frames for node in frame.ready}
    assert {rec.recording.nodes[node].leaf for node in ready} == {None}
    assert frames[-1].ready == frozenset()


def test_autograd_grad_leaves_nothing_waiting_and_no_grads():
    w = torch.ones(3, requires_grad=True)
    with al.record() as rec:
        y = (w * w).sin() * w
        torch.autograd.grad(y.sum(), y)
    last = frame_at(rec.recording, len(rec.recording.events))
    assert (last.waiting, last.grads, last.phase) == ({}, {}, "between")


def test_a_real_nested_pass_shows_inside_the_node_that_started_it():
    model, x = nn.Linear(4, 4), torch.randn(2, 4, requires_grad=True)
    with al.record(model) as rec:
        torch.utils.checkpoint.checkpoint(model, x, use_reentrant=True).sum().backward()
    recording = rec.recording
    phases = [frame_at(recording, i).phase for i in range(len(recording.events) + 1)]
    runs = [phase for phase, before in zip(phases[1:], phases, strict=False) if phase != before]
    assert [phase for phase in runs if phase.startswith("backward")] == [
        "backward 1",
        "backward 2",
        "backward 1",
    ]
