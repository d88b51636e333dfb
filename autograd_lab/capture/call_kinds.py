"""Turn a torch function into what the recorder must know of it: does it compute, does it write.

Only functions that live as long as the process are remembered: a user's closure may hold tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import Any, NamedTuple

import torch

__all__ = ["BUILT_IN", "OF_TENSOR", "CallKind", "kind_of", "writes_in_place"]

PropertyRead = type(torch.Tensor.requires_grad.__get__)  # pyright: ignore[reportAttributeAccessIssue]
OF_TENSOR = (MethodDescriptorType, WrapperDescriptorType)
BUILT_IN = (BuiltinFunctionType, *OF_TENSOR, PropertyRead)
VIEWS = frozenset({"T", "mT", "H", "mH", "real", "imag"})
NO_OPS = frozenset(
    {
        "__bool__",
        "__deepcopy__",
        "__format__",
        "__len__",
        "__reduce_ex__",
        "__repr__",
        "_make_subclass",
        "_set_grad_enabled",
        "backward",
        "dim",
        "grad",
        "is_complex",
        "is_contiguous",
        "is_floating_point",
        "item",
        "numel",
        "pin_memory",
        "register_hook",
        "requires_grad_",
        "retain_grad",
        "set_grad_enabled",
        "share_memory_",
        "size",
        "stride",
        "tolist",
    }
)
LENDS_MEMORY = frozenset({"__array__", "__dlpack__", "data_ptr", "numpy", "untyped_storage"})
UNINITIALISED = frozenset(
    {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
)
READS = frozenset({"__index__", "__int__", "__invert__", "__iter__"})


class CallKind(NamedTuple):
    """What a function's name says.

    is_op             it computes
    is_inplace        it writes in place: `add_`, `__iadd__`, `__setitem__`
    inplace_at        where it takes `inplace`
    lends_memory      what it returns can be written without torch noticing: `numpy`, `x.data = ...`
    is_uninitialised  what it returns holds whatever the memory held before
    """

    is_op: bool
    is_inplace: bool = False
    inplace_at: int | None = None
    lends_memory: bool = False
    is_uninitialised: bool = False


def kind_of(func: Callable[..., Any]) -> CallKind:
    """The kind of a function that a mode was handed."""
    kind = _KINDS.get(func)
    if kind is None:
        kind = _classify(func)
        home = getattr(func, "__module__", None) or ""
        if isinstance(func, BUILT_IN) or (home.startswith("torch.") and _is_global(func)):
            _KINDS[func] = kind
    return kind


def writes_in_place(kind: CallKind, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether this very call writes into one of its arguments."""
    if kind.is_inplace or kwargs.get("out") is not None:
        return True
    at = kind.inplace_at
    return at is not None and bool(kwargs.get("inplace", args[at] if at < len(args) else False))


_KINDS: dict[Callable[..., Any], CallKind] = {}


def _is_global(func: Callable[..., Any]) -> bool:
    return "<locals>" not in getattr(func, "__qualname__", "<locals>")


def _classify(func: Callable[..., Any]) -> CallKind:
    name = getattr(func, "__name__", "")
    if name in LENDS_MEMORY:
        return CallKind(is_op=False, lends_memory=True)
    if name in ("__set__", "__delete__"):
        owner = getattr(func, "__self__", None)
        return CallKind(is_op=False, lends_memory=getattr(owner, "__name__", "") == "data")
    if name in NO_OPS:
        return CallKind(is_op=False)
    if type(func) is PropertyRead and name == "__get__":
        return CallKind(is_op=func.__self__.__name__ in VIEWS)  # pyright: ignore[reportFunctionMemberAccess]
    is_dunder = name.startswith("__") and name.endswith("__")
    if name == "__setitem__" or (name.startswith("__i") and is_dunder and name not in READS):
        return CallKind(is_op=True, is_inplace=True)
    if name.endswith("_") and not is_dunder:
        return CallKind(is_op=True, is_inplace=True)
    code = getattr(func, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    return CallKind(
        is_op=True,
        inplace_at=names.index("inplace") if "inplace" in names else None,
        is_uninitialised=name in UNINITIALISED,
    )
