"""Keep which functions were registered for an op, and from where: messages name the place."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from autograd_lab.errors import MissingRegistrationError, RegistrationError, file_label

__all__ = ["Function", "Registration", "Registrations", "registration_of"]

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Registration:
    """A function and its place, `lesson.py:14`."""

    function: Function
    place: str


def registration_of(function: object, what: str, op: str) -> Registration:
    """Take a function as it is decorated; raises RegistrationError for what can't be called."""
    if not callable(function):
        message = (
            f"{what} of '{op}' was given {type(function).__name__}, which can't be called.\n"
            f"Write @op.{what} above a function."
        )
        raise RegistrationError(message, op=op, given=type(function))
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return Registration(function, getattr(function, "__name__", type(function).__name__))
    return Registration(function, f"{file_label(code.co_filename)}:{code.co_firstlineno}")


class Registrations:
    """What was registered for autograd; registering again replaces, recorded graphs keep theirs.

    setup            setup_context, which came with a backward by register_autograd
    is_positional    backward came by register_autograd: its gradients stand in the arguments' order
    is_half          backward or what saves for it is there, and the other is missing
    is_whole         both are there
    differentiability  output_differentiability, or None: all outputs that can be are
    constants        paths of saved tensors, "['mask']", that depend on no input
    """

    __slots__ = (
        "backward",
        "constants",
        "differentiability",
        "is_half",
        "is_positional",
        "is_whole",
        "jvp",
        "save",
        "setup",
    )

    def __init__(self) -> None:
        self.save: Registration | None = None
        self.backward: Registration | None = None
        self.setup: Registration | None = None
        self.jvp: Registration | None = None
        self.differentiability: tuple[bool, ...] | None = None
        self.constants: frozenset[str] = frozenset()
        self.is_positional = self.is_half = self.is_whole = False

    def set_save(self, save: Registration, constants: frozenset[str]) -> None:
        """Take the function that says what backward needs."""
        self.save, self.constants = save, constants
        self._forget_positional()

    def set_backward(
        self, backward: Registration, differentiability: tuple[bool, ...] | None
    ) -> None:
        """Take a backward that returns a dict."""
        self._forget_positional()
        self.backward, self.differentiability = backward, differentiability
        self._update()

    def set_positional(self, backward: Registration, setup: Registration | None) -> None:
        """Take both functions of register_autograd."""
        self.backward, self.setup, self.is_positional = backward, setup, True
        self.save, self.differentiability, self.constants = None, None, frozenset()
        self._update()

    def require_both(self, op: str) -> None:
        """Raise MissingRegistrationError where backward or its save function is missing."""
        if self.is_whole:
            return
        if self.save is None and self.backward is None:
            message = (
                f"Autograd has not been implemented for operator '{op}'.\n"
                "An input requires grad, and neither a backward nor a function that saves for it "
                "was registered.\n"
                "Register both: @op.impl_save_for_backward() and @op.impl_backward(). Or call it "
                "under torch.no_grad()."
            )
            missing = ("save_for_backward", "backward")
            raise MissingRegistrationError(message, op=op, missing=missing)
        found, missing, here = "save_for_backward", "backward", self.save
        if here is None:
            found, missing, here = missing, found, self.backward
        assert here is not None
        message = (
            f"We found a '{found}' registration for '{op}' at {here.place} but were unable to find "
            f"a '{missing}' registration.\n"
            "Each needs the other: what is saved, and the backward that reads it.\n"
            f"Register it with @op.impl_{missing}(). A backward that needs nothing saved still "
            "needs a save function: let it return None."
        )
        raise MissingRegistrationError(message, op=op, missing=(missing,), place=here.place)

    def _forget_positional(self) -> None:
        if self.is_positional:
            self.backward = self.setup = None
            self.is_positional = False
        self._update()

    def _update(self) -> None:
        self.is_whole = self.backward is not None and (self.is_positional or self.save is not None)
        self.is_half = not self.is_whole and (self.save is not None or self.backward is not None)
