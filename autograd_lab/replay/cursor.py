"""Turn a recording into a position in it that moves in both directions of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autograd_lab import views
from autograd_lab.recording import Event, Recording

from .frame import Frame

__all__ = ["Cursor"]


class Cursor:
    """A position in a recording: step, back, seek, run_until. `len(cursor)` is the number of frames."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.index = 0

    @property
    def frame(self) -> Frame:
        """The picture here."""
        raise NotImplementedError

    @property
    def event(self) -> Event | None:
        """The event that just happened; None at the start."""
        raise NotImplementedError

    def __len__(self) -> int:
        """Return the number of frames: one more than there are events."""
        return len(self.recording.events) + 1

    def step(self, n: int = 1) -> Frame:
        """Go `n` steps forward, at most to the end."""
        raise NotImplementedError

    def back(self, n: int = 1) -> Frame:
        """Go `n` steps back, at most to the start."""
        raise NotImplementedError

    def seek(self, index: int) -> Frame:
        """Go to step `index`."""
        raise NotImplementedError

    def run_until(
        self,
        target: str | None = None,
        *,
        module: str | None = None,
        norm_over: float | None = None,
        nonfinite: bool = False,
        accumulate: bool = False,
        predicate: Callable[[Frame], object] | None = None,
    ) -> Frame:
        """Go forward to the next step at which all given conditions hold."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Return the deterministic text."""
        return views.describe(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        return views.mimebundle(self)
