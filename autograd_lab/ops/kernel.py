"""Run an op under autograd with a kernel of our own at the dispatcher's Autograd key.

One autograd.Function class for each op; below it the dispatcher goes on to the op's kernel. Under
torch.func the Function is applied at a single level, since functorch has peeled the call to one
when the kernel runs (functorch's own ops do the same).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from autograd_lab.observers import observers
from autograd_lab.torch_private import KernelNames, forward_level, name_nodes

from .aliases import require_own_outputs
from .call import OpCall
from .context import BackwardContext
from .guard import anchors_of
from .missing import require_output
from .nesting import flatten, flatten_as, layout_of, regroup
from .steps import as_tuple, keep_for_backward, run_backward
from .tables import OpTables
from .tangents import checked_tangents, require_jvp

__all__ = ["autograd_kernel"]

Redispatch = Callable[[Any, Sequence[Any]], Any]


def autograd_kernel(tables: OpTables, overload: Any, torch_names: KernelNames) -> Any:  # noqa: ANN401 (torch's OpOverload in, a kernel out)
    """The kernel for the Autograd key of an op; it holds the op's tables, not the op."""
    redispatch = _redispatch(tables, overload, torch_names)
    apply = _function_of(tables, redispatch, torch_names.single_level_function).apply
    registered, schema, qualname = tables.registered, tables.schema, tables.qualname
    argument_count, has_lists = len(schema.names), schema.has_lists
    names, mutated = schema.names, tuple(schema.names.index(one) for one in schema.mutated)
    is_transformed, is_grad_enabled = torch_names.is_transformed, torch.is_grad_enabled

    def apply_at_one_level(call: OpCall, flat: Sequence[Any]) -> Any:  # noqa: ANN401
        was_allowed = torch_names.get_single_level()
        torch_names.set_single_level(True)
        try:
            return apply(call, *flat)
        finally:
            torch_names.set_single_level(was_allowed)

    def kernel(keyset: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        values = args if len(args) == argument_count else schema.complete(args, kwargs)
        if registered.is_half:
            registered.require_both(qualname)
        wants_grad = is_grad_enabled() and _has_grad(values)
        if not wants_grad and not (forward_level() >= 0 and _has_tangent(values)):
            output = redispatch(keyset, values)
            if output is None:
                require_output(qualname, schema)
            require_own_outputs(qualname, names, values, output)
            if mutated:
                _count_writes(values[at] for at in mutated)
            return output
        if mutated:
            schema.require_fit_for_backward(qualname)
        registered.require_both(qualname)
        layout = layout_of(values) if has_lists else None
        call = OpCall(keyset, layout)
        flat = values if layout is None else flatten(values)
        output = apply_at_one_level(call, flat) if is_transformed() else apply(call, *flat)
        call.tree = None
        if call.intermediates and wants_grad:
            call.anchors = anchors_of(flat)
        if call.output_layout is None:
            return output
        grouped = regroup(output, call.output_layout)
        return grouped if call.returns_tuple else grouped[0]

    return kernel


def _redispatch(tables: OpTables, overload: Any, torch_names: KernelNames) -> Redispatch:  # noqa: ANN401
    """Go on below autograd, keyword-only arguments by name."""
    below, after, further = (
        torch_names.below_autograd,
        torch_names.after_autograd,
        overload.redispatch,
    )
    keywords, positional = tables.keywords, tables.positional

    rests: dict[int, Any] = {}  # an op meets few key sets, and `&` costs 3 times the look-up

    def rest_of(keyset: Any) -> Any:  # noqa: ANN401
        key = keyset.raw_repr()
        rest = rests.get(key)
        if rest is None:
            rest = rests[key] = keyset & after
        return rest

    def plain(keyset: Any, values: Sequence[Any]) -> Any:  # noqa: ANN401
        with below():
            return further(rest_of(keyset), *values)

    def by_name(keyset: Any, values: Sequence[Any]) -> Any:  # noqa: ANN401
        named = dict(zip(keywords, values[positional:], strict=True))
        with below():
            return further(rest_of(keyset), *values[:positional], **named)

    return by_name if keywords else plain


def _function_of(tables: OpTables, redispatch: Redispatch, base: type) -> Any:  # noqa: ANN401
    """The autograd.Function class of an op."""
    qualname, names = tables.qualname, tables.names

    def forward(ctx: Any, call: OpCall, *flat: Any) -> Any:  # noqa: ANN401
        values = flat if call.layout is None else regroup(flat, call.layout)
        listeners = observers()
        for one in listeners:
            one.custom_op_called(qualname, dict(zip(names, values, strict=True)))
        output = redispatch(call.keyset, values)
        if output is None:
            require_output(qualname, tables.schema)
        for one in listeners:
            one.custom_op_returned(qualname, output)
        keep_for_backward(tables, ctx, call, values, output)
        if tables.returns_plain:
            return output
        outputs = as_tuple(output)
        call.returns_tuple = isinstance(output, tuple)
        call.output_layout = tuple(len(one) if type(one) is list else None for one in outputs)
        return tuple(flatten(outputs))

    def backward(ctx: Any, *grads: Any) -> Any:  # noqa: ANN401
        call: OpCall = ctx.call
        needs = ctx.needs_input_grad[1:]
        if call.layout is not None:
            needs = regroup(needs, call.layout)
        if call.output_layout is not None:
            grads = regroup(grads, call.output_layout)
        found = run_backward(tables, ctx, call, needs, grads)
        return None, *(found if call.layout is None else flatten_as(call.layout, found))

    def jvp(ctx: Any, _call: Any, *tangents: Any) -> Any:  # noqa: ANN401
        call: OpCall = ctx.call
        registration = require_jvp(tables.registered.jvp, qualname)
        grouped = tangents if call.layout is None else regroup(tangents, call.layout)
        by_name = {
            name: one
            for name, one in zip(names, grouped, strict=True)
            if name in tables.tensor_names
        }
        needs = tuple(one is not None for one in grouped)
        own = BackwardContext(qualname, names, needs, call.metas, False)
        returned = registration.function(own, call.tree, by_name)
        found = checked_tangents(returned, call.output_layout, qualname, registration.place)
        return returned if tables.returns_plain else tuple(flatten(found))

    methods = {"forward": forward, "backward": backward, "jvp": jvp}
    function = type(base)(
        f"{tables.name}_customop",
        (base,),
        {name: staticmethod(method) for name, method in methods.items()} | {"__module__": __name__},
    )
    name_nodes(function, f"{tables.name}_customopBackward")
    return function


def _has_grad(values: Sequence[Any]) -> bool:
    """Whether one requires grad; torch's own answer is no for a list that also holds None."""
    for one in values:
        if isinstance(one, Tensor):
            if one.requires_grad:
                return True
        elif type(one) is list and _has_grad(one):
            return True
    return False


def _has_tangent(values: Sequence[Any]) -> bool:
    for one in values:
        if isinstance(one, Tensor):
            if torch.autograd.forward_ad.unpack_dual(one).tangent is not None:
                return True
        elif type(one) is list and _has_tangent(one):
            return True
    return False


def _count_writes(values: Iterable[Any]) -> None:
    """Autograd is told of what the kernel wrote into, as with torch's in-place ops."""
    for one in flatten(values):
        if isinstance(one, Tensor) and not one.is_inference():
            torch.autograd.graph.increment_version(one)
