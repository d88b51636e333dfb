"""Turn the machine a notebook runs on into `setup: ok`, or into what to do."""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from autograd_lab import doors
from autograd_lab.errors import DeviceError
from autograd_lab.teach.verdict import Verdict

__all__ = ["check_setup"]

_OLDEST_PYTHON = (3, 11)
_OLDEST_TORCH = (2, 10)
# Measured: a kernel with torch, matplotlib and widgets takes 270 MB, the Lab server 90 MB.
_LEAST_MEMORY_MB = 700
_NEEDED = ("numpy", "matplotlib", "ipywidgets", "anywidget", "ipykernel")
_MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def check_setup() -> Verdict:
    """Check Python, torch, the packages, memory, cores and the device. Never raises.

    The text is `ok` or one line per thing to do, the same on every machine that is fine; versions
    and sizes are in `.details` and `.html`.
    """
    details, todo = [], []
    for probe in (_python, _torch, _packages, _memory, _cores, _device):
        detail, problem = _probed(probe)
        details.append(detail)
        if problem:
            todo.append(problem)
    text = "\n".join(todo) or "ok"
    told = "\n".join(details)
    return Verdict(name="setup", text=text, ok=not todo, wrong=bool(todo), details=told)


def _probed(probe: Callable[[], tuple[str, str | None]]) -> tuple[str, str | None]:
    try:
        return probe()
    except Exception as error:
        return f"{probe.__name__.strip('_')}: not found out ({type(error).__name__}: {error})", None


def _python() -> tuple[str, str | None]:
    detail = f"Python {sys.version.split()[0]}"
    if sys.version_info[:2] >= _OLDEST_PYTHON:
        return detail, None
    return detail, "Python is too old. Install Python {}.{} or newer.".format(*_OLDEST_PYTHON)


def _torch() -> tuple[str, str | None]:
    detail = f"torch {torch.__version__}"
    if tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2]) >= _OLDEST_TORCH:
        return detail, None
    return detail, "PyTorch is too old. Run: pip install 'torch>={}.{}'".format(*_OLDEST_TORCH)


def _packages() -> tuple[str, str | None]:
    found, missing = [], []
    for name in _NEEDED:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    detail = ", ".join([*found, *(f"{name} missing" for name in missing)])
    if not missing:
        return detail, None
    todo = f"Packages are missing. Run: pip install {' '.join(missing)}; then restart Jupyter."
    return detail, todo


def _memory() -> tuple[str, str | None]:
    """The limit that kills the kernel: the container's cgroup, where there is one."""
    files = [Path(path) for path in _MEMORY_LIMITS if Path(path).exists()]
    texts = [file.read_text(encoding="ascii").strip() for file in files]
    # "max" (cgroup 2) and almost 2**63 (cgroup 1) mean that there is no limit
    limits = [int(text) for text in texts if text.isdigit() and int(text) < 2**60]
    if not limits:
        return "memory: no limit set", None
    megabytes = min(limits) // 2**20
    short = megabytes < _LEAST_MEMORY_MB
    todo = "Memory is short. Shut down other kernels, or start a server with 1 GB or more."
    return f"memory limit {megabytes} MB", todo if short else None


def _cores() -> tuple[str, str | None]:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{count} cores, torch uses {torch.get_num_threads()} threads", None


def _device() -> tuple[str, str | None]:
    """What AUTOGRAD_LAB_DEVICE asks for, and whether a tensor can be made there."""
    there = torch.accelerator.current_accelerator(check_available=True)
    asked = os.environ.get("AUTOGRAD_LAB_DEVICE") or "cpu"
    seen = f"device {asked} asked for; accelerator: {there or 'none'}"
    try:
        torch.ones(1, device=doors.device())
    except DeviceError as error:
        return seen, str(error)
    return seen, None
