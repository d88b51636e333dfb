"""Turn the options of `autograd-lab demo | record | lab | ...` into text and files.

Each command returns the exit code. `cli` loads this file by name.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812 (torch's own name for it)
from tqdm import tqdm

from autograd_lab import capture, doors, replay, show, teach
from autograd_lab.errors import LessonError, OutputError, UserFunctionError
from autograd_lab.recording import Recording

__all__ = ["check", "demo", "lab", "notebooks", "pages", "record"]

STEPS = 300
BATCH = 16
OK, FAILED = 0, 1
_FILES = (".py", ".ipynb")  # what is named in place of a module


def demo(options: argparse.Namespace) -> int:
    """Train two models, record a step of each, and write pages and pictures into a folder each."""
    _write_demos(options.out, doors.device(options.device))
    print(f"\nOpen {options.out / 'convnet' / 'replay.html'} in a browser.")
    return OK


def _write_demos(out: Path, device: torch.device) -> list[tuple[str, Path]]:
    """Write both models' folders; the names and the pages."""
    models = {"convnet": teach.convnet, "transformer": teach.transformer}
    for name in models:  # before training: an unusable folder is then told at once
        _make_folder(out / name)
    digits = teach.digits()
    counts = f"{len(digits.train_labels)} to learn from, {len(digits.test_labels)} held out"
    print(f"8x8 images of digits: {counts}; device: {device}")
    for name, build in models.items():
        recording = _train_and_record(name, build().to(device), digits, device)
        _write_demo(recording, out / name)
    return [(name, out / name / "replay.html") for name in models]


def _train_and_record(
    name: str, model: torch.nn.Module, digits: teach.Digits, device: torch.device
) -> Recording:
    """Train on batches of 64, then record one more step with Adam, on 16 images."""
    with tqdm(total=STEPS, desc=name, disable=None, leave=False) as bar:
        trained = teach.train(model, digits, steps=STEPS, device=device, on_step=_advance(bar))
    losses, every = trained.losses, max(1, STEPS // 6)
    curve = " ".join(f"{sum(losses[k : k + every]) / every:.2f}" for k in range(0, STEPS, every))
    parameter_count = sum(parameter.numel() for parameter in model.parameters())
    print(f"\n{name}: {parameter_count} parameters, {STEPS} steps")
    print(f"  loss, mean of each {every} steps: {curve}")
    print(f"  accuracy on held-out images: {trained.accuracy:.1%}")
    images, labels = digits.train_images[:BATCH].to(device), digits.train_labels[:BATCH].to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    optimizer.zero_grad()  # else the last training step's gradients would be added to
    model.train()
    with capture.record(model) as recorder:
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    return recorder.recording


def _advance(bar: Any) -> Callable[[int, float], None]:  # noqa: ANN401 (tqdm has no public type for it)
    def on_step(step: int, loss: float) -> None:
        bar.update()
        if step % 20 == 0:
            bar.set_postfix(loss=f"{loss:.2f}")

    return on_step


def _write_demo(recording: Recording, folder: Path) -> None:
    flow = replay.gradient_flow(recording)
    with _writing(folder):
        written = [
            recording.save(folder / "recording.json"),
            show.flow_figure(flow).save(folder / "gradient_flow.png"),
            show.to_html(recording, folder / "replay.html"),
        ]
    print("  the recorded step:")
    for record in (recording, flow):
        for line in _first_paragraph(show.describe(record)):
            print(f"    {line}")
    print(f"  wrote {', '.join(path.name for path in written)} into {folder}")


def _first_paragraph(text: str) -> list[str]:
    return text.partition("\n\n")[0].splitlines()


def record(options: argparse.Namespace) -> int:
    """Record a function of the user's, print what happened, and write what was asked for."""
    function = _load_function(options.function)
    outputs = [path for path in (options.html, options.json) if path is not None]
    for path in outputs:  # before the function runs, which may take long
        if path.is_dir():
            inside = path / ("step.html" if path is options.html else "step.json")
            raise _unusable(path, "it is a folder", f"Name a file, for example {inside}")
        _make_folder(path.parent)
    if len(outputs) == 2 and outputs[0].absolute() == outputs[1].absolute():
        raise _unusable(outputs[0], "--html and --json both name it", "Give each its own file")
    recorder = capture.record(values=options.values)
    try:
        with recorder:
            function()
    finally:  # what led to an exception is what one most wants to see
        _show_and_write(recorder.recording, options.html, options.json)
    return OK


def _show_and_write(recording: Recording, html: Path | None, json: Path | None) -> None:
    print(repr(recording))
    if html is not None:
        with _writing(html):
            print(f"Wrote {show.to_html(recording, html)}.")
    if json is not None:
        with _writing(json):
            print(f"Wrote {recording.save(json)}.")


def _load_function(text: str) -> Callable[[], object]:
    """The user's function named as module:function.

    The working directory is importable, as with `python -m`.
    """
    module_name, colon, path = text.partition(":")
    if not colon or not module_name or not path:
        raise _no_function(text, "it names no function", _with_colon(text))
    is_name = all(part.isidentifier() for part in module_name.split("."))
    if not is_name or module_name.endswith(_FILES):
        fix = _as_in_an_import(module_name, path)
        raise _no_function(text, f"{module_name!r} is not a module's name", fix)
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the user's module is there; something that it imports is not
        why = f"there is no module {error.name!r} in {Path.cwd().name}/ or in the environment"
        files = [file.stem for file in Path.cwd().glob("*.py") if file.stem.isidentifier()]
        fix = _nearest(module_name, files) or "Run from the folder that holds it"
        raise _no_function(text, why, fix) from error
    for name in path.split("."):
        if not hasattr(found, name):
            why = f"module {module_name!r} has no {path!r}"
            raise _no_function(text, why, _nearest(name, dir(found)) or "Look at its spelling")
        found = getattr(found, name)
    problem = _why_not_callable(found, path)
    if problem:
        raise _no_function(text, *problem)
    return found


def _why_not_callable(found: Any, path: str) -> tuple[str, str] | None:  # noqa: ANN401 (anything)
    """What keeps it from being called without arguments, and what to do."""
    if not callable(found):
        kind = "None" if found is None else f"of type {type(found).__name__}"
        return f"it is {kind}, not a function", "Name a function that does forward and backward"
    if inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found):
        return "it is async, so that a call runs nothing", "Name a plain function that runs it"
    if inspect.isgeneratorfunction(found):
        return (
            "it is a generator, so that a call runs nothing",
            "Name a function that loops over it",
        )
    called = found.forward if isinstance(found, torch.nn.Module) else found
    try:
        inspect.signature(called).bind()
    except TypeError:
        why = f"it needs arguments: {path}{inspect.signature(called)}"
        return why, "Name a function that needs none and calls this one"
    except ValueError:  # a C function without a signature: calling it will tell
        return None
    return None


