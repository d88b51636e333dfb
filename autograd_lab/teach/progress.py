"""Turn verdicts into a small file beside the notebook, and the file into a table.

No network, no names, no times: the file holds what was answered and whether it was right. It is
replaced as a whole, so that a killed kernel leaves the old file or the new one; a damaged file is
kept aside, never thrown away. Two kernels that write at the very same moment may lose one of the
two entries.
"""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

from autograd_lab.errors import ProgressFileError
from autograd_lab.teach.verdict import Verdict

__all__ = ["Progress", "progress", "remember"]

_FILE = "autograd_lab_progress.json"
_FORMAT = "autograd_lab progress 1"
_COLUMNS = {"kind": str, "solved": bool, "last": str, "tries": int}
_unwritten: dict[Path, str] = {}  # folder -> why its file can't be written; `show` says so


class Progress:
    """The progress file of the folder that the notebook runs in. Its text is that of `show()`."""

    @property
    def path(self) -> Path:
        """`autograd_lab_progress.json` in the current folder: in Jupyter, the notebook's."""
        return Path.cwd() / _FILE

    def __repr__(self) -> str:
        return repr(self.show())

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()

    def show(self) -> Verdict:
        """One line per exercise and prediction, by name; ok when all exercises are solved."""
        document = _read_own(self.path)
        entries = document["entries"]
        tasks = [entry["solved"] for entry in entries.values() if entry["kind"] == "exercise"]
        guesses = [entry["solved"] for entry in entries.values() if entry["kind"] == "prediction"]
        width = max(map(len, entries), default=0)
        lines = [
            f"{sum(tasks)} of {len(tasks)} exercises solved, "
            f"{sum(guesses)} of {len(guesses)} predictions right"
        ]
        for name, entry in sorted(entries.items()):
            tries = f"{entry['tries']} {'try' if entry['tries'] == 1 else 'tries'}"
            state = "done" if entry["solved"] else "open"
            lines.append(f"{state}  {name:{width}}  {tries:8}  {entry['last']}")
        lines += filter(None, (document.get("note"), _unwritten.get(self.path.parent)))
        return Verdict(name="progress", text="\n".join(lines), ok=bool(tasks) and all(tasks))

    def export(self, path: str | Path) -> Verdict:
        """Write all entries to a .csv or .json file.

        Raises ProgressFileError when that can't be done.
        """
        path, entries = Path(path), _read_own(self.path)["entries"]
        if path.suffix == ".json":
            text = _to_json({"format": _FORMAT, "entries": entries})
        elif path.suffix == ".csv":
            text = _to_csv(entries)
        else:
            message = (
                f"Progress was not exported. {path.name!r} ends neither in .csv nor in .json. "
                "Choose one of the two."
            )
            raise ProgressFileError(message, path=path)
        try:
            _replace(path, text)
        except OSError as error:
            message = (
                f"Progress was not exported. {path} can't be written ({type(error).__name__}). "
                "Choose another folder."
            )
            raise ProgressFileError(message, path=path) from error
        text = f"{len(entries)} entries written to {path.name}"
        return Verdict(name="progress", text=text, ok=True)

    def load(self, path: str | Path) -> Verdict:
        """Merge an exported .json file, as after a lost server; what is solved stays solved.

        Raises ProgressFileError for a missing, damaged or foreign file; the own file is untouched
        then.
        """
        try:
            entries = _from_json(Path(path).read_text(encoding="utf-8"))["entries"]
        except (OSError, ValueError) as error:
            message = (
                f"Progress was not loaded. {path} is no progress file ({type(error).__name__}). "
                "Give a .json file that progress().export wrote."
            )
            raise ProgressFileError(message, path=Path(path)) from error
        document = _read_own(self.path)
        for name, entry in entries.items():
            mine = document["entries"].get(name)
            if mine is None or entry["solved"] > mine["solved"]:
                document["entries"][name] = entry
            document["entries"][name]["tries"] = max(entry["tries"], mine["tries"] if mine else 0)
        _write_own(self.path, document)
        text = f"{len(entries)} entries loaded from {Path(path).name}"
        return Verdict(name="progress", text=text, ok=True)

    def reset(self) -> Verdict:
        """Start again; the old file is kept beside as .bak."""
        count = len(_read_own(self.path)["entries"])
        if self.path.exists():
            self.path.replace(_aside(self.path))
        return Verdict(name="progress", text=f"{count} entries forgotten", ok=True)


def progress() -> Progress:
    """Return the learner's progress in this folder: `.show() .export() .load() .reset()`."""
    return Progress()


def remember(kind: str, verdict: Verdict, *, tried: bool) -> None:
    """Keep a verdict; `tried` counts it as one more try.

    Never raises: a full disk or a read-only folder must not stop a lesson. `show` tells it.
    """
    try:
        path = Path.cwd() / _FILE
    except OSError:  # the folder was deleted under the running kernel
        return
    document = _read_own(path)
    old = document["entries"].get(verdict.name, {"solved": False, "tries": 0})
    document["entries"][verdict.name] = {
        "kind": kind,
        "solved": old["solved"] or verdict.ok,
        "last": verdict.text.partition("\n")[0],
        "tries": old["tries"] + tried,
    }
    _write_own(path, document)


def _read_own(path: Path) -> dict[str, Any]:
    """The file's document, empty where there is none; a damaged file is moved aside."""
    try:
        return _from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"format": _FORMAT, "entries": {}}
    except (OSError, ValueError):
        aside = _aside(path)
        note = f"the progress file was damaged: it is kept as {aside.name}, a new one is begun"
        document = {"format": _FORMAT, "entries": {}, "note": note}
        try:
            path.replace(aside)
        except OSError:
            document["note"] = "the progress file can't be read"
            return document
        _write_own(path, document)
        return document


def _write_own(path: Path, document: dict[str, Any]) -> None:
    try:
        _replace(path, _to_json(document))
        _unwritten.pop(path.parent, None)
    except OSError as error:
        reason = f"this folder can't be written to ({type(error).__name__})"
        _unwritten[path.parent] = f"progress is not kept: {reason}"


def _from_json(text: str) -> dict[str, Any]:
    """Read a document and check every field. Raises ValueError."""
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        message = f"the format is not {_FORMAT!r}"
        raise ValueError(message)
    entries = document.get("entries")
    if not isinstance(entries, dict) or not all(map(_is_entry, entries.values())):
        message = f"an entry lacks one of the fields {list(_COLUMNS)}"
        raise ValueError(message)
    return document


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and all(
        type(entry.get(key)) is kind for key, kind in _COLUMNS.items()
    )


def _to_json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _to_csv(entries: dict[str, dict[str, Any]]) -> str:
    """One row per entry; an apostrophe keeps a spreadsheet from running = + - @ as a formula."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["name", *_COLUMNS])
    for name, entry in sorted(entries.items()):
        cells = [name, *(entry[key] for key in _COLUMNS)]
        rows.writerow("'" + cell if str(cell).startswith(tuple("=+-@")) else cell for cell in cells)
    return text.getvalue()


def _replace(path: Path, text: str) -> None:
    """Write beside, then rename: the file is never half written."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _aside(path: Path) -> Path:
    """A free name: .bak, then .bak2, .bak3, ..."""
    number = 1
    while (aside := path.with_name(f"{path.name}.bak{number if number > 1 else ''}")).exists():
        number += 1
    return aside
