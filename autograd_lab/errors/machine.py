"""The errors of the machine: its torch, its devices, and functions that the user named."""

from __future__ import annotations

from .base import AutogradLabError

__all__ = [
    "DeviceError",
    "UnsupportedTorchError",
    "UserFunctionError",
]


class UnsupportedTorchError(AutogradLabError):
    """This torch is too old, or lacks a private name without which nothing can be recorded."""

    code = "AL300"


class DeviceError(AutogradLabError):
    """The device asked for is not there."""

    code = "AL310"


class UserFunctionError(AutogradLabError):
    """A function named by the user can't be found or called."""

    code = "AL400"
