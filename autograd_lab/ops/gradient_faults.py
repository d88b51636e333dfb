"""Say what is wrong with a gradient, what torch would make of it, and what was likely meant."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor

from autograd_lab.errors import (
    GradientDeviceError,
    GradientDictError,
    GradientDtypeWarning,
    GradientError,
    GradientKeysError,
    GradientLengthError,
    GradientShapeError,
    GradientTypeError,
    UnwantedGradientError,
)

__all__ = [
    "GradientSite",
    "InputMeta",
    "InputMetas",
    "judge_dtype",
    "raise_device",
    "raise_keys",
    "raise_layout",
    "raise_length",
    "raise_no_dict",
    "raise_no_list",
    "raise_shape",
    "raise_type",
    "raise_unwanted",
]


class InputMeta(NamedTuple):
    """What the gradient of a tensor has to be like."""

    shape: torch.Size
    dtype: torch.dtype
    device: torch.device
    layout: torch.layout


InputMetas = list[Any]
"""One entry for each argument: of a tensor the fields of an InputMeta as a plain tuple (a named one
costs 5 times as much to make in each call), of a list a list, of another value its type."""


@dataclass(slots=True)
class GradientSite:
    """Which op's backward is checked, and where it was registered.

    names         of all arguments; tensor_names and keys those that have a gradient
    """

    op: str
    place: str
    names: tuple[str, ...]
    tensor_names: tuple[str, ...]
    keys: frozenset[str]


def _fault(
    kind: type[GradientError], told: str, fix: str, site: GradientSite, **facts: object
) -> NoReturn:
    message = f"In the backward of '{site.op}' at {site.place}: {told}\n{fix}"
    raise kind(message, op=site.op, place=site.place, **facts)


def raise_no_dict(gradients: object, site: GradientSite) -> NoReturn:
    """A backward returned no dict."""
    wanted = ", ".join(f"{name!r}: ..." for name in site.tensor_names)
    what = "nothing (it lacks a return)" if gradients is None else f"a {type(gradients).__name__}"
    _fault(
        GradientDictError,
        f"expected the output of the backward function to be a dict but got {what}.",
        f"Return {{{wanted}}}: a gradient for each tensor argument, or None.",
        site,
        given=type(gradients),
    )


def raise_keys(gradients: Mapping[Any, Any], site: GradientSite) -> NoReturn:
    """The dict lacks an argument, or has a key that is none."""
    wanted = site.tensor_names
    missing = [name for name in wanted if name not in gradients]
    unexpected = [key for key in gradients if key not in wanted]
    told = f"expected the returned dict to have the keys {list(wanted)} but got {list(gradients)}."
    fixes = []
    for name in missing:
        near = next((key for key in unexpected if _is_near(key, name)), None)
        fixes.append(
            f"Did you mean '{name}' by {near!r}?"
            if near is not None
            else f"Return {name}'s gradient, or None if it has none."
        )
    for key in unexpected:
        if key in site.names:
            fixes.append(f"'{key}' is no tensor: leave it out.")
        elif not any(_is_near(key, name) for name in missing):
            fixes.append(f"{key!r} is no argument of the op: leave it out.")
    _fault(GradientKeysError, told, " ".join(fixes), site, missing=missing, unexpected=unexpected)


def _is_near(key: object, name: str) -> bool:
    """Whether a key is likely a slip for a name: `w_grad`, `grad_w`, `W`, `weights`."""
    if not isinstance(key, str):
        return False
    text, name = key.lower(), name.lower()
    bare = text.replace("grad", "").strip("_")
    return bare == name or (
        len(name) > 1 and (bare.startswith(name) or (name.startswith(bare) and len(bare) > 2))
    )


def raise_no_list(gradient: object, length: int, what: str, site: GradientSite) -> NoReturn:
    """The gradient of a list is no list."""
    _fault(
        GradientLengthError,
        f"input '{what}' is a list of {length}; expected the dict to hold a list of gradients but "
        f"got {_kind(gradient)}.",
        f"Return a list of {length}, with None where an element has no gradient.",
        site,
        argument=what,
        given=type(gradient),
    )


def raise_length(gradient: Sequence[Any], length: int, what: str, site: GradientSite) -> NoReturn:
    """The gradient of a list has another length."""
    _fault(
        GradientLengthError,
        f"for input '{what}' expected the dict to hold a list of {length} gradients but got "
        f"{len(gradient)}.",
        "Return one for each element of the list, in order, with None where there is none.",
        site,
        argument=what,
        given=len(gradient),
        wanted=length,
    )


def raise_type(gradient: object, what: str, site: GradientSite) -> NoReturn:
    """A gradient is neither a tensor nor None."""
    _fault(
        GradientTypeError,
        f"got {_kind(gradient)} as the gradient of input '{what}', but expected a Tensor or None.",
        "Return a tensor of the argument's shape: torch.full_like(x, value) makes one of a number.",
        site,
        argument=what,
        given=type(gradient),
    )


def raise_unwanted(meta: object, what: str, site: GradientSite) -> NoReturn:
    """A gradient came for what was no tensor in this call."""
    name = meta.__name__ if isinstance(meta, type) else "no tensor"
    was = "None" if meta is type(None) else f"a {name}"
    _fault(
        UnwantedGradientError,
        f"got a Tensor as the gradient of input '{what}', but that input was {was} in this call.",
        "Return None for it: `None if saved[...] is None else ...`.",
        site,
        argument=what,
        was=meta,
    )


def raise_shape(gradient: Tensor, meta: InputMeta, what: str, site: GradientSite) -> NoReturn:
    """A gradient has another shape than its argument."""
    given, wanted = tuple(gradient.shape), tuple(meta.shape)
    _fault(
        GradientShapeError,
        f"the gradient of input '{what}' has shape {given}, the input has shape {wanted}.",
        _advice(given, wanted),
        site,
        argument=what,
        given=given,
        wanted=wanted,
    )


def _advice(given: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    """What torch would do with such a shape, and what was likely meant."""
    dims = _summed_dims(given, wanted)
    if dims is not None:
        rest = "" if len(given) - len(dims) == len(wanted) else f".reshape({wanted})"
        return (
            f"Torch would sum it over dim {', '.join(map(str, dims))} without a word. If the "
            f"forward broadcasts this input, say so: gradient.sum({dims}){rest}."
        )
    if given == wanted[::-1]:
        return "It looks transposed: gradient.T has the shape of the input."
    numel = [torch.Size(shape).numel() for shape in (given, wanted)]
    if numel[0] == numel[1]:
        return f"It has as many elements: gradient.reshape({wanted}), if their order is right."
    if _summed_dims(wanted, given) is not None:
        return f"Give each element its own: gradient.expand({wanted}), if all are alike."
    return "A gradient has the shape of its input: one number for each element."


def _summed_dims(given: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...] | None:
    """The dims over which a sum gives the wanted shape; None where none does."""
    ahead = len(given) - len(wanted)
    if ahead < 0:
        return None
    dims = list(range(ahead))
    for at, (have, want) in enumerate(zip(given[ahead:], wanted, strict=True), start=ahead):
        if have == want:
            continue
        if want != 1:
            return None
        dims.append(at)
    return tuple(dims)


def judge_dtype(gradient: Tensor, meta: InputMeta, what: str, site: GradientSite) -> None:
    """Refuse what loses the imaginary part; warn of a cast."""
    if gradient.dtype.is_complex and not meta.dtype.is_complex:
        _fault(
            GradientTypeError,
            f"the gradient of input '{what}' is {_dtype(gradient.dtype)}, the input is "
            f"{_dtype(meta.dtype)}.",
            "Torch would drop its imaginary part without a word: return gradient.real.",
            site,
            argument=what,
            given=gradient.dtype,
            wanted=meta.dtype,
        )
    warnings.warn(
        f"In the backward of '{site.op}' at {site.place}: the gradient of input '{what}' is "
        f"{_dtype(gradient.dtype)}, the input is {_dtype(meta.dtype)}. Torch casts it without a "
        f"word; return gradient.to({meta.dtype}) to say that it is meant.",
        GradientDtypeWarning,
        stacklevel=2,
    )


def raise_device(gradient: Tensor, meta: InputMeta, what: str, site: GradientSite) -> NoReturn:
    """A gradient is on another device than its argument."""
    _fault(
        GradientDeviceError,
        f"the gradient of input '{what}' is on {gradient.device}, the input is on {meta.device}.",
        f"Compute it there, or return gradient.to('{meta.device}').",
        site,
        argument=what,
        given=gradient.device,
        wanted=meta.device,
    )


def raise_layout(gradient: Tensor, meta: InputMeta, what: str, site: GradientSite) -> NoReturn:
    """Torch takes a sparse_coo gradient for any input, and no other mixture."""
    _fault(
        GradientDeviceError,
        f"the gradient of input '{what}' has layout {_dtype(gradient.layout)}, the input has "
        f"{_dtype(meta.layout)}.",
        "Return one of the input's layout, or a sparse_coo one, which torch adds to any.",
        site,
        argument=what,
        given=gradient.layout,
        wanted=meta.layout,
    )


def _dtype(dtype: torch.dtype | torch.layout) -> str:
    return str(dtype).removeprefix("torch.")


def _kind(value: object) -> str:
    return "None" if value is None else f"an object of type {type(value).__name__}"
