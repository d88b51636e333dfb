"""Turn an answer and the right answer into how they differ, in words that a learner can act on.

The words say which part of the answer is meant, what it is, what kind of value is expected, and the
mistake where it is certain; never the right value. Shape comes first, then values in float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
import torch

from autograd_lab.teach import kinds
from autograd_lab.teach.closeness import close_places, to_tensor
from autograd_lab.teach.mistakes import mistake

__all__ = ["common_mistake", "difference", "is_blank", "not_whole", "wrong_shape"]

_NOT_FINITE = (
    ("NaN (not a number)", torch.isnan, "look for 0/0, inf - inf, sqrt or log of less than 0"),
    ("inf", torch.isinf, "look for a division by 0, log of 0, or exp of a large number"),
)


def is_blank(answer: object) -> bool:
    """Whether the literal `...` is the answer, or still stands somewhere in its tree."""
    if isinstance(answer, Mapping):
        return any(is_blank(part) for part in answer.values())
    if isinstance(answer, (tuple, list)):
        return any(is_blank(part) for part in answer)
    return answer is ...


def difference(mine: object, right: object, *, tol: float, names: object = None) -> str | None:
    """Say how `mine` differs from `right`, or return None when they agree.

    Tensors, arrays, numbers and lists of numbers are compared by value: dtype, device, layout and
    `requires_grad` don't matter; NaN agrees with NaN. True and False are no numbers. A tuple may be
    given as a list, and the other way round.

    tol    agree when |mine - right| <= tol * |right| + tol * min(1, largest finite |right|); two
           integer answers agree exactly
    names  what the parts are called: a tree of texts in the form of `right`; a part without a name
           is `answer[0]`
    """
    try:
        found = list(_differences(mine, right, tol, _Place(names)))
        if not found:
            return None
        place, words = found[0]
        only = "the rest is right" if len(found) == 1 and place.path else None
        return "; ".join(filter(None, (words, only, common_mistake(mine, right))))
    except Exception as error:  # an answer is anything at all: a check never raises because of it
        return f"your answer can't be compared ({type(error).__name__})"


def wrong_shape(mine: object, right: object, *, names: object = None) -> str | None:
    """Say which shape a tensor has in place of which, or return None for all other answers."""
    if not isinstance(mine, torch.Tensor | np.ndarray) or not isinstance(right, torch.Tensor):
        return None
    ours = torch.empty(mine.shape, device="meta")
    return None if ours.shape == right.shape else _shapes_differ(ours, right, _Place(names))


def not_whole(mine: object, right: object, *, names: object = None) -> str | None:
    """Say that a number is no whole one where a whole one, such as a count, is asked for."""
    counts = isinstance(right, int) and not isinstance(right, bool)
    if not counts or isinstance(mine, (list, tuple)) or _no_number(mine, right, _Place()):
        return None
    try:
        number = to_tensor(mine)
    except (RuntimeError, ValueError):
        return None
    if number.ndim or number.dtype is torch.bool:
        return None
    if not number.is_complex() and number.isfinite() and number == number.trunc():
        return None
    return f"{_Place(names)} is {kinds.kind(mine)}; expected a whole number"


def common_mistake(mine: object, right: object) -> str | None:
    """The one mistake that explains all numbers together, also those of a tuple of numbers."""
    try:
        ours, theirs = to_tensor(mine), to_tensor(right)
    except (TypeError, ValueError, RuntimeError, NotImplementedError):
        return None
    is_sequence = isinstance(right, (tuple, list))
    return None if is_sequence and ours.shape != theirs.shape else mistake(ours, theirs)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the answer: the names from here on, and the path of indices that led here."""

    names: Any = None
    path: str = ""

    def __str__(self) -> str:
        if isinstance(self.names, str):
            return self.names
        return f"answer{self.path}" if self.path else "your answer"

    def inside(self, key: Any) -> _Place:  # noqa: ANN401 (an index, or any key of a dict)
        known = self.names if isinstance(self.names, (tuple, list, Mapping)) else ()
        is_named = key in known if isinstance(known, Mapping) else key in range(len(known))
        part = known[key] if is_named else None
        return _Place(part, f"{self.path}[{key!r}]")


_Found = Iterator[tuple[_Place, str]]


def _differences(mine: Any, right: Any, tol: float, place: _Place) -> _Found:  # noqa: ANN401 (trees)
    """Every part that differs, with words; nothing when all agree."""
    if isinstance(right, Mapping):
        words, keys = _keys_differ(mine, right, place), list(right)
    elif isinstance(right, (tuple, list)):
        mine = list(mine) if isinstance(mine, torch.Tensor | np.ndarray) and mine.ndim else mine
        words, keys = _lengths_differ(mine, right, place), range(len(right))
    else:
        words, keys = _value_differs(mine, right, tol, place), ()
    if words is not None:
        yield place, words
        return
    for key in keys:
        yield from _differences(mine[key], right[key], tol, place.inside(key))


