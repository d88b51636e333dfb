"""A cursor goes where frame_at goes, and stops where it is told to."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import autograd_lab as al
from autograd_lab.errors import NodeNotFoundError, StepError
from autograd_lab.recording import GradAccumulated, NodeFinished, NodeStarted, OpCalled, Recording
from autograd_lab.replay import Cursor, frame_at
from tests.replay.building import Builder, perceptron

NET = perceptron(3)


def name_at(cursor):
    event = cursor.event
    if isinstance(event, OpCalled):
        return NET.ops[event.op].name
    return NET.nodes[event.node].short_name


@given(st.lists(st.integers(-40, 40), max_size=8))
def test_any_walk_shows_what_frame_at_shows(moves):
    cursor = Cursor(NET)
    for move in moves:
        frame = cursor.step(move) if move >= 0 else cursor.back(-move)
        there = frame_at(NET, cursor.index)
        assert frame == cursor.frame == there
        assert (frame.done, frame.waiting, frame.grads) == (there.done, there.waiting, there.grads)


def test_length_counts_frames():
    assert len(Cursor(NET)) == len(NET.events) + 1
    assert len(Cursor(Recording())) == 1


def test_steps_past_the_ends_stay_at_the_ends():
    cursor = Cursor(NET)
    assert cursor.back().index == 0
    assert cursor.step(10_000).index == len(NET.events)
    assert cursor.step().index == len(NET.events)


@pytest.mark.parametrize("move", ["step", "back"])
def test_a_negative_count_is_refused_with_the_opposite_verb(move):
    with pytest.raises(StepError, match=r"Use (back|step)\(2\)"):
        getattr(Cursor(NET), move)(-2)


def test_a_seek_outside_stays_where_it_was():
    cursor = Cursor(NET)
    cursor.seek(5)
    with pytest.raises(StepError, match=f"to {len(NET.events)}"):
        cursor.seek(1000)
    assert cursor.index == 5


@pytest.mark.parametrize("move", ["seek", "step", "back"])
@pytest.mark.parametrize("count", [1.5, "a", None, True], ids=repr)
def test_what_is_no_whole_number_is_refused(move, count):
    cursor = Cursor(NET)
    cursor.seek(5)
    with pytest.raises(StepError, match=f"{move} takes a whole number"):
        getattr(cursor, move)(count)
    assert cursor.index == 5


def test_an_index_of_numpy_is_a_whole_number():
    assert Cursor(NET).seek(np.int64(3)).index == 3


def test_frame_at_takes_whole_numbers_only():
    with pytest.raises(StepError, match="frame_at takes a whole number"):
        frame_at(NET, 1.5)


def test_run_until_stops_when_the_node_starts():
    cursor = Cursor(NET)
    frame = cursor.run_until("ReluBackward0")
    assert isinstance(frame.event, NodeStarted)
    assert NET.nodes[frame.running].name == "ReluBackward0"


def test_run_until_again_finds_the_next_node_of_that_name():
    cursor = Cursor(NET)
    found = [cursor.run_until("ReluBackward0").running for _ in range(3)]
    assert len(set(found)) == 3


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("linear", "linear"),
        ("torch.relu", "relu"),
        ("Lin*", "LinearBackward0"),
        ("lin*", "linear"),
        ("RELUB*", "ReluBackward0"),
        ("AccumulateGrad", "AccumulateGrad"),
        ("torch::autograd::*", "AccumulateGrad"),
    ],
)
def test_run_until_takes_names_and_globs(target, name):
    cursor = Cursor(NET)
    cursor.run_until(target)
    assert name_at(cursor) == name


def test_run_until_finds_a_leaf_by_its_name():
    frame = Cursor(NET).run_until("blocks.1.fc.weight")
    assert NET.tensors[NET.nodes[frame.running].leaf].name == "blocks.1.fc.weight"


@pytest.mark.parametrize("written", ["blocks.1.fc.weight.grad", "blocks.1.fc.weight.grad +="])
def test_run_until_finds_a_gradient_as_texts_write_it(written):
    frame = Cursor(NET).run_until(written)
    assert NET.tensors[NET.nodes[frame.running].leaf].name == "blocks.1.fc.weight"


def test_run_until_finds_the_call_that_made_a_variable():
    recording = al.record_step(lambda: _named())
    cursor = Cursor(recording)
    cursor.run_until("hidden")
    assert recording.ops[cursor.event.op].name == "exp"


def _named():
    x = torch.ones(2, requires_grad=True)
    hidden = x.exp()
    hidden.sum().backward()


def test_run_until_takes_a_module_where_no_name_fits():
    cursor = Cursor(NET)
    cursor.run_until("blocks.2")
    assert NET.ops[cursor.event.op].module == "blocks.2.fc"


def test_run_until_module_takes_what_runs_inside_it():
    cursor = Cursor(NET)
    cursor.run_until(module="blocks.2")
    assert NET.ops[cursor.event.op].module == "blocks.2.fc"


def test_run_until_module_takes_a_glob():
    cursor = Cursor(NET)
    cursor.run_until(module="*.act")
    assert NET.ops[cursor.event.op].module == "blocks.0.act"


def test_all_conditions_must_hold():
    cursor = Cursor(NET)
    frame = cursor.run_until("Relu*", module="blocks.1")
    assert NET.nodes[frame.running].module == "blocks.1.act"


def test_run_until_accumulate_stops_where_a_grad_grew():
    frame = Cursor(NET).run_until(accumulate=True)
    assert isinstance(frame.event, GradAccumulated)


def test_run_until_accumulate_of_one_leaf():
    frame = Cursor(NET).run_until("blocks.0.fc.bias", accumulate=True)
    assert NET.tensors[frame.event.leaf].name == "blocks.0.fc.bias"


def growing_net(gain):
    build = Builder()
    h = build.tensor("x", leaf=True)
    for _ in range(4):
        h = build.op("sin", h)
    build.backward(h, gain=gain)
    return build.recording()


def test_norm_over_stops_at_the_first_value_above():
    frame = Cursor(growing_net(10.0)).run_until("Sin*", norm_over=99.0)
    assert isinstance(frame.event, NodeFinished)
    assert frame.event.grad_inputs[0].norm == 100.0


@pytest.mark.parametrize("condition", [{"nonfinite": True}, {"norm_over": 1e9}])
def test_a_nan_stops_both_value_conditions(condition):
    frame = Cursor(growing_net(float("nan"))).run_until(**condition)
    assert isinstance(frame.event, NodeFinished)
    assert len(frame.done) == 1


def test_a_predicate_sees_frames():
    frame = Cursor(NET).run_until(predicate=lambda frame: len(frame.done) == 3)
    assert len(frame.done) == 3


def test_an_unknown_name_offers_the_nearest_and_stays():
    cursor = Cursor(NET)
    cursor.seek(4)
    with pytest.raises(NodeNotFoundError, match="ReluBackward0") as caught:
        cursor.run_until("ReluBakward")
    assert caught.value.facts["near"][0] == "ReluBackward0"
    assert cursor.index == 4


def test_an_unknown_module_offers_the_nearest():
    with pytest.raises(NodeNotFoundError, match=r"blocks\.0"):
        Cursor(NET).run_until(module="block.0")


@pytest.mark.parametrize("condition", [{"target": "1234"}, {"module": "zzzz"}], ids=str)
def test_a_name_that_is_like_none_shows_what_names_there_are(condition):
    with pytest.raises(NodeNotFoundError, match=r"None is like it; there are \w+") as caught:
        Cursor(NET).run_until(**condition)
    assert caught.value.facts["near"] == ()
    assert "Use one of these" in str(caught.value)


def test_a_name_in_a_recording_without_names_sends_to_other_conditions():
    with pytest.raises(NodeNotFoundError, match=r"There are none.*\nUse a condition"):
        Cursor(Recording()).run_until("linear")


def test_a_match_behind_the_cursor_is_named():
    cursor = Cursor(NET)
    cursor.seek(len(NET.events))
    with pytest.raises(NodeNotFoundError, match=r"behind .*\n.*seek\(0\)"):
        cursor.run_until("linear")
    assert cursor.index == len(NET.events)


def test_a_predicate_that_raises_leaves_the_cursor():
    cursor = Cursor(NET)
    with pytest.raises(ZeroDivisionError):
        cursor.run_until(predicate=lambda frame: 1 / 0)
    assert cursor.index == 0


def test_no_condition_is_an_error_that_says_how():
    with pytest.raises(StepError, match="nonfinite=True"):
        Cursor(NET).run_until()


def test_norm_over_zero_is_a_condition():
    assert Cursor(NET).run_until(norm_over=0).index == 1
