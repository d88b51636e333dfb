"""Make `pytest` run unit tests, docstring examples and notebooks alike from any folder.

nbval has no ini options, so its options are set here. It also waits for a dead kernel until the
cell times out, which the kernel watch below shortens to a second.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from nbval.kernel import RunningKernel

ROOT = Path(__file__).parent

# Before any kernel starts, because kernels inherit it: what would make outputs differ.
os.environ.update(OMP_NUM_THREADS="1", PYTHONHASHSEED="0", COLUMNS="100", AUTOGRAD_LAB_VARIANT="0")
if os.environ.setdefault("AUTOGRAD_LAB_DEVICE", "cpu") == "cpu":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
# Kernels start in other folders, where a relative PYTHONPATH leads nowhere.
_paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
_others = [path for path in _paths if path and Path(path).resolve() != ROOT.resolve()]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *_others])

# Sources of notebooks are run by their build, never imported to look for docstrings.
collect_ignore_glob = ["notebooks/*.py", "notebooks/*/*.py"]


def pytest_configure(config: pytest.Config) -> None:
    """Set nbval's options and refuse a distribution that would tear notebooks apart."""
    option = config.option
    option.nbval_current_env = True
    option.nbval_sanitize_with = option.nbval_sanitize_with or str(ROOT / "notebooks/sanitize.cfg")
    if option.nbval_cell_timeout == 2000:  # nbval's default, in seconds
        option.nbval_cell_timeout = 60.0
    if getattr(option, "numprocesses", None) and option.dist not in ("loadfile", "loadscope"):
        message = "The cells of one notebook share one kernel. Add --dist loadfile to -n."
        raise pytest.UsageError(message)
    RunningKernel.get_message = get_message_or_notice_death  # pyright: ignore[reportAttributeAccessIssue]


wait_for_message = RunningKernel.get_message


def get_message_or_notice_death(
    kernel: RunningKernel, stream: str, timeout: float | None = None
) -> dict[str, Any]:
    """Wait for a message in slices of a second and look at the kernel's process in between."""
    end = float("inf") if timeout is None else time.monotonic() + timeout
    while True:
        left = end - time.monotonic()
        try:
            return wait_for_message(kernel, stream, timeout=max(0.0, min(1.0, left)))
        except Empty:
            if not kernel.is_alive():
                message = "The notebook's kernel died. It may have run out of memory or crashed."
                raise RuntimeError(message) from None
            if left <= 0:
                raise
