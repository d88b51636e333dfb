"""Turn what the file system refuses into words that name the place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autograd_lab.errors import OutputError

__all__ = ["make_folder", "unusable", "writing"]


def make_folder(folder: Path) -> None:
    """Make a folder with those around it; raises OutputError where nothing can be written."""
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            it = "it" if place == folder else place
            raise unusable(folder, f"{it} is a file, not a folder")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise unusable(folder, "it may not be written to")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name the place in what the file system refuses."""
    try:
        yield
    except OSError as error:
        raise unusable(path, error.strerror or str(error)) from error


def unusable(path: Path, why: str, fix: str = "Choose another place") -> OutputError:
    """Return the error that names the place, the reason and what to do."""
    message = f"{path} can't be written.\nThe reason: {why}.\n{fix}."
    return OutputError(message, path=str(path))
