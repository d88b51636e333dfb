"""After a block nothing of the recorder is left: no hook, mode, patch, thread or tensor, with the
garbage collector off, however the block ended. A fault of our own never stops the program.
"""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from torch import nn

import autograd_lab as al
from autograd_lab.capture import (
    engine_pass,
    engine_tap,
    function_tap,
    graph_walk,
    measures,
    places,
    shots,
    tape,
)
from autograd_lab.recording import BackwardStarted, NodeFinished
from tests.capture.programs import batch, grads, small_net
from tests.capture.running import reasons

OURS = str(Path(al.__file__).parent)


@pytest.fixture(scope="module", autouse=True)
def without_garbage_collection():
    """What only the cycle collector would free counts as left behind."""
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def state_of_torch() -> dict[str, object]:
    """All that a recorder touches, by name."""
    module_hooks = vars(nn.modules.module)
    return {
        "engine": (torch.autograd._engine_run_backward, torch.autograd.graph._engine_run_backward),
        "modes": tuple(torch.overrides._get_current_function_mode_stack()),
        "dispatch modes": torch._C._len_torch_dispatch_stack(),
        "global hooks": {k: len(v) for k, v in module_hooks.items() if k.startswith("_global_for")},
        "grad mode": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "threads": threading.active_count(),
        "random": torch.get_rng_state().numpy().tobytes(),
        "taps": len(engine_tap.EngineTap._active),
    }


def alive() -> Counter[str]:
    """Objects of the recorder that the process still holds; facts about functions are kept."""
    kinds = Counter(type(one).__name__ for one in gc.get_objects() if _is_ours(one))
    return kinds - Counter({"CallKind": kinds["CallKind"]})


def _is_ours(one: object) -> bool:
    return str(type(one).__module__).startswith("autograd_lab.capture")


class Raises(torch.autograd.Function):
    """Raises what it was given in its backward."""

    @staticmethod
    def forward(ctx, x, error):
        ctx.error = error
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        raise ctx.error


class RaisesInForward(nn.Module):
    """Raises between two calls."""

    def __init__(self, error):
        super().__init__()
        self.inner, self.error = nn.Linear(4, 4), error

    def forward(self, x):
        self.inner(x)
        raise self.error


def fine(net, x, error):
    net(x).sum().backward()


def breaks_in_forward(net, x, error):
    nn.Sequential(net, nn.Linear(3, 4), RaisesInForward(error))(x)


def breaks_in_a_tensor_hook(net, x, error):
    def hook(grad):
        raise error

    h = x * 2
    h.register_hook(hook)
    net(h).sum().backward()


def breaks_in_a_node_hook(net, x, error):
    def hook(grads):
        raise error

    h = x * 2
    h.grad_fn.register_prehook(hook)
    net(h).sum().backward()


def breaks_in_a_backward(net, x, error):
    net(Raises.apply(x * 2, error)).sum().backward()


def breaks_in_a_backward_with_create_graph(net, x, error):
    net(Raises.apply(x * 2, error)).sum().backward(create_graph=True)


def breaks_in_a_nested_block(net, x, error):
    with al.record():
        breaks_in_a_backward(net, x, error)


BODIES = [
    breaks_in_forward,
    breaks_in_a_tensor_hook,
    breaks_in_a_node_hook,
    breaks_in_a_backward,
    breaks_in_a_backward_with_create_graph,
    breaks_in_a_nested_block,
]
ERRORS = [ValueError, KeyboardInterrupt, SystemExit]


