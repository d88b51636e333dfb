"""The shell's door: `autograd-lab demo | record | notebooks | check`, and what each of them
prints.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812 (torch's own name for it)
from tqdm import tqdm

from autograd_lab import __version__, capture, doors, replay, show, teach
from autograd_lab.errors import AutogradLabError, UserFunctionError
from autograd_lab.recording import Recording

__all__ = ["main"]

STEPS = 300
BATCH = 16
OK, FAILED, WRONG_USE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns 0, 1 where it could not be done, 2 where it was called wrongly
    (argparse's own exit code).
    """
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except AutogradLabError as error:
        print(f"autograd-lab: {error}", file=sys.stderr)
        return FAILED
    except OSError as error:
        print(
            f"autograd-lab: {error.filename or 'a file'}: {error.strerror or error}.",
            file=sys.stderr,
        )
        return FAILED
    except KeyboardInterrupt:
        print("autograd-lab: interrupted.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="autograd-lab", description="See PyTorch's backward happen."
    )
    parser.add_argument("--version", action="version", version=f"autograd-lab {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    demo = commands.add_parser(
        "demo",
        help="train two digits classifiers, record a step of each, write pages and pictures",
        description="Train a small convolutional network and a small transformer on handwritten digits, record one training step "
        "of each exactly as PyTorch runs it, and write replay.html, gradient_flow.png and recording.json into one folder a model.",
    )
    demo.add_argument(
        "--device",
        help="cpu (default), auto, cuda, mps; else the environment's AUTOGRAD_LAB_DEVICE",
    )
    demo.add_argument(
        "--out", type=Path, default=Path("demo-out"), metavar="DIR", help="default: demo-out"
    )
    demo.set_defaults(run=_demo)

    record = commands.add_parser(
        "record",
        help="record a function of yours and write an HTML page",
        description="Import MODULE from the working directory, call FUNCTION without arguments (it does forward and backward "
        "itself), and write what happened.",
    )
    record.add_argument("function", metavar="MODULE:FUNCTION", help="for example train:one_step")
    record.add_argument("--html", type=Path, metavar="OUT", help="write a page")
    record.add_argument(
        "--json", type=Path, metavar="OUT", help="write the recording, for al.load_recording"
    )
    record.add_argument(
        "--values",
        choices=["none", "auto", "all"],
        default="auto",
        help="what to keep of tensors (default: auto)",
    )
    record.set_defaults(run=_record)

    notebooks = commands.add_parser(
        "notebooks",
        help="write a learner's copy of the lessons",
        description="Write the lessons, without answers, into DIR.",
    )
    notebooks.add_argument("folder", type=Path, metavar="DIR")
    notebooks.add_argument(
        "--with-outputs", action="store_true", help="keep the tested outputs, for reading"
    )
    notebooks.set_defaults(run=_notebooks)

    check = commands.add_parser(
        "check",
        help="say whether this machine is ready",
        description="Machine, versions, device, memory, what would not work.",
    )
    check.set_defaults(run=_check)
    return parser


def _demo(options: argparse.Namespace) -> int:
    device = doors.device(options.device)
    digits = teach.digits()
    print(
        f"{len(digits.train_labels)} images of 8x8 digits to learn from, {len(digits.test_labels)} held out; device: {device.type}"
    )
    for name, build in (("convnet", teach.convnet), ("transformer", teach.transformer)):
        folder = options.out / name
        folder.mkdir(parents=True, exist_ok=True)
        model = build().to(device)
        recording = _train_and_record(name, model, digits, device)
        _write_demo(recording, folder)
    print(f"\nOpen {options.out / 'convnet' / 'replay.html'} in a browser.")
    return OK


def _train_and_record(
    name: str, model: torch.nn.Module, digits: teach.Digits, device: torch.device
) -> Recording:
    """Train on batches of 64, then record one more step on 16 images with Adam, as it would have
    gone on.
    """
    with tqdm(total=STEPS, desc=name, disable=None, leave=False) as bar:
        trained = teach.train(model, digits, steps=STEPS, device=device, on_step=_advance(bar))
    losses, every = trained.losses, STEPS // 6
    curve = " ".join(f"{sum(losses[k : k + every]) / every:.2f}" for k in range(0, STEPS, every))
    print(
        f"\n{name}: {sum(parameter.numel() for parameter in model.parameters())} parameters, {STEPS} steps"
    )
    print(f"  loss, mean of each {every} steps: {curve}")
    print(f"  accuracy on held-out images: {trained.accuracy:.1%}")
    images, labels = digits.train_images[:BATCH].to(device), digits.train_labels[:BATCH].to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
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
    recording.save(folder / "recording.json")
    show.flow_figure(flow).save(folder / "gradient_flow.png")
    show.to_html(recording, folder / "replay.html")
    print("  the recorded step:")
    for record in (recording, flow):
        for line in _first_paragraph(show.describe(record)):
            print(f"    {line}")
    print(f"  wrote {', '.join(sorted(path.name for path in folder.iterdir()))} into {folder}")


def _first_paragraph(text: str) -> list[str]:
    return text.partition("\n\n")[0].splitlines()


def _record(options: argparse.Namespace) -> int:
    function = _load_function(options.function)
    recording = capture.record_step(function, values=options.values)
    print(repr(recording))
    if options.html is not None:
        print(f"Wrote {show.to_html(recording, options.html)}.")
    if options.json is not None:
        print(f"Wrote {recording.save(options.json)}.")
    return OK


def _load_function(text: str) -> Callable[[], object]:
    """The user's function named as module:function; the working directory is importable, as with
    `python -m`.
    """
    module_name, colon, path = text.partition(":")
    if not colon or not module_name or not path:
        message = f"{text!r} names no function.\nWrite MODULE:FUNCTION, for example train:one_step.\nThe function takes no arguments."
        raise UserFunctionError(message, function=text)
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name not in (module_name, module_name.partition(".")[0]):
            raise  # the user's module is there; something that it imports is not
        message = f"There is no module {module_name!r}.\nIt was looked for in {Path.cwd().name}/ and in the environment.\nRun from the folder that holds it."
        raise UserFunctionError(message, function=text) from error
    for name in path.split("."):
        if not hasattr(found, name):
            message = f"Module {module_name!r} has no {path!r}.\n{name!r} was not found in it.\nNames are case-sensitive."
            raise UserFunctionError(message, function=text)
        found = getattr(found, name)
    if not callable(found):
        message = f"{text!r} is a {type(found).__name__}, not a function.\nIt is called without arguments.\nName a function."
        raise UserFunctionError(message, function=text)
    return found


def _notebooks(options: argparse.Namespace) -> int:
    teach.write_lessons(options.folder, options.with_outputs)
    return OK


def _check(options: argparse.Namespace) -> int:
    del options
    verdict = teach.check_setup()
    print(verdict)
    print(verdict.details)
    return OK if verdict.ok else FAILED


if __name__ == "__main__":
    sys.exit(main())
