"""The progress file: written as a whole, damaged files kept aside, nothing raised in a lesson."""

import csv
import json
import socket
from pathlib import Path

import pytest

from autograd_lab.errors import ProgressFileError
from autograd_lab.teach import Exercise, Verdict, progress
from autograd_lab.teach.progress import remember

FILE = Path("autograd_lab_progress.json")


def solve(name="cube", answer=1):
    Exercise(name, make=lambda g: {}, oracle=lambda: 1).check(answer)


def entries():
    return json.loads(FILE.read_text())["entries"]


def test_the_file_lies_beside_the_notebook(folder):
    solve()
    assert [path.name for path in folder.iterdir()] == [FILE.name]
    assert progress().path == folder / FILE


def test_what_was_solved_once_stays_solved():
    solve()
    solve(answer=2)
    assert entries()["cube"] == {
        "kind": "exercise",
        "solved": True,
        "last": "not yet: another number is right",
        "tries": 2,
    }


def test_a_blank_is_no_try():
    solve(answer=...)
    assert entries()["cube"]["tries"] == 0


def test_the_table_is_sorted_and_tells_what_is_open():
    solve("zeta", answer=2)
    solve("alpha")
    shown = progress().show()
    assert repr(progress()) == repr(shown)
    assert shown.text.splitlines() == [
        "1 of 2 exercises solved, 0 of 0 predictions right",
        "done  alpha  1 try     correct",
        "open  zeta   1 try     not yet: another number is right",
    ]
    assert not shown.ok


def test_it_is_ok_when_all_exercises_are_solved():
    assert not progress().show().ok
    solve()
    assert progress().show().ok


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b'{"format": "autograd_lab progress 1", "entr',
        b"[1]",
        b'{"format": "autograd_lab progress 9", "entries": {}}',
        b'{"format": "autograd_lab progress 1", "entries": {"a": {"kind": "exercise"}}}',
        b'{"format": "autograd_lab progress 1", "entries": []}',
        b"\xff\xfe\x00",
    ],
    ids=["empty", "truncated", "list", "newer", "field missing", "no dict", "binary"],
)
def test_a_damaged_file_is_kept_aside_and_told(damage):
    FILE.write_bytes(damage)
    solve()
    assert Path(FILE.name + ".bak").read_bytes() == damage
    assert "damaged: it is kept as autograd_lab_progress.json.bak" in progress().show().text
    assert entries()["cube"]["solved"]


def test_a_second_damaged_file_does_not_replace_the_first_one_kept():
    for damage in ("first", "second"):
        FILE.write_text(damage)
        progress().show()
    kept = [Path(FILE.name + end).read_text() for end in (".bak", ".bak2")]
    assert kept == ["first", "second"]


def test_a_failed_write_leaves_the_old_file_and_no_rest(folder, monkeypatch):
    solve()
    before = FILE.read_bytes()
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "disk full")))
    solve("other")
    assert FILE.read_bytes() == before
    assert [path.name for path in folder.iterdir()] == [FILE.name]
    assert "progress is not kept" in progress().show().text


def test_a_folder_that_cannot_be_written_to_stops_no_lesson(monkeypatch):
    monkeypatch.setattr(Path, "write_text", lambda *_, **__: Path("no/such/file").touch())
    solve()
    assert "can't be written to (FileNotFoundError)" in progress().show().text


def test_a_deleted_folder_stops_no_lesson(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    solve()


def test_others_may_read_the_file_as_any_new_file_of_the_user():
    solve()
    Path("other").touch()
    assert FILE.stat().st_mode == Path("other").stat().st_mode


def test_export_and_load_after_a_lost_server(tmp_path):
    solve("cube")
    solve("open", answer=2)
    progress().export(tmp_path / "mine.json")
    FILE.unlink()
    solve("open")
    assert progress().load(tmp_path / "mine.json").ok
    assert {name: entry["solved"] for name, entry in entries().items()} == {
        "cube": True,
        "open": True,
    }


def test_csv_has_a_row_for_each_entry():
    solve()
    assert progress().export("table.csv").text == "1 entries written to table.csv"
    rows = list(csv.reader(Path("table.csv").read_text().splitlines()))
    assert rows == [
        ["name", "kind", "solved", "last", "tries"],
        ["cube", "exercise", "True", "correct", "1"],
    ]


def test_csv_keeps_a_spreadsheet_from_running_formulas():
    remember("exercise", Verdict(name="x", text="=HYPERLINK(1)"), tried=True)
    progress().export("table.csv")
    assert "'=HYPERLINK(1)" in Path("table.csv").read_text()


@pytest.mark.parametrize("name", ["table.xlsx", "missing/table.csv"])
def test_an_export_that_cannot_be_is_an_error(name):
    with pytest.raises(ProgressFileError, match="not exported"):
        progress().export(name)


@pytest.mark.parametrize("text", [None, "{}", "no json", "[]"])
def test_loading_a_missing_or_foreign_file_is_an_error_and_changes_nothing(text):
    solve()
    before = FILE.read_bytes()
    if text is not None:
        Path("other.json").write_text(text)
    with pytest.raises(ProgressFileError, match="not loaded"):
        progress().load("other.json")
    assert FILE.read_bytes() == before


def test_reset_forgets_and_keeps_the_old_file_beside():
    solve()
    assert progress().reset().text == "1 entries forgotten"
    assert "0 of 0" in progress().show().text
    assert Path(FILE.name + ".bak").exists()


def test_nothing_of_it_needs_a_network(monkeypatch):
    monkeypatch.setattr(socket, "socket", None)
    solve()
    progress().export("mine.json")
    assert progress().load("mine.json").ok


def test_html_escapes_what_a_file_says():
    remember("exercise", Verdict(name="x", text="<script>"), tried=True)
    assert "<script>" not in progress()._repr_html_()
