"""Turn a learner's answer, a value or a function, into a verdict; known mistakes get their hint.

A blank never raises, so that Run All and nbval go on. A mistake that gives the right answer by
chance is ruled out by drawing the data again: with x = 3 the value x**3 is the derivative 3x**2.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from types import TracebackType
from typing import Any

import torch

from autograd_lab.errors import ExerciseError
from autograd_lab.teach import kinds
from autograd_lab.teach.agreement import (
    common_mistake,
    difference,
    is_blank,
    not_whole,
    wrong_shape,
)
from autograd_lab.teach.given import Given, copied
from autograd_lab.teach.lessons import solution_source
from autograd_lab.teach.progress_file import remember
from autograd_lab.teach.raised import raised
from autograd_lab.teach.verdict import Verdict

__all__ = ["Exercise"]

_MOST_DRAWS = 200
_BLANK = "not answered yet"
_NOTHING_RETURNED = "your function returned None; is `return` missing, or is it an empty .grad?"


class Exercise:
    """One question with data that differ between learners.

    name    one word, unique among all lessons; cells are tagged `exercise:<name>`
    make    make(generator) -> dict of named data; draws only from the torch.Generator it is given
    oracle  oracle(**data) -> the right answer: tensors, numbers, strings, or tuples, lists, dicts
            of them
    wrong   pairs (hint, function giving that mistake's answer from the same data)
    hints   words that help step by step, for `hint()`
    tol     relative tolerance, in float64
    names   names(**data) -> what the parts of the answer are called, for verdicts: a tree of texts
            in the form of the answer; a part without a name is `answer[0]`
    series  name that exercises on the same data share (default: the exercise's own name)
    explain explain(answer, **data) -> words about a wrong answer that no mistake gives, or None
    why_shape  why the answer has the shape that it has; a verdict on another shape says so

    Data follow from that name and the environment variable AUTOGRAD_LAB_VARIANT (default 0), never
    from torch's global random state. Every function gets its own copy, so that an answer that works
    in place damages nothing.

    `with exercise:` is for code that may fail: an exception ends the block, and the next `.check`
    says so instead of judging an answer that was never made.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[torch.Generator], dict[str, Any]],
        oracle: Callable[..., Any],
        wrong: Sequence[tuple[str, Callable[..., Any]]] = (),
        hints: Sequence[str] = (),
        tol: float = 1e-6,
        names: Callable[..., object] | None = None,
        series: str | None = None,
        explain: Callable[..., str | None] | None = None,
        why_shape: str = "",
    ) -> None:
        self.name, self.make, self.oracle, self.names = name, make, oracle, names
        self.series = series or name
        self.wrong, self.hints, self.tol = tuple(wrong), tuple(hints), tol
        self.explain, self.why_shape = explain, why_shape
        self._drawn: dict[str, dict[str, Any]] = {}
        self._attempt_count = 0
        self._hint_count = 0
        self._error: Exception | None = None  # of the code inside `with`
        self._refuse_bad_setup(hints)

    def __repr__(self) -> str:
        """What can be done with it."""
        return f"Exercise {self.name}: .data() shows your numbers, .check(answer) judges them"

    def data(self) -> Given:
        """Return a fresh copy of this learner's data.

        It is a dict; shown by itself it says `your x is 10`.

        Raises ExerciseError when no data tell the mistakes apart.
        """
        return Given(self._own_data())

    def _own_data(self) -> dict[str, Any]:
        variant = os.environ.get("AUTOGRAD_LAB_VARIANT") or "0"
        if variant not in self._drawn:
            self._drawn[variant] = self._draw(variant)
        return copied(self._drawn[variant])

    def check(self, answer: object) -> Verdict:
        """Judge a value, or a function that is called with the data by name.

        Whatever the answer does becomes the verdict; the progress file keeps it.
        """
        error, self._error = self._error, None
        verdict = self._judge(answer) if error is None else self._failed(error)
        tried = not verdict.text.startswith(_BLANK)
        self._attempt_count += tried
        remember("exercise", verdict, tried=tried)
        return verdict

    def __enter__(self) -> Exercise:
        """Begin an answer: `with exercise:` before the lines that work it out."""
        self._error = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        """Keep an exception for the next verdict; an interrupt passes."""
        self._error = error if isinstance(error, Exception) else None
        return self._error is not None

    def hint(self) -> Verdict:
        """Return the next hint; after the last one, the last one again."""
        if not self.hints:
            return self._verdict("no hints; .solution() shows an answer once you have tried")
        self._hint_count = min(self._hint_count + 1, len(self.hints))
        place = f"hint {self._hint_count} of {len(self.hints)}"
        return self._verdict(f"{place}: {self.hints[self._hint_count - 1]}")

    def solution(self, force: bool = False) -> Verdict:
        """Return a worked answer, after a first attempt or with `force=True`."""
        if not (self._attempt_count or force):
            return self._verdict("check an answer first; .solution(force=True) shows it right away")
        source = solution_source(self.name) or _source(self.oracle)
        return self._verdict(
            f"one solution:\n{source}" if source else "no solution is written down"
        )

    def _judge(self, answer: object) -> Verdict:
        if is_blank(answer):
            return self._verdict(_BLANK)
        data = self._own_data()
        right = self.oracle(**copied(data))
        got = answer
        if callable(answer) and not isinstance(answer, type | int):  # Stepper.step is both
            problem = _cannot_be_called(answer, data)
            if problem:
                return self._verdict(f"not yet: {problem}", wrong=True)
            try:
                got = answer(**copied(data))
            except Exception as error:  # whatever the learner's code raises is the verdict
                return self._failed(error)
            if is_blank(got):
                return self._verdict(_BLANK)
            if got is None and right is not None:
                return self._verdict(f"{_BLANK}: {_NOTHING_RETURNED}")  # as of a skeleton
        names = self.names and self.names(**data)
        words = difference(got, right, tol=self.tol, names=names)
        if words is None:
            return self._verdict("correct", ok=True)
        fraction = not_whole(got, right, names=names)
        if fraction:
            return self._verdict(f"not yet: {fraction}", wrong=True)
        known = self._known_mistake(got, data)
        shape = wrong_shape(got, right, names=names) if self.why_shape else None
        if shape:
            known = known or common_mistake(got, right)
            words = f"{shape}: {self.why_shape}" + (f"; {known}" if known else "")
        elif known:
            words = known
        is_clear = known or "; expected " in words
        stuck = "; .hint() helps" if self.hints and not is_clear else ""
        return self._verdict(f"not yet: {words}{stuck}", wrong=True)

    def _known_mistake(self, got: object, data: dict[str, Any]) -> str | None:
        for hint, mistake in self.wrong:
            if difference(got, mistake(**copied(data)), tol=self.tol) is None:
                return hint
        return self.explain(got, **copied(data)) if self.explain else None

    def _failed(self, error: Exception) -> Verdict:
        """The verdict on code that raised; where shapes may be the reason, with the right one."""
        words = raised(error)
        if self.why_shape and isinstance(error, RuntimeError | IndexError):
            wanted = kinds.shape(self.oracle(**self._own_data()))
            words += f"; expected {wanted}: {self.why_shape}"
        return self._verdict(words, wrong=not words.startswith(_BLANK))

    def _draw(self, variant: str) -> dict[str, Any]:
        digest = hashlib.sha256(f"{self.series}/{variant}".encode()).digest()
        generator = torch.Generator(device="cpu").manual_seed(int.from_bytes(digest[:6], "big"))
        for _ in range(_MOST_DRAWS):
            data = self.make(generator)
            functions = (self.oracle, *(mistake for _, mistake in self.wrong))
            answers = [function(**copied(data)) for function in functions]
            if all(difference(a, b, tol=10 * self.tol) for a, b in combinations(answers, 2)):
                return data
        message = (
            f"Exercise {self.name!r}: two of its answers are always the same. "
            f"{_MOST_DRAWS} draws of `make` gave no data on which the oracle and all mistakes "
            "differ. Give `make` more room, or merge the two mistakes."
        )
        raise ExerciseError(message, name=self.name, variant=variant)

    def _refuse_bad_setup(self, hints: object) -> None:
        problem = None
        if not isinstance(self.name, str) or not self.name.isidentifier():
            problem = f"its name is {self.name!r}. Use one word like 'max_rule'"
        elif not callable(self.make) or not callable(self.oracle):
            problem = "`make` or `oracle` can't be called. Give two functions"
        elif isinstance(hints, str):
            problem = "`hints` is one string. Give a list of hints"
        elif not all(len(pair) == 2 and callable(pair[1]) for pair in self.wrong):
            problem = "`wrong` is no list of pairs. Give (hint, function) for each mistake"
        elif len({hint for hint, _ in self.wrong}) < len(self.wrong):
            problem = "two mistakes share one hint. Give each its own"
        elif not self.tol >= 0:
            problem = f"tol is {self.tol}. Give a number from 0 up"
        if problem:
            message = f"Exercise can't be made: {problem}."
            raise ExerciseError(message, name=self.name)

    def _verdict(self, text: str, *, ok: bool = False, wrong: bool = False) -> Verdict:
        return Verdict(name=self.name, text=text, ok=ok, wrong=wrong)


def _cannot_be_called(answer: Callable[..., Any], data: Mapping[str, Any]) -> str | None:
    """Words when the function's parameters aren't the data's names."""
    try:
        signature = inspect.signature(answer)
    except (TypeError, ValueError):  # some built-in functions have none
        return None
    try:
        signature.bind(**data)
    except TypeError:
        return f"your function takes {signature}; give it the arguments ({', '.join(data)})"
    return None


def _source(function: Callable[..., Any]) -> str | None:
    """Source text of the oracle, where Python knows it."""
    try:
        return textwrap.dedent(inspect.getsource(function)).strip()
    except (OSError, TypeError):
        return None
