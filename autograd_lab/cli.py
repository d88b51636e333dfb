"""The shell's door: turn `autograd-lab demo | record | notebooks | check` into a call of a command.

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

FAILED, INTERRUPTED = 1, 130  # a wrong call is argparse's own 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 done; 1 it could not be done, and a sentence says why; 2 it was called wrongly; 130 Ctrl-C.
    An exception of the user's own function passes through unchanged.
    """
    options = _parser().parse_args(arguments)
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
        prog="autograd-lab", description="See PyTorch's backward happen."
    )
    parser.add_argument("--version", action="version", version=f"autograd-lab {__version__}")
    commands = parser.add_subparsers(
        title="commands", dest="command", required=True, metavar="COMMAND"
    )

    demo = commands.add_parser(
        "demo",
        help="train two digits classifiers, record a step of each, write pages and pictures",
        description="Train a small convolutional network and a small transformer on handwritten "
        "digits, record one training step of each exactly as PyTorch runs it, and write "
        "replay.html, gradient_flow.png and recording.json into one folder a model.",
    )
    demo.add_argument(
        "--device",
        help="cpu (default), auto, cuda, mps; else the environment's AUTOGRAD_LAB_DEVICE",
    )
    demo.add_argument(
        "--out", type=Path, default=Path("demo-out"), metavar="DIR", help="default: demo-out"
    )

    record = commands.add_parser(
        "record",
        help="record a function of yours, print what happened, write a page",
        description="Import MODULE from the working directory, call FUNCTION without arguments "
        "(it does forward and backward itself), and print what happened.",
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

    notebooks = commands.add_parser(
        "notebooks",
        help="write a learner's copy of the lessons",
        description="Write the lessons, without answers, into DIR. No file is overwritten.",
    )
    notebooks.add_argument("folder", type=Path, metavar="DIR")
    notebooks.add_argument(
        "--with-outputs", action="store_true", help="keep the tested outputs, for reading"
    )

    commands.add_parser(
        "check",
        help="say whether this machine is ready",
        description="Machine, versions, device, memory, what would not work.",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
