"""Turn a function of the user's into a recording: printed, and written as a page or a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from autograd_lab import capture, show
from autograd_lab.commands.functions import load_function
from autograd_lab.commands.outputs import make_folder, unusable, writing
from autograd_lab.recording import Recording

__all__ = ["record"]


def record(options: argparse.Namespace) -> int:
    """Record a function of the user's, print what happened, and write what was asked for."""
    function = load_function(options.function)
    outputs = [path for path in (options.html, options.json) if path is not None]
    for path in outputs:  # before the function runs, which may take long
        if path.is_dir():
            inside = path / ("step.html" if path is options.html else "step.json")
            raise unusable(path, "it is a folder", f"Name a file, for example {inside}")
        make_folder(path.parent)
    if len(outputs) == 2 and outputs[0].absolute() == outputs[1].absolute():
        raise unusable(outputs[0], "--html and --json both name it", "Give each its own file")
    recorder = capture.record(values=options.values)
    try:
        with recorder:
            function()
    finally:  # what led to an exception is what one most wants to see
        _show_and_write(recorder.recording, options.html, options.json)
    return 0


def _show_and_write(recording: Recording, html: Path | None, json: Path | None) -> None:
    print(repr(recording))
    if html is not None:
        with writing(html):
            print(f"Wrote {show.to_html(recording, html)}.")
    if json is not None:
        with writing(json):
            print(f"Wrote {recording.save(json)}.")
