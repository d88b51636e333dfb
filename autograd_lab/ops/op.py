"""The object that stands for an op: registers its parts, and calls it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from autograd_lab.errors import OpDefinitionError, RegistrationError
from autograd_lab.torch_private import kernel_names

from .definition import is_stub
from .differentiability import read_differentiability
from .kernel import autograd_kernel
from .kernels import OpKernels, casting, completing, device_types_of
from .missing import fake_without_rule, kernel_for_no_device
from .public_engine import LIMITS, register_public_autograd, require_within_limits, warn_of_limits
from .registrations import Function, Registration, registration_of
from .registry import op_named
from .schema import OpSchema
from .tables import OpTables

__all__ = ["CustomOp", "OpDefinition"]


class OpDefinition:
    """What `custom_op` found out about an op before it makes it."""

    __slots__ = ("function", "name", "qualname", "schema", "text")

    def __init__(self, qualname: str, text: str, schema: OpSchema, function: Function) -> None:
        self.qualname, self.text, self.schema, self.function = qualname, text, schema, function
        self.name = qualname.partition("::")[2]


class CustomOp:
    """An op of torch's dispatcher; `custom_op` makes them.

    Each `impl…` registers a function and returns it; registering again replaces. Call the op like
    the function that it was.

    qualname  "lab::scale"
    schema    its arguments and returns
    place     file and line of the decorated function
    """

    def __init__(self, definition: OpDefinition) -> None:
        if not isinstance(definition, OpDefinition):
            message = (
                "The CustomOp constructor is private.\n"
                "Write @custom_op('lab::scale') above a function."
            )
            raise OpDefinitionError(message)
        function, qualname = definition.function, definition.qualname
        functools.update_wrapper(self, function, updated=())
        self.__name__ = definition.name
        self.qualname = qualname
        self.schema: OpSchema = definition.schema
        code = inspect.unwrap(function).__code__
        self.place = (code.co_filename, code.co_firstlineno)
        self._tables = OpTables(qualname, definition.schema)
        self._kernels = OpKernels(qualname, definition.text)
        self._overload = self._kernels.overload
        torch_names = kernel_names()
        self._uses_public_api = bool(torch_names.missing)
        if self._uses_public_api:
            warn_of_limits(torch_names.missing)
            if self.schema.unfit_for_backward is None and not self.schema.keyword_only_tensors:
                tables = self._tables
                self._kernels.put(
                    "Autograd", lambda library: register_public_autograd(tables, library)
                )
        else:
            kernel = autograd_kernel(self._tables, self._overload, torch_names)
            self._kernels.put_kernel("Autograd", kernel, with_keyset=True)
        body = (
            kernel_for_no_device(qualname, self.schema, self._kernels.devices)
            if is_stub(function)
            else completing(self.schema, function)
        )
        self._kernels.put_kernel("CompositeExplicitAutograd", body)
        self._put_fake(fake_without_rule(qualname, self.schema))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Call the op as it is registered now."""
        return self._overload(*args, **kwargs)

    def __repr__(self) -> str:
        """Return the op's name."""
        return f'<CustomOp(op="{self.qualname}")>'

    def __reduce__(self) -> Any:  # noqa: ANN401 (pickle's tuple)
        """Copies, and what comes out of a pickle, are the op of this name."""
        return op_named, (self.qualname,)

    def impl(self, device_types: str | Iterable[str]) -> Callable[[Function], Function]:
        """Register the kernel for a type of device: "cpu", "cuda", or several."""
        types = device_types_of(device_types, self.qualname)

        def register_kernel(function: Function) -> Function:
            kernel = completing(self.schema, self._taken(function, "impl").function)
            for one in types:
                self._kernels.put(
                    one,
                    lambda library, one=one: torch.library.impl(
                        self.qualname, one, kernel, lib=library
                    ),
                )
                self._kernels.devices.add(one)
            return function

        return register_kernel

    def impl_factory(self, function: Function | None = None) -> Any:  # noqa: ANN401
        """Register the kernel for calls without tensors."""

        def register_kernel(function: Function) -> Function:
            kernel = self._taken(function, "impl_factory").function
            self._kernels.put_kernel("BackendSelect", completing(self.schema, kernel))
            return function

        return register_kernel if function is None else register_kernel(function)

    def impl_abstract(self, function: Function | None = None) -> Any:  # noqa: ANN401
        """Register what gives the outputs' shapes for meta and fake tensors, without values."""

        def register_rule(function: Function) -> Function:
            rule = self._taken(function, "impl_abstract").function
            self._put_fake(completing(self.schema, rule))
            return function

        return register_rule if function is None else register_rule(function)

    register_fake = impl_abstract

    def impl_save_for_backward(
        self, function: Function | None = None, *, constants: Sequence[str] = ()
    ) -> Any:  # noqa: ANN401
        """Register `(inputs, output) -> tree`: what backward needs, in any nesting of containers.

        inputs     a named tuple of all arguments; output as the kernel returned it
        constants  keys or paths ("mask", "['cache'][0]") of saved tensors that depend on no input
        """

        def register_save(function: Function) -> Function:
            self.schema.require_fit_for_backward(self.qualname)
            registration = self._taken(function, "impl_save_for_backward")
            self._tables.registered.set_save(registration, frozenset(constants))
            return function

        return register_save if function is None else register_save(function)

    def impl_backward(
        self,
        output_differentiability: list[bool] | Function | None = None,
    ) -> Any:  # noqa: ANN401
        """Register `(ctx, saved, *grads) -> {argument: gradient}`, a key for each tensor argument.

        ctx    BackwardContext: needs_input_grad by name, whether the graph is kept
        saved  what the save function returned
        grads  one for each output; of a list a list; zeros for one that was not used
        output_differentiability  one bool for each output; False: it has no derivative

        `@op.impl_backward` without parentheses is taken, too.
        """
        bare = output_differentiability if callable(output_differentiability) else None
        wanted = None if bare is not None else output_differentiability
        count = len(self.schema.returns)
        differentiability = read_differentiability(wanted, count, self.qualname)

        def register_backward(function: Function) -> Function:
            self._require_fit()
            registration = self._taken(function, "impl_backward")
            self._tables.registered.set_backward(registration, differentiability)
            return function

        return register_backward if bare is None else register_backward(bare)

    def register_autograd(
        self, backward: Function, *, setup_context: Function | None = None
    ) -> None:
        """Register torch.library's way: gradients in the order of the arguments.

        backward       (ctx, *grads) -> a tuple, None for what is no tensor
        setup_context  (ctx, inputs, output), which saves
        """
        self._require_fit()
        setup = None if setup_context is None else self._taken(setup_context, "register_autograd")
        registration = self._taken(backward, "register_autograd")
        self._tables.registered.set_positional(registration, setup)

    def impl_jvp(self, function: Function | None = None) -> Any:  # noqa: ANN401
        """Register `(ctx, saved, tangents) -> tangent` for forward mode.

        tangents  by argument name, None where an argument has none; one comes back for each output
        """

        def register_jvp(function: Function) -> Function:
            self.schema.require_fit_for_backward(self.qualname)
            if self._uses_public_api:
                message = (
                    f"'{self.qualname}' can't have an impl_jvp with this torch.\n"
                    f"On the public API of torch.library, custom ops can't do: "
                    f"{'; '.join(LIMITS)}.\n"
                    "Use reverse mode: torch.autograd.grad."
                )
                raise RegistrationError(message, op=self.qualname)
            self._tables.registered.jvp = self._taken(function, "impl_jvp")
            return function

        return register_jvp if function is None else register_jvp(function)

    def impl_vmap(self, function: Function | None = None) -> Any:  # noqa: ANN401
        """Register torch's rule for vmap: `(info, in_dims, *args) -> (output, out_dims)`.

        Without one, torch calls the op once for each element.
        """

        def register_rule(function: Function) -> Function:
            rule = self._taken(function, "impl_vmap").function
            if self.schema.keyword_only_tensors:
                message = (
                    f"'{self.qualname}' has keyword-only tensors: torch knows no vmap rule "
                    "for such.\n"
                    f"Its schema is {self.schema.text}.\n"
                    "Take the tensors by place; or leave vmap to torch, which then loops."
                )
                raise RegistrationError(message, op=self.qualname)
            self._kernels.put(
                "vmap",
                lambda library: torch.library.register_vmap(self.qualname, rule, lib=library),
            )
            return function

        return register_rule if function is None else register_rule(function)

    def impl_autocast(self, device_type: str, dtype: torch.dtype) -> None:
        """Cast floating-point arguments of a type of device to `dtype` under torch.autocast."""
        if not torch.amp.is_autocast_available(device_type):
            message = (
                f"impl_autocast of '{self.qualname}': device type '{device_type}' has no "
                "autocast.\n"
                "Name one that has: 'cpu', 'cuda', 'mps'."
            )
            raise RegistrationError(message, op=self.qualname, given=device_type)
        kernel = casting(self._overload, device_type, dtype)
        self._kernels.put_kernel(f"Autocast{device_type.upper()}", kernel)

    def withdraw(self) -> None:
        """Take the op out of the dispatcher; its name is free again."""
        self._kernels.withdraw()

    def follow(self, new: CustomOp) -> None:
        """Be the op that replaced this one: what still holds the old one calls the new."""
        self.schema, self.place = new.schema, new.place
        self._tables, self._kernels, self._overload = new._tables, new._kernels, new._overload

    def _taken(self, function: object, what: str) -> Registration:
        return registration_of(function, what, self.qualname)

    def _require_fit(self) -> None:
        self.schema.require_fit_for_backward(self.qualname)
        if self._uses_public_api:
            require_within_limits(self.qualname, self.schema)

    def _put_fake(self, rule: Function) -> None:
        self._kernels.put(
            "fake", lambda library: torch.library.register_fake(self.qualname, rule, lib=library)
        )