def run(body, error=None):
    """Run a body in a block; the weak references of what it used, and the recorder."""
    net, x = small_net(), batch(requires_grad=True)
    recorder = al.record(net)
    caught = None
    try:
        with recorder:
            body(net, x, error)
    except BaseException as raised:
        caught = raised
    assert caught is error
    if error is not None:
        error.__traceback__ = None
    used = [weakref.ref(one) for one in (net, x, net[0].weight, *net)]
    return used, recorder


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph")
@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_nothing_is_left_after_an_exception(body, kind):
    before = state_of_torch()

    used, recorder = run(body, kind("stop"))

    after = state_of_torch()
    assert {**after, "random": 0} == {**before, "random": 0}
    if body is not breaks_in_a_backward_with_create_graph:  # a cycle of torch's own: grad to graph
        assert [one() for one in used if one() is not None] == []
    assert "recorder failed" not in reasons(recorder.recording)


def test_nothing_is_left_after_a_block_that_ends_well():
    gc.collect()  # what earlier tests held
    used, recorder = run(fine)
    recorder.recording  # noqa: B018 (reading it builds it)
    del recorder

    assert [one() for one in used if one() is not None] == []
    assert alive() == Counter()


def test_recording_holds_no_tensor_while_it_is_alive():
    x = batch(requires_grad=True)
    with al.record(values="all") as rec:
        y = x * 2
        y.sum().backward()
    used = [weakref.ref(x), weakref.ref(y), weakref.ref(x.grad)]

    del x, y

    assert [one() for one in used] == [None] * 3
    assert len(rec.recording.nodes) == 3


def test_gradients_and_outputs_die_inside_the_block_as_without_it():
    x, died = batch(requires_grad=True), []
    with al.record():
        for _ in range(3):
            y = (x * 2).exp()
            y.register_hook(lambda g: died.append(weakref.ref(g)))
            y.sum().backward()
            died.append(weakref.ref(y))
            del y

    x.grad = None
    assert [one() for one in died if one() is not None] == []


def test_nodes_of_a_freed_graph_keep_no_metadata_of_ours():
    x = batch(requires_grad=True)
    loss = (x * 2).sum()
    with al.record():
        loss.backward(retain_graph=True)
        loss.backward()

    assert loss.grad_fn.metadata == {}
    assert loss.grad_fn.next_functions[0][0].metadata == {}


def test_nodes_of_a_retained_graph_keep_one_number():
    loss = (batch(requires_grad=True) * 2).sum()
    with al.record():
        loss.backward(retain_graph=True)

    assert [type(value) for value in loss.grad_fn.metadata.values()] == [int]


def test_graph_retained_over_many_blocks_is_numbered_anew_in_each():
    x = batch(requires_grad=True)
    loss = (x * x).exp().sum()
    names = set()
    for _ in range(30):
        with al.record() as rec:
            (batch(requires_grad=True) + 1).sum().backward(retain_graph=True)
            loss.backward(retain_graph=True)
        assert reasons(rec.recording) == {"unseen calls"}
        names.add(tuple(node.short_name for node in rec.recording.nodes))
        del rec

    assert len(names) == 1


def test_hooks_are_gone_when_the_graph_runs_again_after_the_block():
    loss = (batch(requires_grad=True) * 2).exp().sum()
    with al.record() as rec:
        loss.backward(retain_graph=True)
    events = len(rec._tape.events)

    loss.backward()

    assert len(rec._tape.events) == events


def test_retained_graph_fires_each_hook_once_per_pass():
    loss = (batch(requires_grad=True) * 2).exp().sum()
    with al.record() as rec:
        loss.backward(retain_graph=True)
        loss.backward(retain_graph=True)
        loss.backward()

    finished = Counter(event.pass_id for event in rec.recording.events_of(NodeFinished))
    assert finished == {1: 4, 2: 4, 3: 4}


def test_model_gains_no_attribute_and_no_hook():
    net = small_net()
    before = [(sorted(vars(module)), sorted(vars(type(module)))) for module in net.modules()]
    with al.record(net):
        net(batch()).sum().backward()

    assert [(sorted(vars(m)), sorted(vars(type(m)))) for m in net.modules()] == before
    assert all(not m._forward_hooks and not m._backward_hooks for m in net.modules())
    assert all(p._backward_hooks is None for p in net.parameters())


