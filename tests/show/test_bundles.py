import base64
import re

import pytest

from autograd_lab.replay import Cursor, frame_at
from autograd_lab.show import mimebundle, static_view
from tests.show import flows, recordings


@pytest.mark.parametrize("name", list(recordings.ALL))
def test_a_recording_shows_text_and_static_html(name):
    recording = recordings.ALL[name]
    data, _ = recording._repr_mimebundle_()
    assert data["text/plain"] == repr(recording)
    assert data["text/html"].startswith('<div class="autograd-lab-static">')


def test_the_html_survives_an_untrusted_notebook():
    shown = mimebundle(recordings.scalar())[0]["text/html"]
    assert not re.search(r"<svg|<style|<script|<iframe", shown)
    picture = re.search(r'<img alt="([^"]+)"[^>]*src="data:image/svg\+xml;base64,([^"]+)"', shown)
    assert "2 forward calls" in picture[1]
    assert base64.b64decode(picture[2]).startswith(b"<svg xmlns")
    assert "<table" in shown


def test_names_from_the_program_are_escaped_in_html():
    shown = mimebundle(recordings.ALL["hostile"])[0]["text/html"]
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown


def test_a_frame_and_a_cursor_show_the_same():
    cursor = Cursor(recordings.scalar())
    cursor.seek(6)
    assert cursor._repr_mimebundle_() == frame_at(recordings.scalar(), 6)._repr_mimebundle_()
    assert "at step 6 of 11" in cursor._repr_mimebundle_()[0]["text/html"]


def test_a_gradient_flow_shows_a_picture_with_alt_text():
    data, metadata = flows.steady(10, 0.3)._repr_mimebundle_()
    assert data["text/plain"].startswith("Gradient flow of pass 1, 20 nodes, 20 leaves: ")
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert "decades" in metadata["image/png"]["alt"]
    picture = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', data["text/html"])
    assert b"prefers-color-scheme" in base64.b64decode(picture[1])


def test_a_wide_graph_is_scrolled_so_that_its_text_stays_large():
    shown = mimebundle(recordings.scalar())[0]["text/html"]
    assert re.search(r'<div style="[^"]*overflow:auto">\s*<img [^>]*max-width:none', shown)


def test_an_empty_flow_shows_text_only():
    assert set(flows.AWKWARD["empty"]._repr_mimebundle_()[0]) == {"text/plain"}


def test_a_picture_that_would_be_too_large_is_left_out(monkeypatch):
    monkeypatch.setattr(static_view, "PICTURE_NBYTES", 10)
    shown = mimebundle(recordings.scalar())[0]["text/html"]
    assert "<img" not in shown
    assert "to_html" in shown


def test_a_long_chain_stays_small_in_a_notebook():
    assert len(mimebundle(recordings.chain(2000))[0]["text/html"]) < 100_000
