"""Turn the tested lessons into the learners' copy, and find the written solution of an exercise.

In a source checkout the lessons lie in `notebooks/`; a wheel carries them as
`autograd_lab/teach/lessons/`. Learners get no outputs: a stored answer under a prediction ends the
prediction. A notebook is JSON, so nbformat is not needed here.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import re
from collections.abc import Callable
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from autograd_lab.errors import LessonError

__all__ = ["find_lessons", "solution_source", "write_lessons"]

# Notebook metadata that says which lesson a copy was made from; JupyterLab keeps it when it saves.
_STAMP = "autograd_lab"


def write_lessons(
    folder: str | Path, with_outputs: bool = False, *, say: Callable[[str], object] = print
) -> list[Path]:
    """Write the learners' copy of every lesson into `folder`, and return the files written.

    The folder is made if it is missing. A file that is there is never overwritten. If it was made
    from the same lesson, nothing is written, whatever the learner did in it; if the lesson has
    changed since, the new one is written beside it as `NAME.new.ipynb`.

    with_outputs  keep the tested outputs, for reading and for teachers
    say           gets one sentence per file

    Raises LessonError when no lessons are found or the folder can't be used.
    """
    folder, written = Path(folder), []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for source in find_lessons():
            text, stamp = _copy(json.loads(source.read_text(encoding="utf-8")), with_outputs)
            target = _place(folder / source.name, stamp)
            if target is None:
                say(f"{folder / source.name}: your file is kept, the lesson is the same")
                continue
            # x: a file that has appeared meanwhile is kept
            with target.open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
            written.append(target)
            is_new = target.name != source.name
            kept = f"; your {source.name} is kept, compare the two" if is_new else ""
            say(f"{target}: written{kept}")
    except OSError as error:
        why = "it is a file" if folder.is_file() else error.strerror or type(error).__name__
        message = f"Lessons were not written. {folder} can't be used: {why}. Choose another folder."
        raise LessonError(message, folder=folder) from error
    return written


def find_lessons() -> list[Traversable]:
    """Return the lessons' notebooks in the order of their numbers.

    Raises LessonError when there are none.
    """
    home = _home()
    lessons = [file for file in _files(home) if file.name.endswith(".ipynb")]
    if not lessons:
        message = (
            f"No lessons found. {home} has no notebook. "
            "Install autograd_lab again, or run `make notebooks`."
        )
        raise LessonError(message, folder=str(home))
    return lessons


def solution_source(name: str) -> str | None:
    """Return the written solution of an exercise, or None.

    It is the cell tagged `exercise:<name>` of one of the percent-format files in `solutions/`.
    """
    tag = re.compile(rf'^# %%.*"exercise:{re.escape(name)}".*\n((?:(?!# %%).*\n?)*)', re.MULTILINE)
    for file in _files(_home() / "solutions"):
        found = tag.search(file.read_text(encoding="utf-8")) if file.name.endswith(".py") else None
        if found:
            return found[1].strip()
    return None


def _home() -> Traversable:
    """The folder of lessons: that of the source checkout, else the one in the wheel."""
    package = importlib.resources.files("autograd_lab")
    if isinstance(package, Path) and (package.parent / "notebooks" / "build.py").is_file():
        return package.parent / "notebooks"
    return package / "teach" / "lessons"


def _files(folder: Traversable) -> list[Traversable]:
    """The folder's files by name; none where there is no such folder."""
    return sorted(folder.iterdir(), key=lambda file: file.name) if folder.is_dir() else []


def _copy(document: dict[str, Any], with_outputs: bool) -> tuple[str, str]:
    """Text of the learners' notebook, and the stamp in it that later tells which lesson it is."""
    for cell in document["cells"]:
        if cell["cell_type"] == "code" and not with_outputs:
            cell["outputs"], cell["execution_count"] = [], None
    stamp = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]
    document["metadata"][_STAMP] = {"made_from": stamp}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n", stamp


def _place(wanted: Path, stamp: str) -> Path | None:
    """The first free name: NAME.ipynb, NAME.new.ipynb, NAME.new2.ipynb, ...

    None when one of them was made from this very lesson.
    """
    number, place = 1, wanted
    while place.exists():
        if _stamp(place) == stamp:
            return None
        place = wanted.with_name(f"{wanted.stem}.new{number if number > 1 else ''}.ipynb")
        number += 1
    return place


def _stamp(path: Path) -> str | None:
    try:
        return json.loads(path.read_text(encoding="utf-8"))["metadata"][_STAMP]["made_from"]
    except (OSError, ValueError, KeyError, TypeError):  # damaged or foreign: the learner's own
        return None
