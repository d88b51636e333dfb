"""Turn this machine's set-up into a report: is it ready?"""

from __future__ import annotations

import argparse

from autograd_lab import teach

__all__ = ["check"]


def check(options: argparse.Namespace) -> int:
    """Say whether this machine is ready."""
    del options
    verdict = teach.check_setup()
    print(verdict)
    print(verdict.details)
    return 0 if verdict.ok else 1
