"""Turn what a node keeps for backward into slots, without calling anybody's unpack hook."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch

from autograd_lab import torch_private

from .memory import storage_of, version_of
from .shots import Shots
from .tape import RawSlot, SlotFields

__all__ = ["read_slots"]


def read_slots(node: Any, shots: Shots) -> Sequence[SlotFields]:  # noqa: ANN401 (a C++ class)
    """The node's saved tensors, as RawSlot's fields: shape, version and bytes, never the tensor.

    The caller has switched off torch functions. Only a tensor that was ever written in place is
    unpacked, to hear whether torch will refuse it.
    """
    names = torch_private.saved_names(type(node))
    if not names:
        return ()
    slots: list[SlotFields] = []
    for name, raw_name, value_name in names:
        raw = getattr(node, raw_name)
        if isinstance(raw, (list, tuple)):
            for number, one in enumerate(raw):
                _read(node, f"{name}[{number}]", "", one, shots, slots)
        elif raw is not None:
            _read(node, name, value_name, raw, shots, slots)
    return slots


def _read(
    node: Any,  # noqa: ANN401
    name: str,
    value_name: str,
    raw: Any,  # noqa: ANN401
    shots: Shots,
    slots: list[SlotFields],
) -> None:
    hook = raw.unpack_hook
    if hook is not None:
        packed_by = getattr(hook, "__qualname__", type(hook).__qualname__)
        slots.append(RawSlot(name, packed_by=packed_by.replace(".<locals>", "")))
        return
    tensor = raw.data
    if tensor is None:  # not needed, or freed
        problem = _refusal(node, value_name, raw)
        if problem is not None:
            slots.append(RawSlot(name, problem=problem))
        return
    row = shots.find(tensor)
    kind = type(tensor)
    if tensor.is_nested or (kind is not torch.Tensor and torch_private.has_own_dispatch(kind)):
        slots.append(RawSlot(name, dtype=tensor.dtype, tensor=row))
        return  # its sizes are its own affair: a NestedTensor has none
    version = version_of(tensor)
    problem = _refusal(node, value_name, raw) if version else None
    storage = storage_of(tensor) or None
    nbytes = tensor.numel() * tensor.itemsize
    slots.append((name, tensor.shape, tensor.dtype, version, nbytes, storage, row, None, problem))


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
