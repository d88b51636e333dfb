"""Turn what a node keeps for backward into slots, without calling anybody's unpack hook."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch

from autograd_lab import torch_private

from .shots import Shots
from .tape import RawSlot

__all__ = ["read_slots"]


def read_slots(node: Any, shots: Shots) -> Sequence[RawSlot]:  # noqa: ANN401 (a C++ class)
    """The node's saved tensors: shape, version and bytes, never the tensor itself.

    The caller has switched off torch functions. Only a tensor that was ever written in place is
    unpacked, to hear whether torch will refuse it.
    """
    slots: list[RawSlot] = []
    for name, value_name, raw in torch_private.raw_saved(node):
        hook = raw.unpack_hook
        if hook is not None:
            packed_by = getattr(hook, "__qualname__", type(hook).__qualname__)
            slots.append(RawSlot(name, packed_by=packed_by.replace(".<locals>", "")))
            continue
        tensor = raw.data
        if tensor is None:  # not needed, or freed
            problem = _refusal(node, value_name, raw)
            if problem is not None:
                slots.append(RawSlot(name, problem=problem))
            continue
        if type(tensor) is not torch.Tensor and torch_private.has_own_dispatch(type(tensor)):
            slots.append(RawSlot(name, dtype=tensor.dtype, tensor=shots.find(tensor)))
            continue  # its sizes are its own affair: a NestedTensor has none
        try:
            version = tensor._version
        except RuntimeError:  # an inference tensor has none
            version = None
        problem = _refusal(node, value_name, raw) if version else None
        storage = tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else None
        nbytes = tensor.numel() * tensor.itemsize
        row, shape, dtype = shots.find(tensor), tensor.shape, tensor.dtype
        slots.append(RawSlot(name, shape, dtype, version, nbytes, storage, row, None, problem))
    return slots or ()


def _refusal(node: Any, value_name: str, raw: Any) -> str | None:  # noqa: ANN401
    """What torch would raise on unpacking, in few words."""
    try:
        torch_private.saved_value(node, value_name, raw)
    except RuntimeError as error:
        return _problem(str(error))
    return None


def _problem(message: str) -> str | None:
    """What torch would raise, in few words; None for errors that only our way of reading meets."""
    versions = re.search(r"is at version (\d+); expected version (\d+)", message)
    if versions:
        return f"modified in place: saved at version {versions[2]}, now {versions[1]}"
    return "already freed by an earlier backward" if "second time" in message else None
