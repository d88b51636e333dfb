"""The shell's door: turn `autograd-lab demo | record | lab | ...` into a call of a command.

The commands load torch and figures, which takes seconds: they are loaded by name, once one is asked
for, so that `--help`, `--version` and a wrong call answer at once.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from autograd_lab import __version__
from autograd_lab.errors import AutogradLabError

__all__ = ["main"]

OK, FAILED, INTERRUPTED = 0, 1, 130  # a wrong call is argparse's own 2

EXAMPLES = """\
for example:
  autograd-lab demo                                     two models, into demo-out/
  autograd-lab record train:one_step --html step.html   one_step of your train.py
  autograd-lab lab                                      the lessons, in JupyterLab
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 done; 1 it could not be done, and a sentence says why; 2 it was called wrongly; 130 Ctrl-C.
    An exception of the user's own function passes through unchanged. Without a command, nothing
    was called wrongly: the help is shown.
    """
    parser = _parser()
    options, others = parser.parse_known_args(arguments)
    if options.command == "lab":
        options.jupyter = others
    elif others:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    if options.command is None:
        parser.print_help()
        return OK
    try:
        commands = importlib.import_module("autograd_lab.commands")
        run: Callable[[argparse.Namespace], int] = getattr(commands, options.command)
        return run(options)
    except AutogradLabError as error:
        print(f"autograd-lab: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("autograd-lab: interrupted.", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="autograd-lab",
        description="See PyTorch's backward happen: what a training step really did, node by node.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"autograd-lab {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")

    demo = commands.add_parser(
        "demo",
        help="train two digits classifiers, record a step of each, write pages and pictures",
        description="Train a small convolutional network and a small transformer on handwritten "
        "digits, record one training step of each exactly as PyTorch runs it, and write "
        "replay.html, gradient_flow.png and recording.json into a folder for each model.",
    )
    demo.add_argument(
        "--device",
        help="cpu, auto (this machine's accelerator, if any), cuda or mps. --device wins over the "
        "environment variable AUTOGRAD_LAB_DEVICE; without either it is cpu",
    )
    demo.add_argument(
        "--out",
        type=_place,
        default=Path("demo-out"),
        metavar="DIR",
        help="folder to write into; the files of an earlier demo there are replaced "
        "(default: demo-out)",
    )

    record = commands.add_parser(
        "record",
        help="record a function of yours, print what happened, write a page",
        description="Import MODULE from the working directory, call FUNCTION without arguments "
        "(it does forward and backward itself), and print what happened. If FUNCTION raises, what "
        "led to it is printed and written all the same.",
    )
    record.add_argument(
        "function",
        metavar="MODULE:FUNCTION",
        help="train:one_step is the function one_step of the file train.py",
    )
    record.add_argument(
        "--html", type=_place, metavar="FILE", help="write a page for any browser, in one file"
    )
    record.add_argument(
        "--json", type=_place, metavar="FILE", help="write the recording, for al.load_recording"
    )
    record.add_argument(
        "--values",
        choices=["none", "auto", "all"],
        default="auto",
        help="what to keep of tensors: none = shapes and norms; auto = also statistics and the "
        "values of small tensors; all = all values, within a memory limit (default: auto)",
    )

    lab = commands.add_parser(
        "lab",
        help="open the lessons in JupyterLab",
        description="Write a learner's copy of the lessons into DIR, as `notebooks` does, and open "
        "JupyterLab there at the first one. Other options are handed on to JupyterLab, such as "
        "--no-browser, --allow-root or, in one word, --port=8890.",
    )
    _take_folder(lab, default="learn")

    notebooks = commands.add_parser(
        "notebooks",
        help="write a learner's copy of the lessons",
        description="Write the lessons, without answers, into DIR. No file is overwritten: a "
        "lesson that has changed is written beside yours. Open them with: jupyter lab DIR",
    )
    _take_folder(notebooks)
    notebooks.add_argument(
        "--with-outputs", action="store_true", help="keep the tested outputs, for reading"
    )

    pages = commands.add_parser(
        "pages",
        help="write the lessons and the demo as pages for any browser",
        description="Run every lesson and the demo, and write them into DIR as pages that need "
        "neither Python nor a network, with an index.html. The pages of an earlier run there are "
        "replaced.",
    )
    _take_folder(pages, default="pages")

    commands.add_parser(
        "check",
        help="say whether this machine is ready",
        description="Print versions, device and memory, and what to do about what would not work; "
        "the exit code is 1 then.",
    )
    return parser


def _take_folder(command: argparse.ArgumentParser, default: str | None = None) -> None:
    """Let a command take DIR; without a default it has to be given."""
    otherwise = "" if default is None else f" (default: {default})"
    command.add_argument(
        "folder",
        type=_place,
        nargs=None if default is None else "?",
        default=default and Path(default),
        metavar="DIR",
        help=f"a folder; it is made if it is missing{otherwise}",
    )


def _place(text: str) -> Path:
    """A file's or folder's name; an empty one would silently be the working directory."""
    if not text.strip():
        message = "the name is empty"
        raise argparse.ArgumentTypeError(message)
    return Path(text)


if __name__ == "__main__":
    sys.exit(main())
