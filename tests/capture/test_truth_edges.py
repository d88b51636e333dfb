"""Numbers and causes where memory, threads or hooks play tricks: the right one, or none and why."""

import threading

import numpy as np
import pytest
import torch
from torch.utils.checkpoint import checkpoint

import autograd_lab as al
from autograd_lab.recording import GradAccumulated, OpCalled


def outputs(rec):
    return [shot for event in rec.recording.events_of(OpCalled) for shot in event.outputs]


def in_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_a_storage_that_is_asked_for_is_measured_before_it_can_be_freed():
    x = torch.ones(30, requires_grad=True)
    with al.record() as rec:
        y = x * 2
        y.untyped_storage().resize_(0)
    assert outputs(rec)[0].norm == pytest.approx(2 * 30**0.5)


def test_a_storage_freed_unseen_is_said_and_not_read():
    x = torch.ones(30, requires_grad=True)
    with al.record() as rec:
        y = x * 2
        with torch._C.DisableTorchFunction():
            y.untyped_storage().resize_(0)
    assert (outputs(rec)[0].norm, outputs(rec)[0].note) == (None, "memory freed after capture")


def test_memory_lent_to_numpy_is_measured_before_it_is_lent():
    with al.record() as rec:
        y = torch.ones(3) * 2
        y.numpy()[:] = 7
    assert outputs(rec)[-1].norm == pytest.approx(12**0.5)


def test_a_normalisation_that_reshapes_inside_has_its_own_norm():
    x = torch.arange(64.0).reshape(2, 2, 4, 4).requires_grad_()
    with al.record(values="none") as rec:
        y = torch.nn.functional.instance_norm(x)
    assert outputs(rec)[-1].norm == pytest.approx(float(y.detach().norm()), rel=1e-5)


def test_running_statistics_are_shown_as_the_call_read_them():
    norm = torch.nn.BatchNorm1d(3)
    with al.record() as rec:
        norm(torch.full((4, 3), 5.0))
    call = list(rec.recording.events_of(OpCalled))[-1]
    told = {rec.recording.tensor(shot.tensor).name: shot.norm for shot in call.inputs}
    assert told["norm.running_mean"] == 0
    assert told["norm.running_var"] == pytest.approx(3**0.5)


def test_nan_written_through_data_is_blamed_on_the_write():
    w = torch.ones(3, requires_grad=True)
    with al.record() as rec:
        y = w * 2
        w.data.fill_(float("nan"))
        z = w * 3
    assert y.shape == z.shape
    assert rec.recording.problems[0].text.startswith("First NaN in forward: fill_")


def test_a_node_of_another_thread_is_not_claimed_by_a_call_of_the_same_name_and_number():
    x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    with al.record() as rec:
        y = x * 2
        in_a_thread(lambda: (w * 3).sum().backward())
    assert y.grad_fn is not None
    assert [node.made_by for node in rec.recording.nodes] == [None, None, None]
    assert "unseen calls" in [line.reason for line in rec.recording.not_seen]


def accumulations(rec):
    events = rec.recording.events_of(GradAccumulated)
    return [(e.before and e.before.norm, e.added and e.added.norm, e.after.norm) for e in events]


def test_a_grad_that_a_nested_backward_made_is_the_sum_before():
    w = torch.full((), 2.0, requires_grad=True)
    with al.record() as rec:
        checkpoint(lambda a: a * w, w * 4, use_reentrant=True).backward()
    assert accumulations(rec)[-1] == (8.0, 8.0, 16.0)
    assert float(w.grad) == 16


def test_a_grad_that_a_hook_set_during_the_pass_is_said_to_be_unseen():
    w = torch.full((), 2.0, requires_grad=True)
    with al.record() as rec:
        h = w * 4
        h.register_hook(lambda g: setattr(w, "grad", torch.tensor(10.0)))
        h.backward()
    (event,) = rec.recording.events_of(GradAccumulated)
    assert (event.before.norm, event.before.note) == (None, "set during the pass")
    assert event.after.norm == 14


def test_a_node_that_runs_in_two_backwards_is_one_node():
    x = torch.ones(3, requires_grad=True)
    with al.record() as rec:
        t = x + 1
        a, b = t.sum(), (t * 2).sum()
        a.backward()
        b.backward()
    assert [node.name for node in rec.recording.nodes].count("AddBackward0") == 1


def test_memory_that_nobody_wrote_yet_has_no_number():
    with al.record() as rec:
        x = torch.empty(3)
        x.fill_(2.0)
    before, after = outputs(rec)
    assert (before.norm, before.note) == (None, "memory not written yet")
    assert after.norm == pytest.approx(12**0.5)


