"""Turn a learner's value beside torch's, or an expected error, into a verdict."""

from __future__ import annotations

import math
from types import TracebackType

import torch

from autograd_lab.errors import ExerciseError
from autograd_lab.teach.agreement import difference, is_blank
from autograd_lab.teach.closeness import to_tensor
from autograd_lab.teach.mistakes import mistake
from autograd_lab.teach.verdict import Verdict

__all__ = ["compare", "expect_error"]

_TOL = 1e-6


def compare(name: str, mine: object, tensor: torch.Tensor) -> Verdict:
    """Compare a value worked out by hand with torch's, in words.

    mine    tensor, array, number or nested list; the blank `...` is "not answered yet"
    tensor  torch's value, any shape and dtype

    The verdict is "exact" (every value the same), "right" (within 1e-6 of the largest value), or
    says how they differ: shape, in how many places, and the mistake where it is certain
    (transposed, not summed over the first dimension, opposite sign, a constant factor, a coarse
    dtype), else how large the difference is.
    """
    if is_blank(mine):
        return Verdict(name=name, text="not answered yet")
    if tensor is None:  # a .grad that is handed in too early
        text = "torch's value is None; run backward() first, which fills .grad of the leaves"
        return Verdict(name=name, text=f"nothing to compare with: {text}", wrong=True)
    words = difference(mine, tensor, tol=_TOL)
    if words is None:
        exact = difference(mine, tensor, tol=0.0) is None
        text = "exact: equal to torch's value" if exact else "right: equal up to rounding"
        return Verdict(name=name, text=text, ok=True)
    size = _largest(mine, tensor)
    text = f"not yet: {words}" + (f"; {size}" if size else "")
    return Verdict(name=name, text=text, wrong=True)


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
            text = f"not yet: no error came; expected “{self.phrase}”"
            self.verdict = Verdict(name=name, text=text, wrong=True)
        elif isinstance(error, self.cls) and self.phrase in str(error):
            self.verdict = Verdict(name=name, text=f"raised as expected: “{self.phrase}”", ok=True)
        else:
            return False
        print(self.verdict)  # a context manager has no value that a cell could show
        return True


def _largest(mine: object, tensor: torch.Tensor) -> str | None:
    """The largest difference as a power of ten: one digit more would be noise.

    Nothing where it says nothing more: a certain mistake, another shape, a single number.
    """
    try:
        ours, theirs = to_tensor(mine), to_tensor(tensor)
    except (TypeError, ValueError, RuntimeError):
        return None
    if ours.shape != theirs.shape or ours.numel() < 2 or torch.bool in (ours.dtype, theirs.dtype):
        return None
    gap = (ours.to(torch.complex128) - theirs.to(torch.complex128)).abs()
    gap = gap[gap.isfinite()]
    if mistake(ours, theirs) or gap.numel() == 0 or gap.max() == 0:
        return None
    exponent = math.floor(math.log10(gap.max().item()) + 1e-9)
    return f"the largest difference is between {10.0**exponent:g} and {10.0 ** (exponent + 1):g}"
