"""Turn verdicts into a small file beside the notebook, and the file into its entries.

No network, no names, no times: the file holds what was answered and whether it was right. It is
replaced as a whole, so that a killed kernel leaves the old file or the new one; a damaged file is
kept aside, never thrown away. Two kernels that write at the very same moment may lose one of the
two entries.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from autograd_lab.teach.verdict import Verdict

__all__ = [
    "COLUMNS",
    "FORMAT",
    "free_name",
    "from_json",
    "own_path",
    "read_own",
    "remember",
    "replace",
    "to_json",
    "why_unwritten",
    "write_own",
]

FORMAT = "autograd_lab progress 1"
COLUMNS = {"kind": str, "solved": bool, "last": str, "tries": int}

_FILE = "autograd_lab_progress.json"
_unwritten: dict[Path, str] = {}  # folder -> why its file can't be written


def own_path() -> Path:
    """The file of the folder that the notebook runs in."""
    return Path.cwd() / _FILE


def remember(kind: str, verdict: Verdict, *, tried: bool) -> None:
    """Keep a verdict; `tried` counts it as one more try.

    Never raises: a full disk or a read-only folder must not stop a lesson. The table tells it.
    """
    try:
        path = own_path()
    except OSError:  # the folder was deleted under the running kernel
        return
    document = read_own(path)
    old = document["entries"].get(verdict.name, {"solved": False, "tries": 0})
    document["entries"][verdict.name] = {
        "kind": kind,
        "solved": old["solved"] or verdict.ok,
        "last": verdict.text.partition("\n")[0],
        "tries": old["tries"] + tried,
    }
    write_own(path, document)


def read_own(path: Path) -> dict[str, Any]:
    """The file's document, empty where there is none; a damaged file is moved aside."""
    try:
        return from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"format": FORMAT, "entries": {}}
    except (OSError, ValueError):
        aside = free_name(path)
        note = f"the progress file was damaged: it is kept as {aside.name}, a new one is begun"
        document = {"format": FORMAT, "entries": {}, "note": note}
        try:
            path.replace(aside)
        except OSError:
            document["note"] = "the progress file can't be read"
            return document
        write_own(path, document)
        return document


def write_own(path: Path, document: dict[str, Any]) -> None:
    """Write the document, or remember why that failed."""
    try:
        replace(path, to_json(document))
        _unwritten.pop(path.parent, None)
    except OSError as error:
        reason = f"this folder can't be written to ({error.strerror or error})"
        _unwritten[path.parent] = f"progress is not kept: {reason}"


def why_unwritten(path: Path) -> str | None:
    """Words when the last attempt to write the file failed."""
    return _unwritten.get(path.parent)


def from_json(text: str) -> dict[str, Any]:
    """Read a document and check every field. Raises ValueError."""
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        message = f"the format is not {FORMAT!r}"
        raise ValueError(message)
    entries = document.get("entries")
    if not isinstance(entries, dict) or not all(map(_is_entry, entries.values())):
        message = f"an entry lacks one of the fields {list(COLUMNS)}"
        raise ValueError(message)
    return document


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and all(
        type(entry.get(key)) is kind for key, kind in COLUMNS.items()
    )


def to_json(document: dict[str, Any]) -> str:
    """Return the document's text; its entries stay in the order in which they were first tried."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def replace(path: Path, text: str) -> None:
    """Write beside, then rename: the file is never half written."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def free_name(path: Path) -> Path:
    """A free name: .bak, then .bak2, .bak3, ..."""
    number = 1
    while (aside := path.with_name(f"{path.name}.bak{number if number > 1 else ''}")).exists():
        number += 1
    return aside
