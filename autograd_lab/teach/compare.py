"""Turn a learner's value beside torch's, or an expected error, into a verdict."""

from __future__ import annotations

import math
from types import TracebackType

import torch

from autograd_lab.errors import ExerciseError
from autograd_lab.teach.agreement import close_places, difference, is_blank, to_tensor
from autograd_lab.teach.verdict import Verdict

__all__ = ["compare", "expect_error"]

_TOL = 1e-6
_LARGEST_FACTOR = 4096  # a whole factor above this is no batch size or width of a lesson


def compare(name: str, mine: object, tensor: torch.Tensor) -> Verdict:
    """Compare a value worked out by hand with torch's, in words.

    mine    tensor, array, number or nested list; the blank `...` is "not answered yet"
    tensor  torch's value, any shape and dtype

    The verdict is "exact" (every value the same), "right" (within 1e-6 of the largest value), or
    says how they differ: shape, in how many places, how large the difference, and where it is
    certain the mistake: transposed, not summed over the first dimension, opposite sign, a constant
    factor.
    """
    if is_blank(mine):
        return Verdict(name=name, text="not answered yet")
    words = difference(mine, tensor, tol=_TOL)
    if words is None:
        exact = difference(mine, tensor, tol=0.0) is None
        text = "exact: equal to torch's value" if exact else "right: equal up to rounding"
        return Verdict(name=name, text=text, ok=True)
    try:
        ours, theirs = to_tensor(mine), to_tensor(tensor)
    except (TypeError, ValueError, RuntimeError):
        return Verdict(name=name, text=f"not yet: {words}")
    facts = [words, *_largest(ours, theirs), *_mistake(ours, theirs)]
    return Verdict(name=name, text="not yet: " + "; ".join(facts))


class expect_error:  # noqa: N801 (used as `with expect_error(...)`, like contextlib's suppress)
    """Context manager that shows an error as content.

    It prints a verdict with the class and the phrase, never the raw text.

    cls     the exception class; a subclass counts
    phrase  part of the message that is stable between releases of torch

    Another error passes through unchanged. No error prints "not yet". The verdict is kept as
    `.verdict`.
    """

    def __init__(self, cls: type[Exception], phrase: str) -> None:
        is_class = isinstance(cls, type) and issubclass(cls, Exception)
        if not is_class or not isinstance(phrase, str):
            message = (
                "expect_error needs an exception class and a phrase of its message. "
                f"It was given {cls!r} and {phrase!r}. "
                "Write expect_error(RuntimeError, 'does not require grad')."
            )
            raise ExerciseError(message, cls=cls, phrase=phrase)
        self.cls, self.phrase = cls, phrase
        self.verdict = Verdict(name=cls.__name__, text="not run yet")

    def __enter__(self) -> expect_error:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Swallow the expected error only."""
        name = self.cls.__name__
        if error is None:
            self.verdict = Verdict(
                name=name, text=f"not yet: no error came; expected “{self.phrase}”"
            )
        elif isinstance(error, self.cls) and self.phrase in str(error):
            self.verdict = Verdict(name=name, text=f"raised as expected: “{self.phrase}”", ok=True)
        else:
            return False
        print(self.verdict)  # a context manager has no value that a cell could show
        return True


def _largest(ours: torch.Tensor, theirs: torch.Tensor) -> list[str]:
    """The largest difference as a power of ten: one digit more would be noise."""
    if ours.shape != theirs.shape or ours.numel() == 0 or torch.bool in (ours.dtype, theirs.dtype):
        return []
    gap = (ours.to(torch.complex128) - theirs.to(torch.complex128)).abs()
    gap = gap[gap.isfinite()]
    if gap.numel() == 0 or gap.max() == 0:
        return []
    exponent = math.floor(math.log10(gap.max().item()) + 1e-9)
    return [f"the largest difference is between {10.0**exponent:g} and {10.0 ** (exponent + 1):g}"]


def _mistake(ours: torch.Tensor, theirs: torch.Tensor) -> list[str]:
    """Name the mistake where nothing else gives these numbers."""
    if torch.bool in (ours.dtype, theirs.dtype):
        return []
    if ours.ndim == 2 and theirs.ndim == 2 and _agree(ours.T, theirs):
        return ["yours is transposed"]
    if ours.ndim == theirs.ndim + 1 and _agree(ours.sum(0), theirs):
        return ["the sum over the first dimension is missing"]
    if ours.shape != theirs.shape or not theirs.any():
        return []
    if _agree(-ours, theirs):
        return ["the sign is the other way round"]
    return _factor(ours, theirs)


def _factor(ours: torch.Tensor, theirs: torch.Tensor) -> list[str]:
    """A constant whole factor, up or down; told only for two different numbers or more."""
    if theirs.is_complex() or ours.is_complex() or len(theirs[theirs != 0].unique()) < 2:
        return []
    mine, right = ours.double().abs().max().item(), theirs.double().abs().max().item()
    if mine == 0:
        return ["yours is all zeros"]
    ratio = max(mine / right, right / mine)
    if not ratio <= _LARGEST_FACTOR:  # also when it is NaN
        return []
    up, factor = mine > right, round(ratio)
    scaled = ours.double() / factor if up else ours.double() * factor
    for sign, words in ((1, ""), (-1, ", with the sign the other way round")):
        if factor >= 2 and _agree(sign * scaled, theirs):
            return [f"yours is {factor} times too {'large' if up else 'small'}{words}"]
    return []


def _agree(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    return ours.shape == theirs.shape and bool(close_places(ours, theirs, tol=_TOL).all())
