"""Turn a learner's tensor and the right one into the mistake that lies between them, in words.

A mistake is named only where nothing else is likely to give these numbers; else nothing is said.
"""

from __future__ import annotations

import torch

from autograd_lab.teach.closeness import agree

__all__ = ["mistake"]

_TOL = 1e-6
_LARGEST_FACTOR = 4096  # a whole factor above this is no batch size or width of a lesson
_COARSE = (torch.float16, torch.bfloat16)


def mistake(ours: torch.Tensor, theirs: torch.Tensor) -> str | None:
    """Name the mistake: another shape, a sum too few or too many, sign, factor, rounding."""
    if torch.bool in (ours.dtype, theirs.dtype) or ours.numel() == 0 or theirs.numel() == 0:
        return None
    if ours.ndim == 2 and theirs.ndim == 2 and _agree(ours.T, theirs):
        return "it is transposed, .T turns it round"
    if ours.shape != theirs.shape:
        return _shape_mistake(ours, theirs)
    if not theirs.any():
        return None
    if _agree(-ours, theirs):
        return "every sign is the other way round" if ours.numel() > 1 else "the sign is wrong"
    return _rounding(ours, theirs) or _factor(ours, theirs)


def _shape_mistake(ours: torch.Tensor, theirs: torch.Tensor) -> str | None:
    if ours.numel() == theirs.numel():
        same = _agree(ours.flatten(), theirs.flatten())
        return "the numbers are right, only their shape is not" if same else None
    if ours.ndim == theirs.ndim + 1 and _agree(ours.sum(0), theirs):
        return "the sum over the first dimension is missing, .sum(0) takes it"
    if ours.ndim == 0 and _agree(ours, theirs.sum()):
        return "too much is summed: the sum of the right tensor is left"
    if ours.ndim == theirs.ndim - 1 and _agree(ours, theirs.sum(0)):
        return "too much is summed: the first dimension has to stay"
    return None


def _rounding(ours: torch.Tensor, theirs: torch.Tensor) -> str | None:
    """Right but for a dtype that can't hold the values."""
    dtype = str(ours.dtype).removeprefix("torch.")
    if ours.dtype in _COARSE and agree(ours, theirs, tol=4 * torch.finfo(ours.dtype).eps):
        return f"right up to the rounding of {dtype}, compute in float32"
    if not (ours.is_floating_point() or ours.is_complex()) and theirs.is_floating_point():
        cut = _agree(ours, theirs.trunc()) or _agree(ours, theirs.round())
        return f"the digits after the point are lost, {dtype} holds whole numbers" if cut else None
    return None


def _factor(ours: torch.Tensor, theirs: torch.Tensor) -> str | None:
    """A constant whole factor, up or down; told only for two different numbers or more."""
    if theirs.is_complex() or ours.is_complex() or len(theirs[theirs != 0].unique()) < 2:
        return None
    mine, right = ours.double().abs().max().item(), theirs.double().abs().max().item()
    if mine == 0:
        return "it is all zeros"
    ratio = max(mine / right, right / mine)
    if not ratio <= _LARGEST_FACTOR:  # also when it is NaN
        return None
    up, factor = mine > right, round(ratio)
    scaled = ours.double() / factor if up else ours.double() * factor
    for sign, words in ((1, ""), (-1, ", with the sign the other way round")):
        if factor >= 2 and _agree(sign * scaled, theirs):
            return f"everything is {factor} times too {'large' if up else 'small'}{words}"
    return None


def _agree(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    return agree(ours, theirs, tol=_TOL)
