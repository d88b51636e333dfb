import base64
import json
import re
import zlib
from dataclasses import replace
from itertools import pairwise

import pytest

import autograd_lab as al
from autograd_lab.show import pack_of, page, to_html
from autograd_lab.show.module import module_css, module_js
from autograd_lab.show.page import page_html
from benchmarks.models import transformer
from tests.replay.building import Builder
from tests.show import recordings


def test_the_page_stands_alone():
    text = page_html(recordings.with_problems())
    assert not re.search(r"<script[^>]*src|<link|@import|https?://(?!www\.w3\.org/)", text)
    assert not re.search(r'(?:src|srcset|href)="(?!data:|#)', text)


def test_headings_are_in_order_and_there_is_one_h1():
    levels = [int(level) for level in re.findall(r"<h(\d)", page_html(recordings.with_problems()))]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_problems_come_before_the_graph():
    text = page_html(recordings.with_problems())
    assert text.index("non-finite backward") < text.index("The graph</h2>")


def test_names_from_the_program_are_escaped():
    text = page_html(recordings.ALL["hostile"])
    assert re.findall("<script[^>]*>", text) == re.findall(
        "<script[^>]*>", page_html(recordings.scalar())
    )
    assert text.count("</title></style>") == 0


def test_the_page_holds_the_whole_stepper():
    text = page_html(recordings.scalar(), step=3, hide="values")
    data = json.loads(re.search(r'id="al-stepper-data">(.*?)</script>', text)[1])
    assert base64.b64decode(data["pack"]) == pack_of(recordings.scalar(), hide="values")
    assert (data["state"]["step"], data["state"]["hide"]) == (3, "values")
    view = json.loads(zlib.decompress(base64.b64decode(data["view"])))
    assert (view["js"], view["css"]) == (module_js(), module_css())


def test_a_page_that_hides_values_hides_them_everywhere():
    text = page_html(recordings.scalar(), hide="values")
    assert "gradient norm up to" in page_html(recordings.scalar())
    assert "gradient norm up to" not in text
    assert not re.search(r"= ?12\b", re.sub(r"<script[\s\S]*?</script>", "", text))


def test_the_stepper_comes_first_and_says_what_it_needs():
    text = page_html(recordings.scalar())
    assert text.index("al-stepper-host") < text.index("The graph</h2>")
    assert "<noscript><p>The Stepper needs JavaScript" in text


def test_long_tables_are_cut_and_say_where_the_rest_is():
    assert "more rows; the Stepper above has every step" in page_html(recordings.chain(100))


def test_names_that_no_encoding_takes_are_written_with_their_numbers(tmp_path):
    recording = recordings.ALL["unprintable"]
    text = to_html(recording, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "\\udc80 \\x00\\x1b[1m" in text
    assert not re.search("[\x00-\x08]", text)


def test_bytes_saved_are_the_most_at_once_not_all_that_ever_were():
    build = Builder()
    for _ in range(3):
        y = build.op("exp", build.tensor("x", leaf=True), saved=[("result", 1000, None)])
        build.backward(y)
    assert "<b>1 kB</b> at most saved for backward at once" in page_html(build.recording())


def test_source_lines_say_what_was_recorded_on_them():
    text = page_html(recordings.scalar())
    assert "2 calls, 2 nodes, gradient norm up to 1" in text
    assert "starts backward pass 1" in text


def test_the_plain_rule_stands_before_torchs_formula():
    build = Builder()
    build.op("sin", build.tensor("x", leaf=True))
    build.nodes[-1] = replace(build.nodes[-1], rule="dx = g * cos(x)", formula="self: grad * a")
    text = page_html(build.recording())
    assert "<code>dx = g * cos(x)</code><small>self: grad * a</small>" in text


def test_a_rule_that_only_torch_writes_is_shown_as_torch_writes_it():
    assert "<small>self: g * other</small><small>other: g * self</small>" in page_html(
        recordings.scalar()
    )


def test_a_pass_that_stopped_is_not_called_healthy():
    text = page_html(recordings.failed())
    assert "looks healthy" not in text
    assert "stopped half-way" in text


def test_what_was_not_seen_is_said():
    assert "2 forward calls ran on another thread" in page_html(recordings.with_problems())


@pytest.mark.parametrize("name", list(recordings.ALL))
def test_every_recording_becomes_a_page(tmp_path, name):
    path = to_html(recordings.ALL[name], tmp_path / "page.html")
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_folders_on_the_way_are_made_and_nothing_else_is_left(tmp_path):
    path = to_html(recordings.scalar(), tmp_path / "deep" / "er" / "page.html")
    assert [entry.name for entry in path.parent.iterdir()] == ["page.html"]


def test_a_crash_leaves_the_old_page(tmp_path, monkeypatch):
    path = to_html(recordings.scalar(), tmp_path / "page.html")
    old = path.read_bytes()

    def fail(recording, **at):
        raise MemoryError

    monkeypatch.setattr(page, "page_html", fail)
    with pytest.raises(MemoryError):
        to_html(recordings.with_problems(), path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_a_chain_of_5000_calls_stays_under_three_megabytes():
    assert len(page_html(recordings.chain(5000)).encode()) < 3_000_000


@pytest.mark.slow
def test_the_page_of_a_transformers_step_stays_under_300_kilobytes():
    step = transformer()
    recording = al.record_step(lambda: step.loss().backward(), model=step.model)
    assert len(page_html(recording).encode()) < 300_000
