from dataclasses import replace

import pytest

from autograd_lab.replay import Cursor, frame_at
from autograd_lab.show import describe
from tests.show import recordings


def test_a_frame_says_what_runs_by_which_rule_and_what_waits():
    text = describe(frame_at(recordings.scalar(), 7))
    assert text == (
        "Step 7 of 11, backward 1: MulBackward0 is finished\n"
        "  rule     self: g * other\n"
        "           other: g * self\n"
        "  source   lesson.py:2  y = x * x + x\n"
        "  received 1\n"
        "  returns  3\n"
        "           3\n"
        "Done so far: 2 forward calls, 2 backward nodes of pass 1\n"
        "Waiting: none\n"
        "Ready to run: x.grad +=\n"
        "Saved for backward: nothing\n"
        ".grad exists: none"
    )


def test_a_node_that_has_some_gradients_is_waiting():
    assert "Waiting: x.grad += has 1 of 3 gradients" in describe(frame_at(recordings.scalar(), 5))


def test_saved_tensors_and_their_bytes_are_named():
    text = describe(frame_at(recordings.scalar(), 2))
    assert "Saved for backward: 2 tensors, 4 bytes (MulBackward0 self, MulBackward0 other)" in text


def test_grads_that_exist_are_named_with_their_value():
    assert ".grad exists: x = 7" in describe(frame_at(recordings.scalar(), 9))


def test_a_dtype_that_is_not_float32_is_said():
    base = recordings.scalar()
    half = tuple(replace(ref, dtype="float16") if ref.id == 3 else ref for ref in base.tensors)
    text = describe(frame_at(replace(base, tensors=half), 6))
    assert "receives scalar float16 1" in text


def test_a_cursor_reads_as_its_frame():
    cursor = Cursor(recordings.scalar())
    cursor.seek(6)
    assert repr(cursor) == repr(cursor.frame)


@pytest.mark.parametrize("name", list(recordings.ALL))
def test_every_frame_of_every_recording_has_a_text(name):
    recording = recordings.ALL[name]
    cursor = Cursor(recording)
    for step in range(0, len(cursor), max(len(cursor) // 40, 1)):
        text = describe(cursor.seek(step))
        assert text.startswith(f"Step {step} of {len(recording.events)}")


def test_the_plain_rule_stands_before_torchs_formula():
    recording = recordings.scalar()
    nodes = [replace(node, rule="d = g * (the other factor)") for node in recording.nodes]
    text = describe(frame_at(replace(recording, nodes=tuple(nodes)), 7))
    assert (
        "  rule     d = g * (the other factor)\n"
        "  in torch self: g * other\n"
        "           other: g * self\n"
    ) in text


def test_a_call_that_checkpoint_makes_again_says_so():
    base = recordings.scalar()
    again = replace(base, ops=(replace(base.ops[0], recomputed=True), *base.ops[1:]))
    line = describe(frame_at(again, 1)).splitlines()[0]
    assert line == "Step 1 of 11, forward: called mul(x, x) again, by checkpoint"
