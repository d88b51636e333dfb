"""Check the dict of gradients that a backward function returned, argument by argument.

Nothing here knows the dispatcher: a schema, what the arguments were, and the dict go in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .gradient_faults import (
    GradientSite,
    InputMeta,
    InputMetas,
    judge_dtype,
    raise_device,
    raise_keys,
    raise_layout,
    raise_length,
    raise_no_dict,
    raise_no_list,
    raise_shape,
    raise_type,
    raise_unwanted,
)

__all__ = ["Gradients", "checked_gradients", "metas_of"]

Gradient = Tensor | None
Gradients = list[Gradient | list[Gradient]]


def metas_of(values: Sequence[Any]) -> InputMetas:
    """What is remembered of the arguments of one call."""
    return [
        (one.shape, one.dtype, one.device, one.layout)
        if isinstance(one, Tensor)
        else metas_of(one)
        if type(one) is list
        else type(one)
        for one in values
    ]


def checked_gradients(gradients: object, metas: InputMetas, site: GradientSite) -> Gradients:
    """The gradient of each argument, in order; None for what is no tensor.

    gradients  what the backward returned: a dict by argument name, in any order
    metas      of all arguments of the call

    Raises a GradientError that names the op, the place and the argument; warns where torch would
    cast the dtype.
    """
    if type(gradients) is not dict and not isinstance(gradients, Mapping):
        raise_no_dict(gradients, site)
    if gradients.keys() != site.keys:
        raise_keys(gradients, site)
    found: Gradients = []
    for name, meta in zip(site.names, metas, strict=True):
        found.append(_checked(gradients[name], meta, name, site) if name in site.keys else None)
    return found


def _checked(
    gradient: Any,  # noqa: ANN401 (whatever the user returned)
    meta: Any,  # noqa: ANN401 (an entry of InputMetas)
    what: str,
    site: GradientSite,
) -> Gradient | list[Gradient]:
    if type(meta) is list:
        if not isinstance(gradient, (list, tuple)):
            raise_no_list(gradient, len(meta), what, site)
        if len(gradient) != len(meta):
            raise_length(gradient, len(meta), what, site)
        return [
            _checked_one(one, of, f"{what}[{at}]", site)
            for at, (one, of) in enumerate(zip(gradient, meta, strict=True))
        ]
    return _checked_one(gradient, meta, what, site)


def _checked_one(gradient: Any, meta: Any, what: str, site: GradientSite) -> Gradient:  # noqa: ANN401
    if gradient is None:
        return None
    if not isinstance(gradient, Tensor):
        raise_type(gradient, what, site)
    if type(meta) is not tuple:
        raise_unwanted(meta, what, site)
    shape, dtype, device, layout = meta
    if gradient.shape != shape:
        raise_shape(gradient, InputMeta(*meta), what, site)
    if gradient.dtype != dtype:
        judge_dtype(gradient, InputMeta(*meta), what, site)
    if gradient.device != device:
        raise_device(gradient, InputMeta(*meta), what, site)
    if gradient.layout != layout and gradient.layout != torch.sparse_coo:
        raise_layout(gradient, InputMeta(*meta), what, site)
    return gradient
