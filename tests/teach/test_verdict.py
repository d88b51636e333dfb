"""A verdict says the same in text and in HTML; what came from the user is escaped."""

import dataclasses
import re

import pytest

from autograd_lab.teach import Verdict


def words(html_text):
    return re.sub(r"<[^>]*>", "", html_text)


def test_text_is_name_and_text():
    assert repr(Verdict(name="cube", text="not yet: a hint")) == "cube: not yet: a hint"


def test_html_escapes_name_text_and_details():
    shown = Verdict(name="<b>", text="<i>\n<u>", details="<s>").html
    assert not re.search("<[bisu]>", shown)
    assert "&lt;b&gt;" in shown


def test_long_lines_break_between_words():
    assert "white-space:pre-wrap;word-break:normal" in Verdict(name="n", text="a\nb").html


@pytest.mark.parametrize("ok", [True, False])
def test_html_holds_the_words_of_the_text(ok):
    verdict = Verdict(name="cube", text="headline", ok=ok)
    assert "cube: headline" in words(verdict.html)


def test_right_and_wrong_differ_by_a_mark_and_not_only_by_colour():
    right, wrong = (words(Verdict(name="n", text="t", ok=ok).html) for ok in (True, False))
    assert right != wrong


def test_open_is_neither_right_nor_wrong_by_mark_and_by_colour():
    looks = [
        Verdict(name="n", text="t"),
        Verdict(name="n", text="t", ok=True),
        Verdict(name="n", text="t", wrong=True),
    ]
    assert [words(look.html)[0] for look in looks] == ["○", "✓", "✗"]
    assert len({re.search("solid (#\\w+)", look.html)[1] for look in looks}) == 3


def test_details_are_in_html_and_not_in_what_a_notebook_stores():
    verdict = Verdict(name="setup", text="ok", details="torch 2.13.0")
    assert "2.13.0" in verdict.html
    assert "2.13.0" not in repr(verdict) + verdict._repr_html_()


def test_a_verdict_does_not_change():
    verdict = Verdict(name="n", text="t")
    with pytest.raises(dataclasses.FrozenInstanceError):
        verdict.ok = True
