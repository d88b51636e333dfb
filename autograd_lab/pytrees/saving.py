"""Turn a tree into what a ctx keeps for backward, and back."""

from __future__ import annotations

from typing import Any

from autograd_lab.errors import PytreeError

from .flattening import flatten_tree, rebuild_tree, tensor_count

__all__ = ["save_pytree_for_backward", "unpack_saved"]


def save_pytree_for_backward(ctx: Any, tree: object) -> None:  # noqa: ANN401 (torch's ctx, or one like it)
    """Save a tree on an autograd Function's ctx, in `forward` or `setup_context`.

    Its tensors go through one call of `ctx.save_for_backward`, so torch checks their versions, runs
    saved-tensor hooks and frees them after backward. All the rest goes on one attribute of ctx,
    which is all that is mutated. What a tree may be: `flatten_tree`.

    Raises PytreeError where something was saved on this ctx before, HiddenTensorError for tensors
    inside an opaque object, EndlessTreeError for a container that holds itself.
    Source: torch/_custom_op/autograd.py, the function of this name (BSD-3).

    >>> import torch
    >>> class Scale(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x, k):
    ...         save_pytree_for_backward(ctx, {"x": x, "k": k})
    ...         return x * k
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         saved = unpack_saved(ctx)
    ...         print(sorted(saved))
    ...         return grad_output * saved["k"], None
    >>> x = torch.ones(2, requires_grad=True)
    >>> Scale.apply(x, 3.0).sum().backward()
    ['k', 'x']
    >>> x.grad
    tensor([3., 3.])
    """
    # torch keeps what was given to save_for_backward as ctx.to_save until forward has ended
    if hasattr(ctx, "_autograd_lab_tree") or getattr(ctx, "to_save", None) is not None:
        raise _saved_before(ctx)
    tensors, ctx._autograd_lab_tree = flatten_tree(tree)
    ctx.save_for_backward(*tensors)


def unpack_saved(ctx: Any) -> Any:  # noqa: ANN401 (any tree)
    """Inverse of `save_pytree_for_backward`: build the saved tree anew, in `backward`.

    Structure, order and types are those of the saved tree; leaves that are no tensors are the same
    objects. Nothing is mutated.

    Raises PytreeError where no tree was saved, or not by the last call; torch's own RuntimeError
    where a saved tensor was modified in place or the graph was freed.
    Source: torch/_custom_op/autograd.py, the function of this name (BSD-3).

    >>> import torch
    >>> class Ctx(torch.autograd.function.FunctionCtx):
    ...     saved_tensors = property(lambda ctx: ctx.to_save)
    >>> ctx = Ctx()
    >>> save_pytree_for_backward(ctx, [torch.ones(1), None, {"k": 2}])
    >>> unpack_saved(ctx)
    [tensor([1.]), None, {'k': 2}]
    """
    try:
        spec = ctx._autograd_lab_tree
    except AttributeError:
        message = (
            "unpack_saved found no saved tree on this ctx.\n"
            f"The ctx is a {type(ctx).__name__}; its forward did not save one.\n"
            "Call save_pytree_for_backward(ctx, tree) in forward or setup_context."
        )
        raise PytreeError(message, ctx=type(ctx).__name__) from None
    tensors = ctx.saved_tensors
    count = tensor_count(spec)
    if len(tensors) != count:
        message = (
            f"The saved tree has {count} tensors, but this ctx has {len(tensors)}.\n"
            f"The ctx is a {type(ctx).__name__}. Torch hands saved tensors out once forward has "
            "ended, and keeps those of the last ctx.save_for_backward alone.\n"
            "Unpack in backward, and put all that is saved into one tree."
        )
        raise PytreeError(message, ctx=type(ctx).__name__, expected=count, got=len(tensors))
    return rebuild_tree(spec, tensors)


def _saved_before(ctx: object) -> PytreeError:
    """The error for saving twice."""
    earlier = (
        "save_pytree_for_backward"
        if hasattr(ctx, "_autograd_lab_tree")
        else "ctx.save_for_backward"
    )
    message = (
        f"This ctx has saved tensors already, by {earlier}.\n"
        f"The ctx is a {type(ctx).__name__}; torch keeps the tensors of the last call alone.\n"
        "Save once, with all that backward needs in one tree."
    )
    return PytreeError(message, ctx=type(ctx).__name__, earlier=earlier)
