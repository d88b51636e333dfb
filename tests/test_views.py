"""A record shows itself through `autograd_lab.show`, found by name."""

import subprocess
import sys

import pytest

from autograd_lab import recording, replay, show, views

RECORDS = [recording.Recording(), replay.Cursor(recording.Recording()).frame]


@pytest.mark.parametrize("record", RECORDS, ids=["recording", "frame"])
def test_describe_is_the_text_of_show(record):
    assert views.describe(record) == show.describe(record) == repr(record)


@pytest.mark.parametrize("record", RECORDS, ids=["recording", "frame"])
def test_mimebundle_is_the_bundle_of_show_and_holds_the_same_text(record):
    data, metadata = views.mimebundle(record)
    assert (data, metadata) == show.mimebundle(record)
    assert data["text/plain"] == repr(record)


def test_a_recording_hands_jupyter_its_bundle_whatever_is_asked_for():
    record = recording.Recording()
    assert record._repr_mimebundle_(include=["text/plain"], exclude=None) == views.mimebundle(
        record
    )


def test_a_record_is_made_without_loading_show():
    code = (
        "import sys; from autograd_lab.recording import Recording; Recording(); "
        "assert 'autograd_lab.show' not in sys.modules; repr(Recording()); "
        "assert 'autograd_lab.show' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
