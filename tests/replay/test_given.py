"""What is no Recording is refused with the way to one."""

from __future__ import annotations

import pathlib

import pytest

import autograd_lab as al
from autograd_lab.errors import RecordingError
from autograd_lab.replay import Cursor, frame_at, gradient_flow
from autograd_lab.show import full_text, to_html
from tests.replay.building import perceptron

NET = perceptron(1)


def save(recording):
    to_html(recording, "never.html")


@pytest.mark.parametrize("verb", [gradient_flow, Cursor, full_text, save])
@pytest.mark.parametrize(
    ("given", "use"),
    [
        (al.record(), r"a Recorder.*\n.*\nUse rec.recording"),
        (Cursor(NET), r"a Cursor.*\n.*\nUse cursor.recording"),
        (frame_at(NET, 0), r"a Frame.*\n.*\nUse frame.recording"),
        ("step.json", r"a str.*\n.*\nUse load_recording\('step.json'\)"),
        (pathlib.PurePosixPath("step.json"), r"a .*\n.*\nUse load_recording\('step.json'\)"),
        (3, r"an int.*\n.*\nUse rec.recording"),
        (None, "a NoneType"),
    ],
    ids=["recorder", "cursor", "frame", "str", "path", "int", "None"],
)
def test_what_is_no_recording_is_refused_with_the_way_to_one(verb, given, use):
    with pytest.raises(RecordingError, match=rf"needs a Recording and was given {use}"):
        verb(given)
    assert not pathlib.Path("never.html").exists()
