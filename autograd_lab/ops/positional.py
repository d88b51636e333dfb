"""Turn gradients in the order of the arguments, torch's way, into gradients by name."""

from __future__ import annotations

from typing import Any, NoReturn

from torch import Tensor

from autograd_lab.errors import GradientLengthError, UnwantedGradientError

from .gradient_faults import GradientSite

__all__ = ["gradients_by_name"]


def gradients_by_name(returned: object, site: GradientSite, count: int) -> dict[str, Any]:
    """The gradients of tensor arguments by name; those of keyword-only ones are None.

    returned  what a backward of register_autograd returned: a tuple, or the one gradient
    count     how many arguments can be given by place

    Missing ones at the end are allowed where they belong to arguments that are no tensors. Raises
    GradientLengthError, with the names, for another number; UnwantedGradientError for a gradient of
    an argument that is no tensor.
    """
    names = site.names[:count]
    given = returned if isinstance(returned, tuple) else (returned,)
    missing = [name for name in names[len(given) :] if name in site.tensor_names]
    if len(given) > count or missing:
        _raise_count(len(given), names, missing, site)
    for name, one in zip(names, given, strict=False):
        if name not in site.tensor_names and _is_gradient(one):
            _raise_unwanted(name, names, site)
    by_place = dict(zip(names, given, strict=False))
    return {name: by_place.get(name) for name in site.tensor_names}


def _is_gradient(value: object) -> bool:
    return isinstance(value, Tensor) or (
        isinstance(value, (list, tuple)) and any(one is not None for one in value)
    )


def _raise_count(
    given: int, names: tuple[str, ...], missing: list[str], site: GradientSite
) -> NoReturn:
    wanted = ", ".join(
        f"gradient of {name}" if name in site.tensor_names else f"None for {name}" for name in names
    )
    lacks = f" It lacks {', '.join(missing)}." if missing else ""
    message = (
        f"In the backward of '{site.op}' at {site.place}: it returned {given} "
        f"gradient{'s' * (given != 1)}, the op has {len(names)} argument{'s' * (len(names) != 1)}: "
        f"{', '.join(names)}.{lacks}\n"
        f"Return a tuple: ({wanted}). Or use impl_backward, where gradients have names."
    )
    raise GradientLengthError(
        message, op=site.op, place=site.place, given=given, wanted=len(names), missing=missing
    )


def _raise_unwanted(name: str, names: tuple[str, ...], site: GradientSite) -> NoReturn:
    message = (
        f"In the backward of '{site.op}' at {site.place}: got a gradient at place "
        f"{names.index(name)}, which is '{name}': that argument is no tensor.\n"
        f"Return None there. The order is {', '.join(names)}."
    )
    raise UnwantedGradientError(message, op=site.op, place=site.place, argument=name)
