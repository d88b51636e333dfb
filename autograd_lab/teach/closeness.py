"""Turn numbers of any kind into tensors, and two tensors into where they agree within tolerance."""

from __future__ import annotations

from numbers import Number

import numpy as np
import torch

__all__ = ["agree", "close_places", "to_tensor"]


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


def agree(mine: torch.Tensor, right: torch.Tensor, *, tol: float) -> bool:
    """Whether two tensors have one shape and agree in every place."""
    return mine.shape == right.shape and bool(close_places(mine, right, tol=tol).all())


def _is_inexact(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _as_real(tensor: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """float64 values; when either one is complex, both as (..., 2) real and imaginary parts."""
    if tensor.is_complex() or other.is_complex():
        return torch.view_as_real(tensor.resolve_conj().to(torch.complex128))
    return tensor.double()
