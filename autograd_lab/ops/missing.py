"""What an op does where it has no kernel: say so, and what to register."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import torch

from autograd_lab.errors import CustomOpError, MissingKernelError

from .nesting import flatten
from .schema import OpSchema

__all__ = ["fake_without_rule", "kernel_for_no_device", "require_output"]


def kernel_for_no_device(
    qualname: str, schema: OpSchema, devices: Iterable[str]
) -> Callable[..., Any]:
    """A kernel for wherever none is registered; `devices` is read when it runs."""

    def missing(*args: Any, **kwargs: Any) -> NoReturn:  # noqa: ANN401
        values = flatten(schema.complete(args, kwargs))
        tensors = [one for one in values if isinstance(one, torch.Tensor)]
        if not tensors:
            message = (
                f"There were no Tensor inputs to this operator: '{qualname}' has no kernel to "
                "choose by them.\n"
                "A kernel is chosen by the device of the tensors.\n"
                "Register one for calls without tensors with @op.impl_factory()."
            )
            raise MissingKernelError(message, op=qualname, device=None)
        device = tensors[0].device.type
        have = ", ".join(sorted(devices)) or "none"
        message = (
            f"'{qualname}' was called with {device} tensors: there is no {device} impl registered "
            "for it.\n"
            f"Kernels are registered for: {have}.\n"
            f"Register one with @op.impl('{device}'), or write it as the body of the function "
            "below @custom_op."
        )
        raise MissingKernelError(message, op=qualname, device=device)

    return missing


def fake_without_rule(qualname: str, schema: OpSchema) -> Callable[..., Any]:
    """What runs for meta and fake tensors until impl_abstract is registered."""

    def fake(*_args: Any, **_kwargs: Any) -> None:  # noqa: ANN401
        if schema.mutated and not schema.returns:
            return  # it writes and returns nothing: there is no shape to tell
        message = (
            f"'{qualname}' was called with Meta tensors, but there was no fake impl or Meta "
            "kernel.\n"
            "torch.compile, torch.export and FakeTensorMode ask an op for the shapes of its "
            "outputs.\n"
            "Register them with @op.impl_abstract(): return torch.empty_like(x) or the like."
        )
        raise MissingKernelError(message, op=qualname, device="meta")

    return fake


def require_output(qualname: str, schema: OpSchema) -> None:
    """Raise CustomOpError where a kernel returned None, and the schema has outputs."""
    if not schema.returns:
        return
    message = (
        f"The kernel of '{qualname}' returned None: it lacks a return.\n"
        f"Its schema is {schema.text}.\n"
        "Return what the schema says."
    )
    raise CustomOpError(message, op=qualname)