def test_forward_work_of_a_thread_that_outlives_the_block_is_not_written_down():
    x, go, done = torch.ones(3, requires_grad=True), threading.Event(), threading.Event()
    with al.record() as rec:
        y = x * 2
        y.register_hook(lambda g: (done.set(), go.wait(20), g * 7)[-1])
        thread = threading.Thread(target=lambda: y.sum().backward())
        thread.start()
        assert done.wait(20)
    go.set()
    thread.join()
    assert [op.name for op in rec.recording.ops] == ["mul"]
    assert float(x.grad[0]) == 14


def test_a_block_left_in_another_thread_is_said_and_its_mode_does_nothing():
    recorder = al.record()

    def enter_here_and_leave_there():
        recorder.__enter__()
        in_a_thread(lambda: recorder.__exit__(None, None, None))
        assert float((torch.ones(2) * 2).sum()) == 4

    in_a_thread(enter_here_and_leave_there)  # the thread, and the mode on it, are gone afterwards
    assert "left in another thread" in [line.reason for line in recorder.recording.not_seen]
    assert recorder.recording.ops == ()


def test_a_view_call_whose_tensor_came_by_keyword_is_recorded():
    x = torch.ones(2, 3, requires_grad=True)
    with al.record() as rec:
        torch.transpose(input=x, dim0=0, dim1=1).sum().backward()
    assert [op.name for op in rec.recording.ops] == ["transpose", "sum"]
    assert not rec.recording.not_seen


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.complex64], ids=str)
def test_a_large_tensor_that_was_written_in_place_has_its_norm(dtype):
    x = torch.ones(300, 300, dtype=dtype)
    with al.record(values="none") as rec:
        x.mul_(2)
    (shot,) = rec.recording.events[-1].outputs
    assert shot.norm == pytest.approx(600)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_strided_nested_tensor_does_not_lose_the_pass():
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], requires_grad=True)
    with al.record() as rec:
        torch.nested.to_padded_tensor(x * 2, 0.0).sum().backward()
    assert "recorder failed" not in {event.reason for event in rec.recording.not_seen}
    assert rec.recording.nodes


def test_a_write_into_a_view_is_the_maker_of_the_bases_new_node():
    x = torch.ones(4, requires_grad=True)
    with al.record() as rec:
        y = x * 1
        y[1:].mul_(3)
        y.sum().backward()
    (node,) = [node for node in rec.recording.nodes if "CopySlices" in node.name]
    assert rec.recording.ops[node.made_by].name == "mul_"
    assert not rec.recording.not_seen


def test_graphs_made_in_two_threads_keep_their_own_nodes():
    leaves = [torch.ones(3, requires_grad=True) for _ in range(2)]
    losses = [None, None]

    def forward(k):
        losses[k] = (leaves[k] * 2).sum()

    with al.record() as rec:
        for k in range(2):
            thread = threading.Thread(target=forward, args=(k,))
            thread.start()
            thread.join()
        for loss in losses:
            loss.backward()
    leaf_nodes = [node for node in rec.recording.nodes if node.leaf is not None]
    assert len(rec.recording.nodes) == 6
    assert len({node.leaf for node in leaf_nodes}) == 2


def test_memory_not_written_yet_warns_of_nothing(recwarn):
    bits = torch.full((4,), 0x7F800001, dtype=torch.int32)
    with al.record(values="auto") as rec:
        bits.view(torch.float32).clone()
    assert rec.recording.events[-1].outputs[0].finite is False
    assert not recwarn


def test_a_write_is_seen_through_another_view_of_numpys_memory():
    held = np.ones(4, dtype=np.float32)
    whole, part = torch.from_numpy(held), torch.from_numpy(held[1:])
    with al.record(values="none") as rec:
        part.clone()
        whole.add_(1)
        part.clone()
    shots = [event.inputs for event in rec.recording.events]
    assert [shots[0][0].norm, shots[2][0].norm] == pytest.approx([3**0.5, 12**0.5])


def test_a_write_elsewhere_leaves_what_was_measured():
    x, counter = torch.ones(4), torch.zeros(())
    with al.record() as rec:
        x.clone()
        counter.add_(1)
        x.clone()
    inputs = [event.inputs for event in rec.recording.events]
    assert [len(inputs[0]), len(inputs[2])] == [1, 0]


def test_a_write_through_data_is_seen_by_the_tensor():
    x = torch.ones(4)
    with al.record(values="none") as rec:
        x.clone()
        x.data.mul_(3)
        x.clone()
    assert rec.recording.events[-1].inputs[0].norm == pytest.approx(6)


@pytest.mark.parametrize("size", [4, 300], ids=["small", "large"])
def test_norms_under_autocast_are_not_rounded(size):
    x = torch.full((size, size), 1.001)
    with torch.autocast("cpu", dtype=torch.bfloat16), al.record(values="none") as rec:
        x.clone()
    assert rec.recording.events[0].outputs[0].norm == pytest.approx(1.001 * size, rel=1e-5)
