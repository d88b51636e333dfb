"""Turn the numbers of dense tensors into 2-norms.

Norms are taken in float32 or float64 as the tensor is, and in float64 for half precision and
wherever float32 gave 0, inf or NaN: a norm of inf does not mean a non-finite tensor. Large tensors
on the CPU are a sum of dot products over 2**18 elements each: torch.linalg.vector_norm was up to
twice slower, four times on slices, and off by 1e-2 at 2**24 elements.
"""

from __future__ import annotations

import math

import torch

__all__ = [
    "DOT_FROM",
    "exact_norm_of",
    "has_memory",
    "is_in_range",
    "norm_of_one",
    "norms_of_alike",
]

DOT_FROM, DOT_UNTIL = 1 << 14, 1 << 18  # elements: below, a dot product gains nothing
COPY_UNTIL = 1 << 21
COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
TINY_NORM, HUGE_NORM = 1e-18, 1e18  # beyond these a float32 sum of squares under- or overflows


def is_in_range(norm: float) -> bool:
    """Whether a float32 sum of squares can be trusted; not so for 0, inf and NaN."""
    return TINY_NORM < norm < HUGE_NORM


def dense_numbers(tensor: torch.Tensor) -> torch.Tensor | str:
    """The numbers of a tensor in any layout as a strided tensor, or why they can't be had."""
    if tensor.is_nested:
        return "a nested tensor, which has no sizes"
    if tensor.is_meta:
        return "on the meta device"
    if tensor.layout is torch.strided:
        if not has_memory(tensor):
            return "memory freed after capture"
        if not tensor.is_quantized:
            is_float8 = tensor.itemsize == 1 and tensor.is_floating_point()
            return tensor.float() if is_float8 else tensor
    elif tensor.layout is torch.sparse_coo:
        return tensor.coalesce().values()
    elif tensor.layout in COMPRESSED:
        return tensor.values()
    elif tensor.is_mkldnn:
        return tensor.to_dense()
    return f"layout {tensor.layout} without numbers of its own"


def norm_of_one(tensor: torch.Tensor) -> float:
    """The 2-norm of a strided float32 or float64 tensor on the CPU."""
    numel = tensor.numel()
    if numel < DOT_FROM:
        return torch.linalg.vector_norm(tensor).item()
    if tensor.is_contiguous():
        flat = tensor.view(-1)
    elif _is_dense(tensor):
        flat = tensor.as_strided((numel,), (1,))
    elif numel <= COPY_UNTIL:
        flat = tensor.reshape(-1)
    else:
        return torch.linalg.vector_norm(tensor, dtype=torch.float64).item()
    if numel <= DOT_UNTIL:
        return math.sqrt(torch.dot(flat, flat).item())
    return math.sqrt(sum(torch.dot(part, part).item() for part in flat.split(DOT_UNTIL)))


def norms_of_alike(tensors: list[torch.Tensor]) -> list[float]:
    """The 2-norms of tensors of one shape: stacked, 93 small ones cost a quarter of one by one."""
    if len(tensors) == 1:
        return [torch.linalg.vector_norm(tensors[0]).item()]
    return torch.linalg.vector_norm(torch.stack(tensors).view(len(tensors), -1), dim=1).tolist()


def exact_norm_of(tensor: torch.Tensor) -> float:
    """The 2-norm of a finite tensor in float64, scaled where its square has no place there."""
    wide = tensor.double()
    norm = float(torch.linalg.vector_norm(wide))
    if not 1e-150 < norm < 1e150 and tensor.numel() and (scale := float(wide.abs().max())):
        norm = float(torch.linalg.vector_norm(wide / scale)) * scale
    return norm


def has_memory(tensor: torch.Tensor) -> bool:
    """Whether the storage still covers the tensor: it may have been resized since, as FSDP does."""
    held = tensor.untyped_storage().nbytes()
    if held >= (tensor.storage_offset() + tensor.numel()) * tensor.itemsize or tensor.is_meta:
        return True
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    reach = tensor.storage_offset() + 1 + sum((size - 1) * stride for size, stride in pairs)
    return tensor.numel() == 0 or held >= reach * tensor.itemsize


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements lie in memory without gaps and without overlap, in any order."""
    reach = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1:
            if stride != reach:
                return False
            reach *= size
    return True
