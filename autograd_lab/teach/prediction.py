"""Turn a learner's guess, made before the cell that answers it, into a verdict afterwards."""

from __future__ import annotations

import difflib
import html
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import ipywidgets as widgets
import numpy as np
import torch

from autograd_lab.errors import ExerciseError, GuessError
from autograd_lab.teach import kinds
from autograd_lab.teach.progress_file import remember
from autograd_lab.teach.verdict import Verdict

__all__ = ["Prediction"]

_MOST_RADIO_BUTTONS = 6
_A_NODE = "a node's name such as 'MulBackward'"
_CLOSE = 0.01  # a guess within one per cent counts: a learner may round 3/11 to 0.27


class Prediction:
    """A question that the learner answers before the cell that shows it; of one of three kinds.

    choices   the possible answers, as text or numbers
    number    True for any finite number, or (lowest, highest)
    whole     only whole numbers count as a guess, as for "how many?"
    node      True for the name of a graph node, or the names to choose from; the number at the end
              of torch's names (`MulBackward0`) is ignored
    question  what is asked, in words; a control shows it above the answers
    """

    def __init__(
        self,
        name: str,
        choices: Sequence[str | float] | None = None,
        number: bool | tuple[float, float] = False,
        node: bool | Sequence[str] = False,
        question: str = "what do you expect?",
        whole: bool = False,
    ) -> None:
        kinds = (choices is not None, number is not False, node is not False)
        is_range = isinstance(number, (tuple, list)) and len(number) == 2
        is_complete = all((choices != [], node != [], is_range or isinstance(number, bool)))
        if sum(kinds) != 1 or not is_complete or isinstance(choices, str) or isinstance(node, str):
            message = (
                f"Prediction {name!r} needs exactly one kind of answer. "
                f"It was given choices={choices!r}, number={number!r}, node={node!r}. "
                "Give choices=[...], number=True or node=True."
            )
            raise ExerciseError(message, name=name)
        self.name, self.question = name, question
        self.range = (-math.inf, math.inf) if isinstance(number, bool) else number
        self.is_number, self.is_node = number is not False, node is not False
        self.is_whole = whole
        names = choices if choices is not None else () if isinstance(node, bool) else node
        self.choices = tuple(map(_node_name, names)) if self.is_node else tuple(names)
        self._guess: Any = None
        self._question: _Question | None = None

    def __repr__(self) -> str:
        """The question as text; the widget of `ask()` says the same."""
        kind = (
            f"one of: {', '.join(map(str, self.choices))}" if self.choices else "the name of a node"
        )
        if self.is_number:
            low, high = self.range
            kind = "a whole number" if self.is_whole else "a number"
            kind += "" if math.isinf(low) else f" from {low:g} to {high:g}"
        kept = "no guess yet" if self._guess is None else f"your guess: {_text(self._guess)}"
        return f"{self.name}: {self.question} {kind} ({kept})"

    def ask(self) -> widgets.VBox:
        """Return the question as a control with a button; asking again returns the same control."""
        if self._question is None:
            self._question = _Question(self)
        return self._question

    def guess(self, value: object) -> Verdict:
        """Keep a guess. The blank `...` keeps none.

        Raises GuessError for a guess of the wrong kind, out of range or not among the choices; the
        kept guess stays.
        """
        if value is ...:
            return Verdict(name=self.name, text="not answered yet")
        try:
            self._guess = self._understood(value)
        except ValueError as error:
            kept = None if self._guess is None else f"Your guess {_text(self._guess)} stays."
            message = f"{self.name}: this is not kept. {error} {kept or 'You have no guess yet.'}"
            raise GuessError(message, name=self.name, value=value) from None
        verdict = Verdict(name=self.name, text=f"guess kept: {_text(self._guess)}")
        remember("prediction", verdict, tried=True)
        return verdict

    def reveal(self, actual: object) -> Verdict:
        """Compare the kept guess with what happened; without a guess, tell it all the same.

        actual  a choice, a number (also a tensor of one element), a node's name or a `grad_fn`
        """
        try:
            actual = self._understood(actual, is_guess=False)
        except ValueError as error:
            message = (
                f"Prediction {self.name!r} can't be revealed. {error} "
                "Pass to `reveal` what happened, of the same kind."
            )
            raise ExerciseError(message, name=self.name, actual=actual) from None
        ok, truth = self._is_right(actual), f"it is {_text(actual)}"
        if self._guess is None:
            text = f"no guess yet; {truth}"
        else:
            text = f"right: {truth}" if ok else f"you expected {_text(self._guess)}; {truth}"
        wrong = not ok and self._guess is not None
        verdict = Verdict(name=self.name, text=text, ok=ok, wrong=wrong)
        remember("prediction", verdict, tried=False)
        return verdict

    def _is_right(self, actual: Any) -> bool:  # noqa: ANN401 (text or number)
        if self._guess is None or not self.is_number:
            return self._guess == actual
        return math.isclose(self._guess, actual, rel_tol=_CLOSE)

    def _understood(self, value: object, *, is_guess: bool = True) -> object:
        """The value in this prediction's own form. Raises ValueError, in words for the learner."""
        if isinstance(value, torch.Tensor | np.ndarray | np.generic):
            value = value.item() if math.prod(value.shape) == 1 else value
        if self.is_number:
            return self._number(value, is_guess=is_guess)
        if self.is_node:
            value = _node_name(value)
        fits = isinstance(value, str if self.is_node else str | int | float) and value != ""
        same = [choice for choice in self.choices if choice == value] if fits else []
        if fits and (not self.choices or (type(value) is bool) in [type(c) is bool for c in same]):
            return value
        raise ValueError(self._no_choice(value))

    def _no_choice(self, value: object) -> str:
        if value is None or value == "":
            return "Nothing is chosen." if self.choices else f"Nothing is written. Give {_A_NODE}."
        said = _capital(kinds.kind(value))
        if not self.choices:
            return f"{said} is no name of a node. Give {_A_NODE}."
        near = difflib.get_close_matches(str(value), map(str, self.choices), n=1)
        meant = [choice for choice in self.choices if str(choice) in near]
        hint = f" Did you mean {meant[0]!r}?" if meant else ""
        return f"{said} is none of {', '.join(map(str, self.choices))}.{hint}"

    def _number(self, value: object, *, is_guess: bool) -> float:
        low, high = self.range if is_guess else (-math.inf, math.inf)
        problem = None
        if isinstance(value, bool) or not isinstance(value, int | float):
            problem = _no_number(value)
        elif is_guess and not math.isfinite(value):
            problem = f"{kinds.kind(value)} is no finite number."
        elif is_guess and not low <= value <= high:
            problem = f"{_text(value)} is not from {low:g} to {high:g}."
        elif is_guess and self.is_whole and not float(value).is_integer():
            problem = f"{_text(value)} is no whole number. How many: 0, 1, 2 …?"
        if problem:
            raise ValueError(problem)
        return float(value)  # pyright: ignore[reportArgumentType]