def _value_differs(mine: object, right: object, tol: float, place: _Place) -> str | None:
    if isinstance(right, bool | np.bool_):
        return _truth_differs(mine, right, place)
    if isinstance(right, torch.Tensor | np.ndarray | np.generic | Number):
        return _numbers_differ(mine, right, tol, place)
    if isinstance(right, str) and isinstance(mine, str):
        return _texts_differ(mine, right, place)
    if type(mine) is not type(right):
        return _wrong_kind(mine, right, place)
    return None if mine == right else f"{place} is {kinds.kind(mine)}; another one is right"


def _wrong_kind(mine: object, right: object, place: _Place) -> str:
    hint = kinds.advice(mine, right)
    wanted = kinds.expected(right, place.names)
    return f"{place} is {kinds.kind(mine)}; expected {wanted}" + (f"; {hint}" if hint else "")


def _keys_differ(mine: object, right: Mapping, place: _Place) -> str | None:
    if not isinstance(mine, Mapping):
        return _wrong_kind(mine, right, place)
    missing, extra = [k for k in right if k not in mine], [k for k in mine if k not in right]
    facts = [f"missing: {kinds.names(missing)}"] if missing else []
    facts += [f"not asked for: {kinds.names(extra)}"] if extra else []
    return f"the keys of {place} differ; {'; '.join(facts)}" if facts else None


def _lengths_differ(mine: object, right: Sequence, place: _Place) -> str | None:
    if not isinstance(mine, (tuple, list)):
        return _wrong_kind(mine, right, place)
    if len(mine) == len(right):
        return None
    values = "1 value" if len(mine) == 1 else f"{len(mine)} values"
    if mine and all(isinstance(part, str) for part in mine):
        values += f" ({', '.join(mine)})"
    return f"{place} has {values}; expected {kinds.expected(right, place.names)}"


def _truth_differs(mine: object, right: object, place: _Place) -> str | None:
    if not _is_truth_value(mine):
        return _wrong_kind(mine, right, place)
    return f"{place} is {bool(mine)}; the other one is right" if bool(mine) != bool(right) else None


def _texts_differ(mine: str, right: str, place: _Place) -> str | None:
    if mine == right:
        return None
    if mine.strip().lower() == right.strip().lower():
        return f"{place} is right but for capitals or spaces: you wrote {mine!r}"
    return f"{place} is {kinds.kind(mine).removeprefix('the text ')}; another one is right"


def _numbers_differ(mine: object, right: object, tol: float, place: _Place) -> str | None:
    odd = _no_number(mine, right, place)
    if odd:
        return odd
    try:
        a, b = to_tensor(mine), to_tensor(right)
    except (RuntimeError, ValueError):  # numbers, but of no one shape
        return f"the rows of {place} have different lengths; expected {kinds.expected(right)}"
    if a.shape != b.shape:
        return _shapes_differ(a, b, place)
    if a.dtype is torch.bool and b.dtype is not torch.bool:
        return f"{place} holds True and False; expected numbers; .float() makes 1 and 0 of them"
    if b.dtype is torch.bool and a.dtype is not torch.bool:
        return f"{place} holds numbers; expected True and False, as x > 0 gives them"
    wrong = ~close_places(a, b, tol=tol)
    if not wrong.any():
        return None
    wrong = wrong.any(-1) if wrong.shape != a.shape else wrong
    for name, is_bad, hint in _NOT_FINITE:
        bad = int((is_bad(a) & b.isfinite()).sum())
        if bad:
            which = "is" if a.ndim == 0 else f"has {bad} of {a.numel()} numbers that are"
            return f"{place} {which} {name}; {hint}"
    if a.ndim == 0:
        return f"{place} is {kinds.kind(a)}; another number is right"
    return f"{int(wrong.sum())} of {wrong.numel()} numbers differ in {place}"


def _shapes_differ(ours: torch.Tensor, theirs: torch.Tensor, place: _Place) -> str:
    has = "has" if ours.ndim else "is"
    return f"{place} {has} {kinds.shape(ours)}; expected {kinds.shape(theirs)}"


def _no_number(mine: object, right: object, place: _Place) -> str | None:
    """Words where a value, or a part of a list of values, is no number at all."""
    if isinstance(mine, (list, tuple)):
        parts = (_no_number(part, 0.0, place.inside(key)) for key, part in enumerate(mine))
        return next(filter(None, parts), None)
    if isinstance(mine, torch.Tensor) and mine.is_meta:
        return (
            f"{place} is on the meta device and holds no numbers; expected {kinds.expected(right)}"
        )
    is_flag = isinstance(mine, bool | np.bool_) and not _is_truth_tensor(right)
    has_numbers = isinstance(mine, torch.Tensor | np.ndarray | np.generic | Number)
    has_other_things = isinstance(mine, np.ndarray | np.generic) and mine.dtype.kind in "OUS"
    if is_flag or not has_numbers or has_other_things:
        return _wrong_kind(mine, right, place)
    return None


def _is_truth_value(value: object) -> bool:
    if isinstance(value, torch.Tensor | np.ndarray):
        return value.ndim == 0 and value.dtype in (torch.bool, np.bool_)
    return isinstance(value, bool | np.bool_)


def _is_truth_tensor(value: object) -> bool:
    return getattr(value, "dtype", None) in (torch.bool, np.dtype(bool))
