"""Turn the entries of the progress file into a table in the order of the lessons, and exports."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from autograd_lab.errors import LessonError, ProgressFileError
from autograd_lab.teach.progress_file import (
    COLUMNS,
    FORMAT,
    free_name,
    from_json,
    own_path,
    read_own,
    replace,
    to_json,
    why_unwritten,
    write_own,
)
from autograd_lab.teach.syllabus import Lesson, Task, syllabus
from autograd_lab.teach.verdict import Verdict

__all__ = ["Progress", "progress"]

Entries = dict[str, dict[str, Any]]

_OTHERS = "other tasks"
_LONGEST = 56  # characters of a verdict in the table


class Progress:
    """The progress file of the folder that the notebook runs in. Its text is that of `show()`.

    lesson  the number of the only lesson to show, such as "00"; None shows all that are begun

    Raises LessonError where there is no such lesson.
    """

    def __init__(self, lesson: str | None = None) -> None:
        self.lesson = None if lesson is None else _numbered(lesson, syllabus()).title

    @property
    def path(self) -> Path:
        """`autograd_lab_progress.json` in the current folder: in Jupyter, the notebook's."""
        return own_path()

    def __repr__(self) -> str:
        return repr(self.show())

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()

    def show(self) -> Verdict:
        """How much is done, what is next, and a line for each task of the lessons begun.

        An exercise is done when it is solved, a prediction when a guess is kept, right or wrong.
        ok when all exercises are solved.
        """
        document = read_own(self.path)
        entries: Entries = document["entries"]
        known = syllabus()
        if self.lesson is None:
            begun = [lesson for lesson in known if any(t.name in entries for t in lesson.tasks)]
            begun += _others(entries, known)
        else:
            begun = known = [lesson for lesson in known if lesson.title == self.lesson]
        lines = [_headline(begun, known, entries)]
        for lesson in begun:
            lines += ["", f"{lesson.title}: {_count(lesson.tasks, entries)}"]
            lines += _rows(lesson.tasks, entries)
        notes = filter(None, (document.get("note"), why_unwritten(self.path)))
        lines += [line for note in notes for line in ("", note)]
        exercises = [t for lesson in begun for t in lesson.tasks if t.kind == "exercise"]
        ok = bool(exercises) and all(_is_done(task, entries) for task in exercises)
        return Verdict(name="progress", text="\n".join(lines), ok=ok)

    def export(self, path: str | Path) -> Verdict:
        """Write all entries, in the order of the lessons, to a .csv or .json file.

        Raises ProgressFileError when that can't be done.
        """
        path, entries = Path(path), _in_order(read_own(self.path)["entries"])
        if path.suffix == ".json":
            text = to_json({"format": FORMAT, "entries": entries})
        elif path.suffix == ".csv":
            text = _to_csv(entries)
        else:
            message = (
                f"Progress was not exported. {path.name!r} ends neither in .csv nor in .json. "
                "Choose one of the two."
            )
            raise ProgressFileError(message, path=path)
        try:
            replace(path, text)
        except OSError as error:
            message = (
                f"Progress was not exported. {path} can't be written: "
                f"{error.strerror or type(error).__name__}. Choose another folder."
            )
            raise ProgressFileError(message, path=path) from error
        return self._done(f"{_entry_count(entries)} written to {path.name}")

    def load(self, path: str | Path) -> Verdict:
        """Merge an exported .json file, as after a lost server; what is solved stays solved.

        Raises ProgressFileError for a missing, damaged or foreign file; the own file is untouched
        then.
        """
        path = Path(path)
        try:
            entries = from_json(path.read_text(encoding="utf-8"))["entries"]
        except (OSError, ValueError) as error:
            why = "is no progress file" if isinstance(error, ValueError) else "can't be read"
            reason = f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
            message = (
                f"Progress was not loaded. {path} {why}{reason}. "
                "Give a .json file that progress().export wrote."
            )
            raise ProgressFileError(message, path=path) from error
        document = read_own(self.path)
        for name, entry in entries.items():
            mine = document["entries"].get(name)
            if mine is None or entry["solved"] > mine["solved"]:
                document["entries"][name] = entry
            document["entries"][name]["tries"] = max(entry["tries"], mine["tries"] if mine else 0)
        write_own(self.path, document)
        return self._done(f"{_entry_count(entries)} loaded from {path.name}")

    def reset(self) -> Verdict:
        """Start again; the old file is kept beside as .bak."""
        forgotten = _entry_count(read_own(self.path)["entries"])
        if not self.path.exists():
            return self._done("nothing to forget")
        aside = self.path.replace(free_name(self.path))
        return self._done(f"{forgotten} forgotten; the old file is kept as {aside.name}")

    def _done(self, text: str) -> Verdict:
        return Verdict(name="progress", text=text, ok=True)