class _Question(widgets.VBox):
    """The control of one prediction: no Output widget, and a text form that says its state."""

    def __init__(self, prediction: Prediction) -> None:
        self._prediction = prediction
        self._control = self._fitting_control()
        self._button = widgets.Button(description="Keep my guess")
        self._answer = widgets.HTML()
        self._button.on_click(lambda _: self._keep())
        name, question = map(html.escape, (prediction.name, prediction.question))
        title = widgets.HTML(f"<b>{name}</b>: {question}")
        super().__init__([title, self._control, self._button, self._answer])

    def _fitting_control(self) -> widgets.ValueWidget:
        """No answer is chosen beforehand: a default would be a hint."""
        asked, look = self._prediction, {"layout": widgets.Layout(width="20em")}
        if asked.is_number:
            example = "a whole number" if asked.is_whole else "a number, for example 0.5 or 3/11"
            return widgets.Text(placeholder=example, **look)
        if not asked.choices:
            return widgets.Text(placeholder="for example MulBackward", **look)
        few = len(asked.choices) <= _MOST_RADIO_BUTTONS
        kind = widgets.RadioButtons if few else widgets.Dropdown
        return kind(options=asked.choices, value=None, layout=widgets.Layout(width="max-content"))

    def _keep(self) -> None:
        value = self._control.value
        try:
            value = _typed(value) if self._prediction.is_number else value
            self._answer.value = self._prediction.guess(value).html
        except GuessError as error:
            self._answer.value = html.escape(str(error))

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, Any]:
        """The widget's view, with words for places that have no widgets."""
        return {**(super()._repr_mimebundle_(**kwargs) or {}), "text/plain": repr(self._prediction)}


def _typed(text: str) -> float | str:
    """The number in a text field; what is none stays text, and the refusal then names it."""
    try:
        return float(Fraction(text.replace(" ", "")))
    except (ValueError, ZeroDivisionError, OverflowError):
        return text


def _no_number(value: object) -> str:
    if value is None or value == "":
        return "Nothing is written. Give a number."
    hint = kinds.advice(value, 0.0) if isinstance(value, str | bool) else ""
    if isinstance(value, str) and "," in value:
        hint = "write a point, as in 0.5"
    return f"{_capital(kinds.kind(value))} is no number. {_capital(hint or 'give a number')}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _node_name(value: object) -> object:
    """`MulBackward0` -> `MulBackward`, `torch::autograd::X` -> `X`; a grad_fn gives its name."""
    if callable(getattr(value, "name", None)):
        value = value.name()  # pyright: ignore[reportAttributeAccessIssue]
    if not isinstance(value, str):
        return value
    return value.strip().rpartition("::")[2].rstrip("0123456789")


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
