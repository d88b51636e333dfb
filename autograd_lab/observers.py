"""Tell observers what the package's instruments do: nobody listens, nothing is done.

An Observer's methods fire where their names say, on the thread that works: backward may run on a
device thread. `observing` adds one to a list of the whole process.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

__all__ = ["Observer", "observers", "observing"]


class Observer:
    """A base class whose methods do nothing; override those that you want to hear of.

    Tensors are handed over live: keep what you measure, not the tensor. An exception that a method
    raises goes to the program.
    """

    def custom_op_called(self, op: str, arguments: Mapping[str, Any]) -> None:
        """Fire before the kernel runs under autograd; every argument is there, by name."""

    def custom_op_returned(self, op: str, output: Any) -> None:  # noqa: ANN401
        """Fire when the kernel has returned, as it returned."""

    def custom_op_saved(self, op: str, tree: Any, paths: tuple[str, ...]) -> None:  # noqa: ANN401
        """Fire when the save function has returned a tree; the paths of its tensors, in order."""

    def custom_op_unpacked(self, op: str, tree: Any) -> None:  # noqa: ANN401
        """Fire when backward has its saved tree again."""

    def custom_op_backward_returned(self, op: str, gradients: Any) -> None:  # noqa: ANN401
        """Fire when the user's backward has returned, before anything is checked."""

    def custom_op_checked(self, op: str, gradients: tuple[Any, ...]) -> None:
        """Fire when the gradients were found right, in the order of the arguments."""


_lock = threading.Lock()
_active: tuple[Observer, ...] = ()


def observers() -> tuple[Observer, ...]:
    """Those who observe now, in the order in which they came."""
    return _active


@contextmanager
def observing(observer: Observer) -> Iterator[Observer]:
    """Let an observer hear of everything that happens in this process inside the block.

    >>> from autograd_lab.observers import Observer, observers, observing
    >>> with observing(Observer()) as mine:
    ...     observers() == (mine,)
    True
    >>> observers()
    ()
    """
    global _active
    with _lock:
        _active = (*_active, observer)
    try:
        yield observer
    finally:
        with _lock:
            at = len(_active) - 1 - _active[::-1].index(observer)
            _active = _active[:at] + _active[at + 1 :]
