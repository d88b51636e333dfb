"""The steps of one call that both engines share: saving, and backward over what was saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from autograd_lab.observers import observers
from autograd_lab.pytrees import flatten_tree, tensor_paths, unflatten_tree
from autograd_lab.torch_private import forward_level

from .aliases import require_own_outputs
from .call import OpCall
from .context import BackwardContext, PositionalContext
from .differentiability import mark_outputs
from .gradients import Gradients, checked_gradients, metas_of
from .guard import guarded, intermediates_among
from .positional import gradients_by_name
from .tables import OpTables
from .writes import require_unwritten, versions_of

__all__ = ["as_tuple", "keep_for_backward", "run_backward"]


def keep_for_backward(
    tables: OpTables,
    ctx: Any,  # noqa: ANN401 (torch's ctx)
    call: OpCall,
    values: Sequence[Any],
    output: Any,  # noqa: ANN401
) -> None:
    """Fill in the record of a call from its arguments and outputs; torch's ctx gets the tensors."""
    registered = tables.registered
    require_own_outputs(tables.qualname, tables.names, values, output)
    ctx.call = call
    call.metas = metas_of(values)
    assert registered.backward is not None
    call.backward = registered.backward
    if registered.is_positional:
        tree = tensors = _set_up(tables, ctx, call, values, output)
    else:
        assert registered.save is not None
        tree = registered.save.function(tables.inputs_of(values), output)
        tensors, call.spec = flatten_tree(tree)
        ctx.save_for_backward(*tensors)
    if forward_level() >= 0:
        call.tree = tree
    if tensors:
        intermediates = intermediates_among(tensors, values, output)
        if intermediates:
            call.intermediates = _without_constants(call, intermediates, registered.constants)
    if registered.differentiability is not None:
        mark_outputs(ctx, output, registered.differentiability, tables.qualname)
    for one in observers():
        one.custom_op_saved(tables.qualname, tree, _paths(call, len(tensors)))


def run_backward(
    tables: OpTables,
    ctx: Any,  # noqa: ANN401 (torch's ctx)
    call: OpCall,
    needs: tuple[Any, ...],
    grads: Sequence[Any],
) -> Gradients:
    """Unpack, run the user's backward, check what it returned: one gradient for each argument.

    needs  one entry for each argument; grads  one for each output. Neither is mutated.
    """
    qualname, registration = tables.qualname, call.backward
    before = versions_of(grads)
    needs_double = torch.is_grad_enabled()
    listeners = observers()
    site = tables.site_of(registration)
    if call.attributes is None:
        assert call.spec is not None
        saved = unflatten_tree(call.spec, _unpacked(tables, ctx, call))
        for one in listeners:
            one.custom_op_unpacked(qualname, saved)
        own = BackwardContext(qualname, tables.names, needs, call.metas, needs_double)
        returned = registration.function(own, saved, *grads)
    else:
        own = PositionalContext(
            *(qualname, ctx, call.attributes, needs[: tables.positional]),
            lambda: _unpacked(tables, ctx, call),
        )
        returned = registration.function(own, *grads)
    for one in listeners:
        one.custom_op_backward_returned(qualname, returned)
    require_unwritten(before, grads, site)
    if call.attributes is not None:
        returned = gradients_by_name(returned, site, tables.positional)
    found = checked_gradients(returned, call.metas, site)
    for one in listeners:
        one.custom_op_checked(qualname, tuple(found))
    return found


def as_tuple(output: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """The outputs of an op, also where it is one alone."""
    return output if isinstance(output, tuple) else (output,)


def _set_up(
    tables: OpTables,
    ctx: Any,  # noqa: ANN401 (torch's ctx)
    call: OpCall,
    values: Sequence[Any],
    output: Any,  # noqa: ANN401
) -> tuple[Any, ...]:
    """Call setup_context as torch does; what it saved."""
    call.attributes = {}
    setup = tables.registered.setup
    if setup is None:
        return ()
    needs = tuple(
        [_needs(inner) for inner in one] if type(one) is list else _needs(one)
        for one in values[: tables.positional]
    )
    own = PositionalContext(tables.qualname, ctx, call.attributes, needs, tuple)
    more: dict[str, Any] = {}
    if tables.keywords:
        keywords = dict(zip(tables.keywords, values[tables.positional :], strict=True))
        more["keyword_only_inputs"] = keywords
    setup.function(own, inputs=tuple(values[: tables.positional]), output=output, **more)
    return getattr(ctx, "to_save", None) or ()


def _needs(value: object) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _unpacked(tables: OpTables, ctx: Any, call: OpCall) -> tuple[Any, ...]:  # noqa: ANN401
    tensors = ctx.saved_tensors
    if not call.intermediates or not torch.is_grad_enabled():
        return tensors
    paths, changed = _paths(call, len(tensors)), list(tensors)
    for at in call.intermediates:
        changed[at] = guarded(changed[at], call.anchors, tables.qualname, paths[at])
    return tuple(changed)


def _paths(call: OpCall, count: int) -> tuple[str, ...]:
    """What saved tensors are called: "saved['x']", "ctx.saved_tensors[0]"."""
    if call.spec is None:
        return tuple(f"ctx.saved_tensors[{at}]" for at in range(count))
    return tuple(f"saved{path}" for path in tensor_paths(call.spec))


def _without_constants(
    call: OpCall, intermediates: tuple[int, ...], constants: frozenset[str]
) -> tuple[int, ...]:
    """Leave out the saved tensors that the user said to depend on no input."""
    if not constants or call.spec is None:
        return intermediates
    paths = tensor_paths(call.spec)
    return tuple(
        at
        for at in intermediates
        if paths[at] not in constants and paths[at].strip("[]'") not in constants
    )