@pytest.mark.parametrize("order", ["first in first out", "last in first out"])
def test_two_recorders_may_end_in_either_order(order):
    first, second, x = al.record(), al.record(), batch(requires_grad=True)
    before = state_of_torch()
    first.__enter__()
    second.__enter__()
    (x * 2).sum().backward()
    ended, left = (first, second) if order.startswith("first") else (second, first)
    ended.__exit__(None, None, None)
    x.sin().sum().backward()
    left.__exit__(None, None, None)
    x.cos().sum().backward()

    assert state_of_torch() == before
    names = [[op.name for op in recorder.recording.ops] for recorder in (ended, left)]
    assert names == [["mul", "sum"], ["mul", "sum", "sin", "sum"]]
    assert [len(list(r.recording.events_of(BackwardStarted))) for r in (ended, left)] == [1, 2]


def test_two_threads_may_record_at_once():
    before, recordings = state_of_torch(), {}

    def work(number):
        x = batch(requires_grad=True)
        with al.record() as rec:
            for _ in range(20):
                (x * number).sum().backward()
        recordings[number] = rec.recording

    threads = [threading.Thread(target=work, args=(number,)) for number in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert state_of_torch() == before
    assert [len(recordings[number].ops) for number in (2, 3)] == [40, 40]
    assert all("recorder failed" not in reasons(one) for one in recordings.values())


def test_module_imported_inside_the_block_keeps_a_working_engine():
    with al.record():
        from torch.autograd.graph import _engine_run_backward as kept

    x = batch(requires_grad=True)
    kept(((x * 2).sum(),), (torch.tensor(1.0),), False, False, (), accumulate_grad=True)
    assert x.grad.unique().tolist() == [2.0]


def test_somebody_elses_patch_of_the_engine_survives_the_block(monkeypatch):
    calls, plain = [], torch.autograd.graph._engine_run_backward

    def theirs(*args, **kwargs):
        calls.append("theirs")
        return plain(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(torch.autograd, "_engine_run_backward", theirs)
        patch.setattr(torch.autograd.graph, "_engine_run_backward", theirs)
        with al.record():
            (batch(requires_grad=True) * 2).sum().backward()
        assert torch.autograd._engine_run_backward is theirs
    assert calls == ["theirs"]


def test_twenty_steps_of_double_backward_leave_memory_flat():
    x = torch.linspace(-1, 1, 8, requires_grad=True)

    def live():
        return sum(type(one) is torch.Tensor for one in gc.get_objects())

    with al.record(values="none"):
        counts = []
        for _ in range(20):
            (first,) = torch.autograd.grad(torch.tanh(x * x * x).sum(), x, create_graph=True)
            torch.autograd.grad(first.sum(), x)
            del first
            counts.append(live())

    assert len(set(counts[3:])) == 1, counts


FAULTS = [
    (shots.Shots, "shoot"),
    (shots.Shots, "shoot_view"),
    (shots.Shots, "flush"),
    (shots.Shots, "before_writing"),
    (shots.Shots, "finish"),
    (measures.Measures, "_measure_together"),
    (tape.Tape, "meet_parameters"),
    (places.Places, "locate"),
    (function_tap.FunctionTap, "_write"),
    (engine_pass.Pass, "_hook_graph"),
    (engine_pass.Pass, "end"),
    (graph_walk, "read_slots"),
]


@pytest.mark.parametrize(("owner", "name"), FAULTS, ids=[name for _, name in FAULTS])
def test_fault_of_our_own_is_said_and_does_not_stop_the_program(owner, name, monkeypatch):
    def program():
        net = small_net(inplace=True)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        net(batch().view(5, 4)).sum().backward()
        optimizer.step()
        return [*grads(net), *net.parameters()]

    def fail(*args, **kwargs):
        message = "a fault of ours"
        raise LookupError(message)

    torch.manual_seed(0)
    expected, before = program(), state_of_torch()
    monkeypatch.setattr(owner, name, fail)
    torch.manual_seed(0)
    with al.record(values="none") as rec:
        found = program()
    monkeypatch.undo()

    assert all(map(torch.equal, expected, found))
    assert state_of_torch() == before
    assert "recorder failed" in reasons(rec.recording)


def test_exception_whose_text_cannot_be_had_passes_unchanged():
    class MuteError(Exception):
        def __str__(self):
            raise RuntimeError

    for body in (breaks_in_forward, breaks_in_a_backward):
        _, recorder = run(body, MuteError())
        assert "MuteError" in recorder.recording.problems[-1].text


def records_again() -> bool:
    """Whether a block sees a backward."""
    with al.record(values="none") as rec:
        (torch.ones(2, requires_grad=True) * 2).sum().backward()
    return rec._tape.pass_count == 1


def interrupt_at_line(number: int):
    """Run a program and interrupt it at the n-th new line of ours; the line, if there is one.

    A line is new if it was not yet called from where it is called.
    """
    visited: set[tuple[object, ...]] = set()
    where: list[tuple[str, int]] = []

    def trace_line(frame, event, arg):
        caller = frame.f_back
        line = frame.f_code, frame.f_lineno, caller.f_code, caller.f_lineno
        if event == "line" and line not in visited and not where:
            visited.add(line)
            if len(visited) == number:
                where.append((frame.f_code.co_name, frame.f_lineno))
                raise KeyboardInterrupt
        return trace_line

    def trace(frame, event, arg):
        return trace_line if frame.f_code.co_filename.startswith(OURS) else None

    net, x = small_net(inplace=True), batch(requires_grad=True)
    sys.settrace(trace)
    try:
        with al.record(net):
            loss = net(x * 1).sum()
            loss.backward(retain_graph=True)
            loss.backward()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return where[0] if where else None


def test_interrupt_at_any_line_of_ours_leaves_nothing():
    before, left = {**state_of_torch(), "random": 0}, []
    for number in range(1, 2000):
        where = interrupt_at_line(number)
        if where is None:
            break
        if {**state_of_torch(), "random": 0} != before:
            left.append(where[0])
            engine_tap.EngineTap._active[0].functions.stop()
            engine_tap.EngineTap._active[0].stop()

        assert records_again(), where

    assert number > 500
    assert left == ["__exit__"]  # its first line: before it no context manager can clean up


@pytest.mark.parametrize("name", ["meet_graph", "read_slots"])
def test_a_pass_that_could_not_be_watched_is_still_a_whole_one(name, monkeypatch):
    def fail(*args, **kwargs):
        message = "a fault of ours"
        raise LookupError(message)

    monkeypatch.setattr(engine_pass if name == "meet_graph" else graph_walk, name, fail)
    x = torch.ones(3, requires_grad=True)
    with al.record() as rec:
        (x * 2).sum().backward()
    cursor = al.Cursor(rec.recording)
    assert all(str(cursor.seek(step)) for step in range(len(cursor)))


def nodes_below(tensor):
    stack, seen = [tensor.grad_fn], set()
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack += [target for target, _ in node.next_functions]
    return seen


@pytest.mark.parametrize("end", ["no backward", "retained", "created graph", "freed", "raised"])
def test_no_node_keeps_a_mark(end):
    x = torch.ones(3, requires_grad=True)
    kept = []
    with pytest.raises(LookupError) if end == "raised" else nullcontext(), al.record():
        y = (x * 2).tanh()
        kept.append(y.sum())
        if end == "retained":
            kept[0].backward(retain_graph=True)
        if end == "created graph":
            (first,) = torch.autograd.grad(kept[0], x, create_graph=True)
            kept.append((first * first).sum())
        if end == "freed":
            kept[0].backward()
        if end == "raised":
            raise LookupError
    nodes = set().union(*map(nodes_below, kept))
    assert len(nodes) >= 4
    assert all(not node.metadata for node in nodes)
