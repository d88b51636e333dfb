"""What needs the live and the shown at once, and the choice of the device on which lessons run."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import nn

from autograd_lab import show
from autograd_lab.capture import record_step
from autograd_lab.errors import DeviceError

if TYPE_CHECKING:
    from autograd_lab.show import Stepper

__all__ = ["device", "step_through"]

VARIABLE = "AUTOGRAD_LAB_DEVICE"


def device(name: str | None = None) -> torch.device:
    """Return the device to use: `name`, else the environment's AUTOGRAD_LAB_DEVICE, else the CPU.

    name  "cpu"; "auto" for this machine's accelerator or, without one, the CPU; "cuda", "cuda:1",
          "mps", "xpu"

    Raises DeviceError where that device is not there, or the name is none of torch's.

    Example:
        >>> import autograd_lab as al
        >>> al.device("cpu")
        device(type='cpu')
    """
    asked = name if name is not None else os.environ.get(VARIABLE, "").strip() or "cpu"
    where = "device()" if name is not None else VARIABLE
    if asked == "cpu":
        return torch.device("cpu")  # without waking the accelerator's driver
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if asked == "auto":
        return accelerator or torch.device("cpu")
    there = _devices(accelerator)
    try:
        wanted = torch.device(asked)
    except RuntimeError as error:
        message = (
            f"{where} asks for {asked!r}, which is no device that torch knows.\n"
            f"This machine has: {', '.join(there)}.\n"
            "Use cpu, auto, cuda or mps."
        )
        raise DeviceError(message, asked=asked) from error
    if f"{wanted.type}:{wanted.index or 0}" not in ("cpu:0", *there):
        message = (
            f"{where} asks for {asked!r}, which this machine does not have.\n"
            f"It has: {', '.join(there)}.\n"
            "Use cpu, or auto to take whatever there is."
        )
        raise DeviceError(message, asked=asked)
    return wanted


def step_through(
    fn: Callable[[], object], *, model: nn.Module | None = None, values: str = "auto"
) -> Stepper:
    """Call `fn`, record what it did, and return a Stepper over that.

    `fn` takes no arguments and does forward and backward itself; `model` and `values` are those of
    `record`. An exception of `fn` passes through unchanged.

    Example:
        >>> import torch, autograd_lab as al
        >>> w = torch.ones(2, requires_grad=True)
        >>> stepper = al.step_through(lambda: (w * 3).sum().backward())
        >>> stepper.run_until("MulBackward0").phase
        'backward 1'
    """
    return show.Stepper(record_step(fn, model=model, values=values))


def _devices(accelerator: torch.device | None) -> list[str]:
    if accelerator is None:
        return ["cpu"]
    count = torch.accelerator.device_count()
    return ["cpu", *(f"{accelerator.type}:{number}" for number in range(count))]
