"""A ledger's text and table say the same, and escape what came from the program."""

from __future__ import annotations

import inspect

from autograd_lab.recording import SavedEntry, SavedLedger
from autograd_lab.show import describe
from autograd_lab.show.ledger_text import ledger_html, ledger_table

SMALL = {"shape": (2,), "dtype": "float32", "device": "cpu", "nbytes": 8, "version": 0}
LEDGER = SavedLedger(
    entries=(
        SavedEntry(
            path="saved['x']",
            role="input",
            origin="input 'x'",
            storage=0,
            storage_nbytes=8,
            **SMALL,
        ),
        SavedEntry(
            path="saved['row']",
            role="input",
            origin="view of input 'x'",
            storage=0,
            storage_nbytes=8,
            **SMALL,
        ),
        SavedEntry(
            path="saved['mid']",
            role="intermediate",
            kind="Parameter",
            storage=1,
            storage_nbytes=4000,
            **SMALL | {"device": "cuda:0"},
        ),
        SavedEntry(path="saved['s']", role="intermediate", dtype="float32", device="cpu"),
        SavedEntry(path="saved['k']", role="constant", kind="float", text="2.0"),
        SavedEntry(path="saved['box']", role="constant", kind="Box"),
    )
)


def test_the_text_is_a_headline_and_a_line_a_leaf():
    assert repr(LEDGER) == inspect.cleandoc(
        """
        Saved for backward: 4 tensors, 2 constants; 4.01 kB kept alive, 4 kB by intermediates, 1 tensor of unknown size left out
          path          what               shape    dtype    device    bytes  keeps alive  version  note
          saved['x']    input 'x'          (2,)     float32          8 bytes      8 bytes        0
          saved['row']  view of input 'x'  (2,)     float32          8 bytes      8 bytes        0  same memory as saved['x']
          saved['mid']  intermediate       (2,)     float32  cuda:0  8 bytes         4 kB        0  a Parameter
          saved['s']    intermediate       unknown  float32          unknown      unknown  unknown
          saved['k']    constant 2.0
          saved['box']  constant, a Box
        """  # noqa: E501 (the table is as wide as it is)
    )


def test_an_empty_ledger_says_so():
    assert describe(SavedLedger()) == "Saved for backward: nothing"
    assert "Saved for backward: nothing" in ledger_html(SavedLedger())


def test_a_long_ledger_is_folded():
    many = SavedLedger(entries=LEDGER.entries * 40)
    lines = describe(many).splitlines()
    assert len(lines) <= 60
    assert "... 191 more; .entries has all" in "\n".join(lines)


def test_html_has_the_cells_of_the_text_and_escapes_them():
    evil = SavedEntry(path="saved['<script>']", role="constant", kind="<b>")
    shown = ledger_html(SavedLedger(entries=(*LEDGER.entries, evil)))
    for row in ledger_table(LEDGER).rows:
        assert all(cell.replace("'", "&#x27;") in shown for cell in row)
    assert "<script" not in shown
    assert "<b>" not in shown
    assert shown.startswith('<div class="autograd-lab-static">')


def test_a_ledger_of_constants_counts_no_memory():
    assert describe(SavedLedger(entries=LEDGER.entries[-1:])).splitlines()[0] == (
        "Saved for backward: no tensors, 1 constant"
    )


def test_a_notebook_shows_the_table():
    ledger = SavedLedger(entries=(SavedEntry(path="['k']", role="constant", kind="int"),))
    data, _ = ledger._repr_mimebundle_()
    assert data["text/html"] == ledger_html(ledger)
