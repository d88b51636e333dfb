"""The progress file: written as a whole, damaged files kept aside, nothing raised in a lesson."""

import csv
import json
import socket
from pathlib import Path

import pytest

from autograd_lab.errors import LessonError, ProgressFileError
from autograd_lab.teach import Exercise, Verdict, lessons, progress
from autograd_lab.teach.exercises import tape
from autograd_lab.teach.progress_file import remember

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
        "last": "not yet: your answer is 2; another number is right",
        "tries": 2,
    }


def test_a_blank_is_no_try():
    solve(answer=...)
    assert entries()["cube"]["tries"] == 0


def test_tasks_outside_the_lessons_come_in_the_order_of_their_first_try():
    solve("zeta", answer=2)
    solve("alpha")
    shown = progress().show()
    assert repr(progress()) == repr(shown)
    assert shown.text.splitlines() == [
        "1 of 2 done; next: the exercise zeta",
        "",
        "other tasks: 1 of 2 done",
        "open  zeta   exercise    1 try: not yet: your answer is 2; another number is right",
        "done  alpha  exercise    correct, 1 try",
    ]
    assert not shown.ok


def test_a_lesson_is_told_whole_and_in_its_own_order():
    tape.max_rule.check(1)
    tape.two_paths.check(tape.two_paths.oracle)
    tape.overwritten.guess(64)
    tape.overwritten.reveal(48)
    assert progress().show().text.splitlines() == [
        "2 of 8 done; next: the prediction first_node in 01 A tape of your own",
        "",
        "01 A tape of your own: 2 of 8 done",
        "open  first_node      prediction  not begun",
        "open  grad_of_a       prediction  not begun",
        "done  overwritten     prediction  you expected 64; it is 48",
        "done  two_paths       exercise    correct, 1 try",
        "open  two_passes      prediction  not begun",
        "open  over_passes     exercise    not begun",
        "open  max_rule        exercise    1 try: not yet: your answer is 1; expected 3 values",
        "open  backward_order  exercise    not begun",
    ]


def test_before_the_first_answer_the_first_task_is_next():
    assert progress().show().text == (
        "nothing answered yet; next: the prediction cube_nodes in 00 Start here"
    )


def test_one_lesson_is_shown_alone_also_before_it_is_begun():
    tape.two_paths.check(tape.two_paths.oracle)
    solve()
    text = progress("00").show().text
    assert text.startswith(
        "0 of 4 done; next: the prediction cube_nodes in 00 Start here\n\n00 Start here: 0 of 4"
    )
    assert "two_paths" not in text
    assert "cube " not in text
    assert repr(progress("01")).startswith("progress: 1 of 8 done; next: the prediction first_node")


@pytest.mark.parametrize("number", ["77", "", "start"])
def test_a_lesson_that_is_not_there_is_refused_with_those_that_are(number):
    with pytest.raises(LessonError, match=rf"no lesson '{number}'. There are: 00, 01, 02"):
        progress(number)


def test_one_lesson_exports_all():
    tape.two_paths.check(tape.two_paths.oracle)
    progress("00").export("all.json")
    assert "two_paths" in Path("all.json").read_text("utf-8")


def test_a_prediction_is_done_once_a_guess_is_kept_and_not_by_its_reveal():
    tape.first_node.reveal("PowBackward")
    assert "open  first_node" in progress().show().text
    tape.first_node.guess("AddBackward")
    assert "done  first_node      prediction  guess kept: AddBackward" in progress().show().text


def test_what_was_solved_and_then_broken_says_both():
    solve()
    solve(answer=2)
    assert "done  cube  exercise    solved; the last of 2 tries: not yet" in progress().show().text


def test_a_long_verdict_is_cut_in_the_table():
    remember("exercise", Verdict(name="x", text="long " * 60), tried=True)
    assert max(map(len, progress().show().text.splitlines())) < 100


def test_all_done_has_no_next(folder, monkeypatch):
    monkeypatch.setattr(lessons, "_home", lambda: folder)  # no lessons lie there
    solve()
    assert progress().show().text.startswith("1 of 1 done\n")


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
    assert "can't be written to (No such file or directory)" in progress().show().text


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
    assert progress().export("table.csv").text == "1 entry written to table.csv"
    rows = list(csv.reader(Path("table.csv").read_text().splitlines()))
    assert rows == [
        ["name", "kind", "solved", "last", "tries"],
        ["cube", "exercise", "True", "correct", "1"],
    ]


def test_csv_keeps_a_spreadsheet_from_running_formulas():
    remember("exercise", Verdict(name="x", text="=HYPERLINK(1)"), tried=True)
    progress().export("table.csv")
    assert "'=HYPERLINK(1)" in Path("table.csv").read_text()


@pytest.mark.parametrize("name", ["table.json", "table.csv"])
def test_an_export_has_the_order_of_the_lessons(name):
    for task in (tape.max_rule, tape.two_paths):
        task.check(1)
    solve("own")
    progress().export(name)
    text = Path(name).read_text()
    assert text.index("two_paths") < text.index("max_rule") < text.index("own")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("table.xlsx", "ends neither in .csv nor in .json"),
        ("missing/table.csv", "can't be written: No such file or directory"),
    ],
)
def test_an_export_that_cannot_be_is_an_error(name, why):
    with pytest.raises(ProgressFileError, match=f"not exported.*{why}"):
        progress().export(name)


@pytest.mark.parametrize("text", [None, "{}", "no json", "[]"])
def test_loading_a_missing_or_foreign_file_is_an_error_and_changes_nothing(text):
    why = "can't be read: No such file" if text is None else "is no progress file"
    solve()
    before = FILE.read_bytes()
    if text is not None:
        Path("other.json").write_text(text)
    with pytest.raises(ProgressFileError, match=f"not loaded. other.json {why}"):
        progress().load("other.json")
    assert FILE.read_bytes() == before


def test_reset_forgets_and_keeps_the_old_file_beside():
    solve()
    assert progress().reset().text == (
        "1 entry forgotten; the old file is kept as autograd_lab_progress.json.bak"
    )
    assert progress().reset().text == "nothing to forget"
    assert "nothing answered yet" in progress().show().text
    assert Path(FILE.name + ".bak").exists()


def test_nothing_of_it_needs_a_network(monkeypatch):
    monkeypatch.setattr(socket, "socket", None)
    solve()
    progress().export("mine.json")
    assert progress().load("mine.json").ok


def test_html_escapes_what_a_file_says():
    remember("exercise", Verdict(name="x", text="<script>"), tried=True)
    assert "<script>" not in progress()._repr_html_()
