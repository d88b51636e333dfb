"""Turn a recording into a position in it that moves in both directions of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any, TypedDict

from autograd_lab import views
from autograd_lab.errors import NodeNotFoundError, StepError
from autograd_lab.recording import Event, Recording

from .frame import Frame, frame_in, whole_number
from .given import require_recording
from .history import History
from .match import known_modules, known_names, matching, near, steps_where

__all__ = ["Cursor"]

NAMED = 8


class Cursor:
    """A position in a recording: step, back, seek, run_until. `len(cursor)` counts the frames.

    A move takes the same time in both directions, however long the recording is.
    Raises RecordingError for what is no Recording, such as a Recorder.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = require_recording(recording, "Cursor")
        self.index = 0
        self._history = History(recording)

    @property
    def frame(self) -> Frame:
        """The picture here."""
        return frame_in(self._history, self.index)

    @property
    def event(self) -> Event | None:
        """The event that just happened; None at the start."""
        return self.recording.events[self.index - 1] if self.index else None

    def __len__(self) -> int:
        """Return the number of frames: one more than there are events."""
        return len(self.recording.events) + 1

    def step(self, n: int = 1) -> Frame:
        """Go `n` steps forward, at most to the end."""
        return self.seek(min(self.index + _count(n, "step", "back"), len(self) - 1))

    def back(self, n: int = 1) -> Frame:
        """Go `n` steps back, at most to the start."""
        return self.seek(max(self.index - _count(n, "back", "step"), 0))

    def seek(self, index: int) -> Frame:
        """Go to step `index`; raises StepError that names the range and stays where it is."""
        index = whole_number(index, "seek")
        frame = frame_in(self._history, index)
        self.index = index
        return frame

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
        """Go forward to the next step at which all given conditions hold, and return its frame.

        target      name of a node ("AddmmBackward0"), op ("linear"), variable ("loss"), leaf
                    ("fc1.weight", "fc1.weight.grad") or module ("fc1"), or a glob ("Mm*"); the case
                    of letters is ignored only where nothing else fits
        module      module path or glob; what runs in its submodules counts
        norm_over   some value of the step has a norm above this bound, or a NaN one
        nonfinite   some value of the step holds a NaN or an Inf
        accumulate  a leaf's `.grad` gained a gradient
        predicate   called with the Frame

        With `target` and `module` alone it stops once for each call of an op and each run of a
        node, when it starts. With one of the others it looks at all steps of that op or node.
        Raises NodeNotFoundError, which names the nearest names, and stays where it is.
        """
        conditions = _Conditions(
            target=target,
            module=module,
            norm_over=norm_over,
            nonfinite=nonfinite,
            accumulate=accumulate,
            every_step=predicate is not None,
        )
        if not _asked(conditions):
            message = (
                "run_until was given no condition.\n"
                f"The cursor is at step {self.index}.\n"
                'Give one: run_until("AddmmBackward0"), run_until("Mm*"), module="blocks.0", '
                "norm_over=1e3, nonfinite=True, accumulate=True or predicate=lambda frame: ..."
            )
            raise StepError(message, index=self.index)
        for step in steps_where(self.recording, after=self.index, **conditions):
            frame = frame_in(self._history, step)
            if predicate is None or predicate(frame):
                self.index = step
                return frame
        raise self._nothing_ahead(conditions)

    def _nothing_ahead(self, conditions: _Conditions) -> NodeNotFoundError:
        """Build the error of a search in vain: the nearest names, or where it held before."""
        modules = known_modules(self.recording)
        for kind, wanted, known in (
            (
                "node, op, variable or module",
                conditions["target"],
                known_names(self.recording) | modules,
            ),
            ("module", conditions["module"], modules),
        ):
            if wanted is not None and not matching(wanted, known):
                like = near(wanted, known)
                names, advice = _choices(like, known)
                message = (
                    f"No {kind} of this recording is called {wanted!r}.\n"
                    f"{names} The cursor stays at step {self.index}.\n"
                    f"{advice}"
                )
                return NodeNotFoundError(message, wanted=wanted, near=like, index=self.index)
        behind = [step for step in steps_where(self.recording, **conditions) if step <= self.index]
        asked = ", ".join(f"{name}={value!r}" for name, value in _asked(conditions))
        where = (
            f"It held at step {behind[-1]}, behind the cursor at step {self.index}.\n"
            f"Go back first: cursor.seek(0)."
            if behind and not conditions["every_step"]
            else f"Nothing fits up to the end, step {len(self) - 1}; the cursor stays at step "
            f"{self.index}.\nWiden the condition, or go back first: cursor.seek(0)."
        )
        message = f"No later step has {asked}.\n{where}"
        return NodeNotFoundError(message, near=(), index=self.index, behind=tuple(behind))

    def __repr__(self) -> str:
        """Return the deterministic text."""
        return views.describe(self)

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        return views.mimebundle(self)


class _Conditions(TypedDict):
    target: str | None
    module: str | None
    norm_over: float | None
    nonfinite: bool
    accumulate: bool
    every_step: bool


def _asked(conditions: _Conditions) -> list[tuple[str, object]]:
    asked = [
        (name, value)
        for name, value in conditions.items()
        if value is not None and value is not False
    ]
    return [
        ("predicate", "...") if name == "every_step" else (name, value) for name, value in asked
    ]


def _choices(like: Sequence[str], known: Set[str]) -> tuple[str, str]:
    """What names there are, the nearest or else the first, and what to do."""
    names = like or sorted(filter(None, known))
    if not names:
        return "There are none.", "Use a condition such as accumulate=True or nonfinite=True."
    advice = f"Use one of these, or a glob such as {f'{names[0][:4]}*'!r}."
    if like:
        return f"Nearest names: {', '.join(like)}.", advice
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"None is like it; there are {', '.join(names[:NAMED])}{more}.", advice


def _count(n: int, here: str, opposite: str) -> int:
    n = whole_number(n, here)
    if n < 0:
        message = (
            f"{here}({n}) is not a number of steps.\n"
            "Counts start at 0, which stays where it is.\n"
            f"Use {opposite}({-n}) for the other direction."
        )
        raise StepError(message, n=n)
    return n
