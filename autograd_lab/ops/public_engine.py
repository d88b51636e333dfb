"""Run an op under autograd with the public API of torch.library alone.

Used where this torch lacks a private name that the kernel engine needs. What it can't do is said
when an op is defined, and refused where it would be silently wrong.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch

from autograd_lab.errors import PublicEngineWarning, RegistrationError

from .call import OpCall
from .schema import OpSchema
from .steps import keep_for_backward, run_backward
from .tables import OpTables

__all__ = ["LIMITS", "register_public_autograd", "require_within_limits", "warn_of_limits"]

LIMITS = (
    "torch.func.grad, jacrev and vmap of a gradient",
    "forward mode (impl_jvp)",
    "a gradient for keyword-only tensors, or for lists that may hold None",
    "an error for a half registration where no gradient is needed",
)


def warn_of_limits(missing: Sequence[str]) -> None:
    """Say that this engine is in use, why, and what it can't do."""
    warnings.warn(
        f"torch {torch.__version__} lacks {', '.join(missing)}: custom ops run on the public API "
        f"of torch.library. It can't do: {'; '.join(LIMITS)}. Install a torch that autograd_lab "
        "was tested with.",
        PublicEngineWarning,
        stacklevel=4,
    )


def require_within_limits(qualname: str, schema: OpSchema) -> None:
    """Raise RegistrationError for a backward whose gradients torch.library would lose."""
    with_none = [one.name for one in schema.arguments if "Optional[Tensor]]" in one.type]
    unfit = [*schema.keyword_only_tensors, *with_none]
    if unfit:
        message = (
            f"'{qualname}' can't have a backward with this torch: it would lose the gradient of "
            f"{', '.join(unfit)}.\n"
            "Custom ops run on the public API of torch.library here, which does not follow "
            "keyword-only tensors, nor lists that may hold None.\n"
            "Make them arguments by place, without None."
        )
        raise RegistrationError(message, op=qualname, arguments=unfit)


def register_public_autograd(tables: OpTables, library: torch.library.Library) -> None:
    """Let torch.library run the op's registrations; `library` owns what is registered."""
    schema, qualname = tables.schema, tables.qualname

    def setup_context(
        ctx: Any,  # noqa: ANN401 (torch's ctx)
        inputs: tuple[Any, ...],
        output: Any,  # noqa: ANN401
        keyword_only_inputs: dict[str, Any] | None = None,
    ) -> None:
        tables.registered.require_both(qualname)
        values = schema.complete(tuple(inputs), keyword_only_inputs or {})
        keep_for_backward(tables, ctx, OpCall(None, None), values, output)

    def backward(ctx: Any, *grads: Any) -> Any:  # noqa: ANN401
        call: OpCall = ctx.call
        passed = tuple(ctx.needs_input_grad)
        needs = passed + (False,) * (len(tables.names) - len(passed))
        found = run_backward(tables, ctx, call, needs, grads)
        # torch takes an empty int[] for a list of tensors, and wants one gradient for each passed
        empty = [meta is list or meta == [] for meta in call.metas]
        return tuple([] if is_empty else one for one, is_empty in zip(found, empty, strict=True))[
            : len(passed)
        ]

    torch.library.register_autograd(qualname, backward, setup_context=setup_context, lib=library)
