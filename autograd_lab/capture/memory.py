"""Turn tensors into where their numbers lie, and how often they were written."""

from __future__ import annotations

import torch

__all__ = ["is_torchs_own", "share_memory", "storage_of", "version_of"]


def storage_of(tensor: torch.Tensor) -> int:
    """The address of a tensor's memory; 0 where it has none of its own, as sparse and wrapped."""
    if tensor.layout is not torch.strided:
        return 0
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0


def share_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors are the same elements in memory, at the same version.

    Such as a view and its base, or a `.grad` that torch took from the gradient without a copy.
    """
    return (
        a.layout is torch.strided
        and b.layout is torch.strided
        and a.numel() == b.numel()
        and a.data_ptr() == b.data_ptr() != 0
        and version_of(a) == version_of(b)
    )


def is_torchs_own(tensor: torch.Tensor) -> bool:
    """Whether nobody knows a tensor's memory by another address, as numpy or a process may."""
    return storage_of(tensor) != 0 and tensor.untyped_storage().resizable()


def version_of(tensor: torch.Tensor) -> int | None:
    """How often a tensor was written in place; None for an inference tensor."""
    try:
        return tensor._version
    except RuntimeError:
        return None
