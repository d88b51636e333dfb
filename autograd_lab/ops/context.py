"""What a backward function, or torch's setup_context, gets as its first argument."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from autograd_lab.errors import HiddenTensorError
from autograd_lab.torch_private import keeps_graph

from .gradient_faults import InputMeta, InputMetas

__all__ = ["BackwardContext", "PositionalContext"]


class BackwardContext:
    """What is known while a custom op's backward runs.

    op                  the op's name, "lab::scale"
    needs_input_grad    by argument name whether a gradient is wanted; of a list argument a tuple
    inputs_meta         by argument name shape, dtype, device and layout; the type of a non-tensor
    keeps_graph         whether the graph is kept for another backward (retain_graph)
    needs_double        whether the gradients themselves are to be differentiated (create_graph)
    """

    __slots__ = ("_metas", "_names", "_needs", "needs_double", "op")

    def __init__(
        self,
        op: str,
        names: tuple[str, ...],
        needs: tuple[Any, ...],
        metas: InputMetas,
        needs_double: bool,
    ) -> None:
        self.op = op
        self.needs_double = needs_double
        self._names, self._needs, self._metas = names, needs, metas

    @property
    def needs_input_grad(self) -> Mapping[str, bool | tuple[bool, ...]]:
        """By argument name whether somebody wants its gradient."""
        return {
            name: tuple(need) if isinstance(need, list) else need
            for name, need in zip(self._names, self._needs, strict=True)
        }

    @property
    def inputs_meta(self) -> Mapping[str, Any]:
        """By argument name what its gradient has to be like."""
        return {
            name: InputMeta(*meta) if type(meta) is tuple else meta
            for name, meta in zip(self._names, self._metas, strict=True)
        }

    @property
    def keeps_graph(self) -> bool:
        """Whether this graph can be gone through again after this pass."""
        return keeps_graph()

    def __repr__(self) -> str:
        """Return the op and what it is asked for."""
        return f"BackwardContext('{self.op}', needs_input_grad={self.needs_input_grad})"


class PositionalContext:
    """The ctx of setup_context and of its backward, with torch's names.

    What is set as an attribute is kept on the call for backward; tensors go through
    `save_for_backward`. It lives as long as the function that it is handed to.

    needs_input_grad  one entry for each argument that can be given by place; of a list a list
    """

    _OWN = frozenset({"_ctx", "_attributes", "_op", "_tensors", "needs_input_grad"})

    def __init__(
        self,
        op: str,
        ctx: Any,  # noqa: ANN401 (torch's ctx)
        attributes: dict[str, Any],
        needs: tuple[Any, ...],
        tensors: Callable[[], tuple[Tensor, ...]],
    ) -> None:
        self._op, self._ctx, self._attributes, self._tensors = op, ctx, attributes, tensors
        self.needs_input_grad = needs

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for backward: torch checks their versions and frees them after it."""
        self._ctx.save_for_backward(*tensors)

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """What was saved, in backward."""
        return self._tensors()

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say that outputs have no derivative."""
        self._ctx.mark_non_differentiable(*tensors)

    def set_materialize_grads(self, value: bool) -> None:
        """False hands None for the gradient of an unused output, instead of zeros."""
        self._ctx.set_materialize_grads(value)

    def __setattr__(self, name: str, value: object) -> None:
        """Keep a value for backward; raise HiddenTensorError for a tensor."""
        if name in self._OWN:
            object.__setattr__(self, name, value)
            return
        if isinstance(value, Tensor):
            message = (
                f"ctx.{name} of '{self._op}' is a tensor.\n"
                "It would bypass save_for_backward: no version check, no saved-tensor hooks, and "
                "an output would never be freed.\n"
                f"Write ctx.save_for_backward({name}) and read ctx.saved_tensors in backward."
            )
            raise HiddenTensorError(message, op=self._op, path=f"ctx.{name}")
        self._attributes[name] = value

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (whatever was set)
        """Return what was set in setup_context."""
        if name in self._OWN or name not in self._attributes:
            message = (
                f"ctx of '{self._op}' has no attribute '{name}'. "
                f"Set were: {', '.join(sorted(self._attributes)) or 'none'}."
            )
            raise AttributeError(message)
        return self._attributes[name]
