from autograd_lab.show.recording_tables import saved_table
from autograd_lab.show.tables import Table, column, fold, html_table, shorten, text_table
from autograd_lab.show.words import Words
from tests.replay.building import Builder
from tests.show.awkward import HOSTILE

COLUMNS = (column("#", number=True), column("name"), column("empty"))


def table_of(length):
    rows = tuple((str(at), f"row {at}", "") for at in range(length))
    return Table(caption="Rows", columns=COLUMNS, rows=rows)


def test_columns_are_aligned_and_empty_ones_left_out():
    assert text_table(table_of(2)) == ["  #  name", "  0  row 0", "  1  row 1"]


def test_the_middle_of_a_long_table_is_counted():
    lines = text_table(table_of(100), keep=7)
    assert len(lines) == 1 + 7
    assert lines[5].strip() == "... 94 more"
    assert lines[-1].endswith("row 99")


def test_folding_keeps_start_and_end():
    assert fold(10, None) == (10, 0)
    assert fold(10, 10) == (10, 0)
    assert fold(10, 7) == (4, 2)


def test_long_names_lose_the_end_that_matters_less():
    assert shorten("block.0.attention.weight", 10) == "block.0.a…"
    assert shorten("block.0.attention.weight", 10, keep_end=True) == "…on.weight"


def test_html_cells_are_escaped_and_headers_have_scopes():
    rows = ((HOSTILE, "1", ""),)
    shown = html_table(Table(caption=HOSTILE, columns=COLUMNS, rows=rows))
    assert "<script" not in shown
    assert '<th scope="col"' in shown
    assert '<th scope="row"' in shown
    assert shown.startswith("<table><caption>")


def test_a_line_break_in_a_name_does_not_break_the_table():
    broken = Table(caption="Rows", columns=COLUMNS, rows=(("1", "a\nb", ""),))
    assert text_table(broken)[1] == "  1  a b"


def test_saved_tensors_that_share_memory_say_so_and_an_address_that_comes_again_does_not():
    build = Builder()
    for _ in range(2):
        h = build.op("relu", build.parameter("w"), saved=[("result", 100, 1)])
        build.backward(build.op("linear", h, saved=[("mat1", 100, 1)]))
    recording = build.recording()
    told = [row[-1] for row in saved_table(recording, Words(recording)).rows]
    assert told == ["", "same memory as ReluBackward0 result"] * 2
