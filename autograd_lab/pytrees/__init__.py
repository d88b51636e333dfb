"""Trees of Python containers: taken apart to tensors, saved on a ctx, rebuilt, accounted for."""

from __future__ import annotations

from .flattening import TreeSpec, flatten_tree, tensor_paths, unflatten_tree
from .ledger import saved_ledger
from .saving import save_pytree_for_backward, unpack_saved

__all__ = [
    "TreeSpec",
    "flatten_tree",
    "save_pytree_for_backward",
    "saved_ledger",
    "tensor_paths",
    "unflatten_tree",
    "unpack_saved",
]
