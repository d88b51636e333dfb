"""Turn a recording into the Stepper: a widget that goes through it, in both directions of time."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import traitlets

from autograd_lab import show
from autograd_lab.errors import StepError
from autograd_lab.recording import Recording
from autograd_lab.replay import Cursor, Frame, require_recording, whole_number

from .hiding import with_values_hidden
from .module import module_css, module_js
from .pack import pack_of, undrawn
from .stepper_page import framed_stepper
from .stepper_text import NO_ANYWIDGET, stepper_static, stepper_text

try:
    from anywidget import AnyWidget
except ImportError:
    AnyWidget = traitlets.HasTraits  # all but the view works: text, picture, traits, page

__all__ = ["Stepper"]

HAS_VIEW = AnyWidget is not traitlets.HasTraits
STILL = "The same as a still picture and as text"
STATIC = "AUTOGRAD_LAB_STATIC"
VIEW = "AUTOGRAD_LAB_VIEW"


class StepNumber(int):
    """The number of the step where a Stepper stands; called, it goes `n` steps forward."""

    _stepper: Stepper

    def __call__(self, n: int = 1) -> Frame:
        """Go `n` steps forward, at most to the end."""
        return self._stepper._forward(n)


class StepTrait(traitlets.Int):
    """A step of the Stepper's recording: checked before anything changes."""

    def validate(self, obj: Any, value: Any) -> int:  # noqa: ANN401 (as traitlets has it)
        """Return the step; raises StepError that names the range."""
        step = whole_number(value, "go")
        obj._cursor.seek(step)
        return step

    def get(self, obj: Any, cls: Any = None) -> StepNumber:  # noqa: ANN401 (as traitlets has it)
        """The step, which can be called too: a Stepper's `step` is its place and its verb."""
        number = StepNumber(super().get(obj, cls) or 0)
        number._stepper = obj
        return number


class Stepper(AnyWidget):  # pyright: ignore[reportGeneralTypeIssues]
    """Step through a recording in a notebook: graph, numbers, rules and code at every step.

    recording  what `with record() as rec:` left in rec.recording
    hide       "values" shows numbers as ? until they are revealed, for predictions first
    height     in px; None takes about 60 % of the window

    `stepper.step` is the number of the step, 0 before anything; set it, observe it or jslink it
    as with any ipywidget. Called, `stepper.step()`, it goes forward. Moves return the Frame,
    without values while these are hidden.
    Raises RecordingError for what is no Recording, such as a Recorder.
    """

    _esm = module_js()
    _css = module_css()
    pack = traitlets.Bytes(b"").tag(sync=True)
    step = StepTrait(0).tag(sync=True)
    hide = traitlets.Enum(["", "values"], default_value="").tag(sync=True)
    message = traitlets.Unicode("").tag(sync=True)
    fault = traitlets.Unicode("").tag(sync=True)
    height = traitlets.Int(0, min=0).tag(sync=True)
    _is_open = False

    def __init__(
        self,
        recording: Recording,
        *,
        hide: str = "",
        height: int | None = None,
        **traits: Any,  # noqa: ANN401 (traits of ipywidgets: layout, tooltip)
    ) -> None:
        self.recording = require_recording(recording, "Stepper")
        self._cursor = Cursor(recording)
        self._hidden: Cursor | None = None
        self._owns_layout = "layout" not in traits
        super().__init__(hide=hide, height=height or 0, **traits)
        self._is_open = True
        self.set_trait("pack", pack_of(recording, hide=hide))

    @property
    def frame(self) -> Frame:
        """The picture at this step; without values while they are hidden."""
        return self._shown().seek(self._cursor.frame.index)

    def go(self, index: int) -> Frame:
        """Go to step `index`; raises StepError that names the range and stays where it is."""
        return self._moved(lambda cursor: cursor.seek(whole_number(index, "go")))

    def back(self, n: int = 1) -> Frame:
        """Go `n` steps back, at most to the start."""
        return self._moved(lambda cursor: cursor.back(n))

    def _forward(self, n: int) -> Frame:
        return self._moved(lambda cursor: cursor.step(n))

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
        """Go forward to the next step at which all given conditions hold, as Cursor.run_until.

        Raises NodeNotFoundError, which names the nearest names, and stays where it is.
        """
        return self._moved(
            lambda cursor: cursor.run_until(
                target,
                module=module,
                norm_over=norm_over,
                nonfinite=nonfinite,
                accumulate=accumulate,
                predicate=predicate,
            )
        )

    def reveal(self) -> None:
        """Show the numbers that `hide="values"` keeps back."""
        self.hide = ""

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write one page with the Stepper at this step, for any browser: no kernel, no network.

        Returns its path; folders on the way are made.
        """
        return show.to_html(self.recording, path, step=int(self.step), hide=self.hide)

    def close(self) -> None:
        """Take its views out of the notebook and let go of what they show."""
        if not self._is_open:  # also where the constructor refused its arguments
            return
        self._is_open = False
        if HAS_VIEW:
            layout = self.layout
            super().close()
            if self._owns_layout:
                layout.close()
        self.unobserve_all()
        self.set_trait("pack", b"")

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take what a view sends; an error of somebody who observes it is shown in the view."""
        try:
            super().set_state(sync_data)
        except Exception as error:  # whatever a user's callback raises
            self.message = f"{type(error).__name__}: {error}"

    def __repr__(self) -> str:
        """Return the deterministic text of its state."""
        fault = f"The view failed: {self.fault}" if self.fault else ""
        notes = (self.message, fault, undrawn(self.recording), "" if HAS_VIEW else NO_ANYWIDGET)
        return stepper_text(self.frame, filter(None, notes), is_hidden=bool(self.hide))

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        text, step = repr(self), int(self.step)
        still = stepper_static(self._shown().recording, step, text)
        data = {"text/plain": text, "text/html": still}
        if os.environ.get(STATIC, "") not in ("", "0"):
            return data, {}
        if os.environ.get(VIEW) == "page":
            page = framed_stepper(self.pack, step=step, hide=self.hide, height=self.height)
            folded = f"<details><summary>{STILL}</summary>{still}</details>"
            return {**data, "text/html": page + folded}, {}
        live = super()._repr_mimebundle_() if HAS_VIEW and self._is_open else None
        return {**(live[0] if live else {}), **data}, {}

    def _moved(self, move: Callable[[Cursor], Frame]) -> Frame:
        """Let a move of the cursor move the views; a refusal is shown there too."""
        self.message = ""
        try:
            step = move(self._cursor).index
        except StepError as error:
            words = str(error).replace("cursor.seek(", "stepper.go(").replace("cursor", "Stepper")
            self.message = words
            raise type(error)(words, **error.facts) from None
        self.step = step
        return self.frame

    def _shown(self) -> Cursor:
        """A cursor over the recording as far as it is revealed."""
        if not self.hide:
            return self._cursor
        if self._hidden is None:
            self._hidden = Cursor(with_values_hidden(self.recording))
        return self._hidden