def _with_colon(text: str) -> str:
    """What to write instead of a name without a function: `train.one_step`, `train.py`."""
    module, dot, name = text.strip(":").rpartition(".")
    if dot and name.isidentifier() and module and name != "py":
        return f"Put a colon before the function: {module}:{name}"
    return "Write MODULE:FUNCTION"


def _as_in_an_import(module_name: str, function: str) -> str:
    """What to write instead of a path: what an import from its folder would say."""
    file = Path(module_name if "/" in module_name else module_name.lstrip("."))
    stem = file.stem if file.suffix in _FILES else file.name
    if file.suffix == ".ipynb":
        return "A notebook can't be imported: write `with al.record() as rec:` in it"
    if not stem.isidentifier():
        new = re.sub(r"\W", "_", stem)
        return f"Python can't import that name. Rename the file, for example {new}.py"
    parts = (*file.parent.parts, stem)
    if all(part.isidentifier() for part in parts):
        return f"Write it as in an import: {'.'.join(parts)}:{function}"
    return f"Run in the folder {file.parent} and write {stem}:{function}"


def _nearest(name: str, known: Iterable[str]) -> str | None:
    near = difflib.get_close_matches(name, known, 3)
    return f"Nearest: {', '.join(near)}" if near else None


def _no_function(text: str, why: str, fix: str) -> UserFunctionError:
    message = f"{text!r} can't be called: {why}.\n{fix}.\nFor example: train:one_step"
    return UserFunctionError(message, function=text)


def _make_folder(folder: Path) -> None:
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            it = "it" if place == folder else place
            raise _unusable(folder, f"{it} is a file, not a folder")
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise _unusable(folder, "it may not be written to")


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Name the place in what the file system refuses."""
    try:
        yield
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error


def _unusable(path: Path, why: str, fix: str = "Choose another place") -> OutputError:
    message = f"{path} can't be written.\nThe reason: {why}.\n{fix}."
    return OutputError(message, path=str(path))


def notebooks(options: argparse.Namespace) -> int:
    """Write the learner's copy of the lessons."""
    teach.write_lessons(options.folder, options.with_outputs)
    return OK


def lab(options: argparse.Namespace) -> int:
    """Write the learner's copy of the lessons and open JupyterLab on it."""
    return teach.open_lab(options.folder, options.jupyter)


def pages(options: argparse.Namespace) -> int:
    """Write the lessons and the demo's recordings as pages, with an index."""
    try:
        writer = importlib.import_module("autograd_lab.teach.pages")
    except ModuleNotFoundError as error:
        message = (
            f"Pages were not written. {error.name} is not installed, which comes with JupyterLab. "
            "Run: pip install 'autograd-lab[lab]'."
        )
        raise LessonError(message, missing=error.name) from error
    folder = options.folder
    _make_folder(folder)
    with _writing(folder):
        lessons = writer.write_lesson_pages(folder)
    demos = _write_demos(folder / "demo", doors.device())
    recordings = [(f"A training step of the {name}", page) for name, page in demos]
    with _writing(folder):
        index = writer.write_index(
            folder, "autograd_lab", [("Lessons", lessons), ("Recordings", recordings)]
        )
    print(f"\nOpen {index} in a browser.")
    return OK


def check(options: argparse.Namespace) -> int:
    """Say whether this machine is ready."""
    del options
    verdict = teach.check_setup()
    print(verdict)
    print(verdict.details)
    return OK if verdict.ok else FAILED
