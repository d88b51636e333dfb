"""Turn a tree that is saved for backward into its ledger: what each leaf is and what it keeps."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from autograd_lab import torch_private
from autograd_lab.recording import SavedEntry, SavedLedger

from .flattening import flatten_tree, leaves_of, tensor_paths

__all__ = ["saved_ledger"]

T = TypeVar("T")
SHOWN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)


def saved_ledger(tree: object, inputs: object = (), outputs: object = ()) -> SavedLedger:
    """Account for what a tree keeps for backward, leaf by leaf.

    Only shapes, versions and storages are looked at, no value; nothing is mutated, and user's modes
    see nothing.

    tree     as for `save_pytree_for_backward`
    inputs   the op's inputs: a dict or named tuple (its names are used), a sequence, or a tensor;
             lists of tensors may stand in it
    outputs  likewise

    A tensor's role is found by identity, else by shared memory: `x[1:]` or `x.detach()` of an input
    is "view of input 'x'". Such a view, made in forward, is cut from the graph: for a second
    derivative it is as wrong as an intermediate.

    Sizes that a tensor does not tell (sparse, nested, functorch-wrapped, subclasses with a
    dispatch of their own) are None, shown as "unknown".
    Raises what `flatten_tree` raises.
    Source: the roles follow torch's rule for double backward (save inputs and outputs alone), in
    the tutorial "Double Backward with Custom Functions".

    >>> import torch
    >>> x = torch.ones(2, 3)
    >>> saved_ledger({"row": x[0], "mean": x.mean(), "k": 2.0}, inputs={"x": x})
    Saved for backward: 2 tensors, 1 constant; 28 bytes kept alive, 4 bytes by intermediates
      path           what               shape   dtype       bytes  keeps alive  version
      saved['row']   view of input 'x'  (3,)    float32  12 bytes     24 bytes        0
      saved['mean']  intermediate       scalar  float32   4 bytes      4 bytes        0
      saved['k']     constant 2.0
    """
    tensors, spec = flatten_tree(tree)
    with torch_private.unseen():
        known = _Known(inputs, outputs)
        left = iter(tensors)
        entries = tuple(
            known.entry(f"saved{path}", next(left)) if leaf is None else _constant(path, leaf[0])
            for path, leaf in leaves_of(spec)
        )
    return SavedLedger(entries=entries)


class _Known:
    """Inputs and outputs by identity and by memory, and the memories met so far."""

    def __init__(self, inputs: object, outputs: object) -> None:
        self.origins: list[tuple[str, str, Tensor, object]] = []
        for role, values in (("input", inputs), ("output", outputs)):
            tensors, spec = flatten_tree(values, search=False)
            for path, tensor in zip(tensor_paths(spec), tensors, strict=True):
                origin = f"{role} {_name(path)}".rstrip()
                self.origins.append((role, origin, tensor, _storage(tensor)))
        self.storages: list[object] = []

    def entry(self, path: str, tensor: Tensor) -> SavedEntry:
        """The entry of a tensor."""
        storage = _storage(tensor)
        role, origin = self._role(tensor, storage)
        device = _told(lambda: str(tensor.device))
        return SavedEntry(
            path=path,
            role=role,
            origin=origin,
            kind=type(tensor).__name__,
            shape=_told(lambda: _ints(tensor.shape)),
            dtype=_told(lambda: str(tensor.dtype).removeprefix("torch.")),
            device=device,
            nbytes=_told(lambda: _nbytes(tensor)),
            storage_nbytes=None if storage is None else _told(lambda: _int(storage.nbytes())),
            version=_told(lambda: tensor._version),
            storage=None if storage is None else self._number(storage),
        )

    def _role(self, tensor: Tensor, storage: object) -> tuple[str, str]:
        for role, origin, known, _ in self.origins:
            if known is tensor:
                return role, origin
        for role, origin, _, known in self.origins:
            if known is not None and known is storage:
                return role, f"view of {origin}"
        return ("intermediate", "") if self.origins else ("unknown", "")

    def _number(self, storage: object) -> int:
        for number, known in enumerate(self.storages):
            if known is storage:
                return number
        self.storages.append(storage)
        return len(self.storages) - 1


def _constant(path: str, value: object) -> SavedEntry:
    text = _told(lambda: reprlib.repr(value)) or "" if type(value) in SHOWN else ""
    return SavedEntry(path=f"saved{path}", role="constant", kind=type(value).__name__, text=text)


def _name(path: str) -> str:
    """A path below the inputs as a name: `['x'][0]` and `.x[0]` are 'x[0]', `[1]` is 1."""
    if path.startswith("['"):
        name, _, rest = path[2:].partition("']")
        return repr(f"{name}{rest}")
    if path.startswith("."):
        return repr(path[1:])
    number, _, rest = path[1:].partition("]")
    return f"{number}{rest}"


def _storage(tensor: Tensor) -> Any:  # noqa: ANN401 (UntypedStorage or None)
    """A tensor's memory, the same object for all that share it; None where it tells of none."""
    kind = type(tensor)
    if torch_private.batched_or_wrapped(tensor) or (
        kind is not Tensor
        and torch_private.has_own_dispatch(kind)
        and not torch_private.is_traced(tensor)
    ):
        return None
    return _told(tensor.untyped_storage)


def _nbytes(tensor: Tensor) -> int | None:
    if tensor.layout not in (torch.strided, torch.jagged):
        return None
    count = _int(tensor.numel())
    return None if count is None else count * tensor.itemsize


def _ints(sizes: torch.Size) -> tuple[int, ...] | None:
    """Sizes that are all known: asking a symbolic one for its number would change the program."""
    return tuple(sizes) if all(type(size) is int for size in sizes) else None


def _int(number: object) -> int | None:
    return number if type(number) is int else None


def _told(read: Callable[[], T]) -> T | None:
    """What a tensor tells of itself; None where it can't, for which each kind has its own error."""
    try:
        return read()
    except Exception:
        return None