def progress(lesson: str | None = None) -> Progress:
    """Return the learner's progress in this folder: `.show() .export() .load() .reset()`.

    lesson  show only this lesson, such as "00"; exports always hold all

    Raises LessonError where there is no such lesson.
    """
    return Progress(lesson)


def _numbered(number: str, known: list[Lesson]) -> Lesson:
    for lesson in known:
        if lesson.title.split()[0] == number:
            return lesson
    numbers = ", ".join(lesson.title.split()[0] for lesson in known) or "none at all"
    message = f"Progress was not shown. There is no lesson {number!r}. There are: {numbers}."
    raise LessonError(message, lesson=number)


def _others(entries: Entries, known: list[Lesson]) -> list[Lesson]:
    """What was answered outside the lessons, as one more lesson."""
    names = {task.name for lesson in known for task in lesson.tasks}
    tasks = [Task(name=k, kind=entry["kind"]) for k, entry in entries.items() if k not in names]
    return [Lesson(title=_OTHERS, tasks=tuple(tasks))] if tasks else []


def _headline(begun: list[Lesson], known: list[Lesson], entries: Entries) -> str:
    """`3 of 6 done; next: the exercise max_rule in 01 A tape of your own`."""
    tasks = [task for lesson in begun for task in lesson.tasks]
    count = _count(tasks, entries) if tasks else "nothing answered yet"
    todo = [
        f"the {task.kind} {task.name}" + (f" in {lesson.title}" if lesson.title != _OTHERS else "")
        for lesson in [*begun, *known]
        for task in lesson.tasks
        if not _is_done(task, entries)
    ]
    return f"{count}; next: {todo[0]}" if todo else count


def _count(tasks: Iterable[Task], entries: Entries) -> str:
    done = [_is_done(task, entries) for task in tasks]
    return f"{sum(done)} of {len(done)} done"


def _is_done(task: Task, entries: Entries) -> bool:
    entry = entries.get(task.name)
    if entry is None:
        return False
    return entry["solved"] or (task.kind == "prediction" and entry["tries"] > 0)


def _rows(tasks: Iterable[Task], entries: Entries) -> list[str]:
    rows = [(task, "done" if _is_done(task, entries) else "open") for task in tasks]
    width = max(len(task.name) for task, _ in rows)
    return [
        f"{state}  {task.name:{width}}  {task.kind:10}  {_story(task, entries.get(task.name))}"
        for task, state in rows
    ]


def _story(task: Task, entry: dict[str, Any] | None) -> str:
    """What became of a task, in one line."""
    if entry is None:
        return "not begun"
    last, tries = entry["last"], entry["tries"]
    cut = last if len(last) <= _LONGEST else f"{last[:_LONGEST]} …"
    if task.kind == "prediction" or not tries:
        return cut
    count = "1 try" if tries == 1 else f"{tries} tries"
    if entry["solved"] and not last.startswith("correct"):
        return f"solved; the last of {count}: {cut}"
    return f"{cut}, {count}" if entry["solved"] else f"{count}: {cut}"


def _in_order(entries: Entries) -> Entries:
    names = [task.name for lesson in syllabus() for task in lesson.tasks]
    ordered = [name for name in names if name in entries]
    return {name: entries[name] for name in dict.fromkeys([*ordered, *entries])}


def _entry_count(entries: Entries) -> str:
    return "1 entry" if len(entries) == 1 else f"{len(entries)} entries"


def _to_csv(entries: Entries) -> str:
    """One row per entry; an apostrophe keeps a spreadsheet from running = + - @ as a formula."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["name", *COLUMNS])
    for name, entry in entries.items():
        cells = [name, *(entry[key] for key in COLUMNS)]
        rows.writerow("'" + cell if str(cell).startswith(tuple("=+-@")) else cell for cell in cells)
    return text.getvalue()
