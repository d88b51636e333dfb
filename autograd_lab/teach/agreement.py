"""Turn an answer and the right answer into how they differ, in words that a learner can act on.

Shape first, then values in float64. The words never hold noisy digits, because notebooks store
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Number

import numpy as np
import torch

__all__ = ["close_places", "difference", "is_blank", "to_tensor"]


def is_blank(answer: object) -> bool:
    """Whether the literal `...` is the answer, or still stands somewhere in its tree."""
    if isinstance(answer, Mapping):
        return any(is_blank(part) for part in answer.values())
    if isinstance(answer, (tuple, list)):
        return any(is_blank(part) for part in answer)
    return answer is ...


def difference(mine: object, right: object, *, tol: float) -> str | None:
    """Say how `mine` differs from `right`, or return None when they agree.

    Tensors, arrays, numbers and lists of numbers are compared by value: dtype, device, layout and
    `requires_grad` don't matter; NaN agrees with NaN. True and False are no numbers. A tuple may be
    given as a list, and the other way round.

    tol  agree when |mine - right| <= tol * |right| + tol * min(1, largest finite |right|); two
         integer answers agree exactly
    """
    try:
        return _tree_difference(mine, right, tol, path="")
    except Exception as error:  # an answer is anything at all: a check never raises because of it
        return f"it can't be compared ({type(error).__name__})"


def to_tensor(value: object) -> torch.Tensor:
    """Return numbers of any kind as a detached dense tensor on the CPU.

    Raises TypeError, ValueError or RuntimeError for what is no number or has no one shape.
    """
    if isinstance(value, torch.Tensor):
        value = value.detach()
        return (value if value.layout is torch.strided else value.to_dense()).cpu()
    if isinstance(value, np.ndarray | np.generic):
        return torch.from_numpy(np.array(value))
    if isinstance(value, (list, tuple)):
        parts = [to_tensor(part) for part in value]
        return torch.stack(parts) if parts else torch.empty(0, device="cpu")
    if isinstance(value, complex):
        return torch.tensor(value, dtype=torch.complex128, device="cpu")
    if isinstance(value, int):
        return torch.tensor(value, device="cpu")
    if isinstance(value, Number):
        return torch.tensor(value, dtype=torch.float64, device="cpu")
    message = f"a {type(value).__name__} is no number or tensor"
    raise TypeError(message)


def close_places(mine: torch.Tensor, right: torch.Tensor, *, tol: float) -> torch.Tensor:
    """Where two tensors of one shape agree: a bool tensor of that shape.

    For complex tensors it has a last dimension of 2: real and imaginary part.
    """
    if not (_is_inexact(mine) or _is_inexact(right)):
        return mine == right  # float64 would merge integers above 2**53
    a, b = _as_real(mine, right), _as_real(right, mine)
    finite = b[b.isfinite()].abs()
    scale = min(1.0, finite.max().item()) if finite.numel() else 0.0
    return torch.isclose(a, b, rtol=tol, atol=tol * (scale or 1.0), equal_nan=True)


def _tree_difference(mine: object, right: object, tol: float, path: str) -> str | None:
    at = f" at {path}" if path else ""
    if isinstance(right, Mapping):
        return _mapping_difference(mine, right, tol, path)
    if isinstance(right, (tuple, list)):
        return _sequence_difference(mine, right, tol, path)
    if isinstance(right, bool | np.bool_):
        if not _is_truth_value(mine):
            return f"True or False is wanted{at}"
        return None if bool(mine) == bool(right) else f"the other one is right{at}"
    if isinstance(right, torch.Tensor | np.ndarray | np.generic | Number):
        return _number_difference(mine, right, tol, at)
    if type(mine) is not type(right):
        return f"a {type(right).__name__} is wanted{at}, this is a {type(mine).__name__}"
    return None if mine == right else f"a different {type(right).__name__} is wanted{at}"


def _mapping_difference(mine: object, right: Mapping, tol: float, path: str) -> str | None:
    at = f" at {path}" if path else ""
    if not isinstance(mine, Mapping):
        return f"a dict with the keys {list(right)} is wanted{at}, this is a {type(mine).__name__}"
    if set(mine) != set(right):
        return f"keys {list(mine)} where {list(right)} are wanted{at}"
    parts = (_tree_difference(mine[key], right[key], tol, f"{path}[{key!r}]") for key in right)
    return next((part for part in parts if part), None)


def _sequence_difference(mine: object, right: Sequence, tol: float, path: str) -> str | None:
    at = f" at {path}" if path else ""
    if isinstance(mine, torch.Tensor | np.ndarray) and mine.ndim > 0:
        mine = list(mine)
    if not isinstance(mine, (tuple, list)):
        return f"a tuple or list of {len(right)} is wanted{at}, this is a {type(mine).__name__}"
    if len(mine) != len(right):
        return f"{len(mine)} values where {len(right)} are wanted{at}"
    parts = (
        _tree_difference(mine[place], part, tol, f"{path}[{place}]")
        for place, part in enumerate(right)
    )
    return next((part for part in parts if part), None)


def _number_difference(mine: object, right: object, tol: float, at: str) -> str | None:
    if mine is None or isinstance(mine, str | Mapping) or callable(mine):
        kind = "None" if mine is None else f"a {type(mine).__name__}"
        return f"a number or tensor is wanted{at}, this is {kind}"
    a, b = to_tensor(mine), to_tensor(right)
    if a.shape != b.shape:
        return f"shape {tuple(a.shape)} where {tuple(b.shape)} is wanted{at}"
    if (a.dtype is torch.bool) != (b.dtype is torch.bool):
        return f"{'numbers are' if a.dtype is torch.bool else 'True or False is'} wanted{at}"
    wrong = ~close_places(a, b, tol=tol)
    if not wrong.any():
        return None
    if (a.isnan() & ~b.isnan()).any():
        return f"NaN (not a number){at}"
    wrong = wrong.any(-1) if wrong.shape != a.shape else wrong
    if wrong.numel() == 1:
        return f"another number is right{at}"
    return f"{int(wrong.sum())} of {wrong.numel()} numbers differ{at}"


def _is_truth_value(value: object) -> bool:
    if isinstance(value, torch.Tensor | np.ndarray):
        return value.ndim == 0 and value.dtype in (torch.bool, np.bool_)
    return isinstance(value, bool | np.bool_)


def _is_inexact(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _as_real(tensor: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """float64 values; when either one is complex, both as (..., 2) real and imaginary parts."""
    if tensor.is_complex() or other.is_complex():
        return torch.view_as_real(tensor.resolve_conj().to(torch.complex128))
    return tensor.double()
