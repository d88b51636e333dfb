"""Turn a function into an op of torch's dispatcher whose gradients have names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable

from .definition import require_same_arguments, schema_text
from .kernels import parsed_schema
from .names import split_name
from .op import CustomOp, OpDefinition
from .registrations import Function
from .registry import make_room, register, require_free

__all__ = ["custom_op"]


def custom_op(
    qualname: str, schema: str | None = None, *, mutates_args: Iterable[str] | str = ()
) -> Callable[[Function], CustomOp]:
    """Decorate a function to make it an op, `torch.ops.lab.scale`, with gradients by name.

    qualname      "lab::scale": a namespace of your own, and the function's name
    schema        "(Tensor x, float k=1.0) -> Tensor"; None reads the function's annotations
    mutates_args  names of the arguments that the kernel writes into; such an op has no backward

    The function's body is the kernel for all devices, unless it is `...`. Defining an op again
    replaces it: graphs recorded before keep their formula.

    Returns the CustomOp. Raises OpDefinitionError for a name, an annotation or a schema that no op
    can have; warns where an op of this name was defined in another file.
    Source: torch/_custom_op/impl.py and torch/_custom_op/autograd.py (BSD-3).

    >>> import torch
    >>> from torch import Tensor
    >>> def scale(x: torch.Tensor, w: torch.Tensor, k: float = 1.0) -> torch.Tensor:
    ...     return x * w * k
    >>> scale = custom_op("doc::scale")(scale)
    >>> @scale.impl_save_for_backward()
    ... def _(inputs, output):
    ...     return {"x": inputs.x, "w": inputs.w, "k": inputs.k}
    >>> @scale.impl_backward()
    ... def _(ctx, saved, grad):
    ...     return {"x": grad * saved["w"] * saved["k"], "w": grad * saved["x"] * saved["k"]}
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> scale(x, torch.tensor([3.0, 4.0]), k=10.0).sum().backward()
    >>> x.grad
    tensor([30., 40.])
    """
    _, name = split_name(qualname)

    def define(function: Function) -> CustomOp:
        text = schema_text(qualname, name, function, schema, mutates_args)
        parsed = parsed_schema(qualname, text)
        require_same_arguments(qualname, function, parsed.names)
        code = inspect.unwrap(function).__code__
        require_free(qualname, code.co_filename, code.co_firstlineno)
        old = make_room(qualname)
        op = CustomOp(OpDefinition(qualname, text, parsed, function))
        register(op)
        if old is not None:
            old.follow(op)
        return op

    return define
