"""Hold what an op registered with the dispatcher: each part can be replaced, or all taken back.

A torch.library.Library takes back what it registered when its last reference goes. So each part has
one of its own, and no private name is needed to free an op's name.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.library import Library

from autograd_lab.errors import OpDefinitionError, RegistrationError
from autograd_lab.torch_private import schema_of

from .registrations import Function
from .schema import OpSchema, read_schema

__all__ = ["OpKernels", "casting", "completing", "device_types_of", "parsed_schema"]

_SCRATCH = "autograd_lab_schema"  # a namespace where a text is read before the old op makes room


class OpKernels:
    """An op's place in the dispatcher.

    overload  torch.ops.ns.name.default
    devices   types of device that have a kernel of their own
    """

    def __init__(self, qualname: str, text: str) -> None:
        self.qualname = qualname
        self.devices: set[str] = set()
        self._namespace, _, self._name = qualname.partition("::")
        self._definition: Library | None = Library(self._namespace, "FRAGMENT")
        self._definition.define(f"{self._name}{text}", tags=(torch.Tag.pt2_compliant_tag,))
        self._parts: dict[str, Library] = {}
        self.overload = getattr(getattr(torch.ops, self._namespace), self._name).default

    def put(self, part: str, register: Callable[[Library], object]) -> None:
        """Register one part; what was there before is taken back first."""
        self._parts.pop(part, None)
        library = Library(self._namespace, "IMPL")
        register(library)
        self._parts[part] = library

    def put_kernel(self, key: str, kernel: Function, *, with_keyset: bool = False) -> None:
        """Register a kernel at one of the dispatcher's keys."""
        self.put(
            key, lambda library: library.impl(self._name, kernel, key, with_keyset=with_keyset)
        )

    def withdraw(self) -> None:
        """Take everything back: the name is free again."""
        self._parts.clear()
        self._definition = None


def parsed_schema(qualname: str, text: str) -> OpSchema:
    """Read an op's schema; raises OpDefinitionError for one that an op can't have."""
    name = qualname.partition("::")[2]
    library = Library(_SCRATCH, "FRAGMENT")
    try:
        library.define(f"{name}{text}")
        overload = getattr(getattr(torch.ops, _SCRATCH), name).default
        schema = read_schema(schema_of(overload))
    except RuntimeError as error:
        told = " ".join(str(error).split())[:200]
        message = (
            f"The schema of '{qualname}' can't be read: {text!r}.\n"
            f"torch says: {told}\n"
            "Write it like '(Tensor x, int[] dims, float k=1.0, *, Tensor? mask=None) -> Tensor'."
        )
        raise OpDefinitionError(message, op=qualname, schema=text) from error
    finally:
        library = None
    _require_fit(qualname, schema)
    return schema


def device_types_of(given: object, op: str) -> tuple[str, ...]:
    """Read what `impl` was given: "cpu", or an iterable of such; raises RegistrationError."""
    types: tuple[Any, ...] = (given,)
    if isinstance(given, Iterable) and not isinstance(given, str):
        types = tuple(given)
    for one in types:
        try:
            known = isinstance(one, str) and torch.device(one).type == one and one != "meta"
        except RuntimeError:
            known = False
        if not known:
            message = (
                f"impl of '{op}' was given {one!r}: we only support device_type in 'cpu', 'cuda' "
                "and the others that torch.device knows.\n"
                "Kernels are chosen by the type of the tensors' device; shapes for 'meta' come "
                "from impl_abstract.\n"
                f"Write @op.impl('cpu') above a function."
            )
            raise RegistrationError(message, op=op, given=one)
    return types


def completing(schema: OpSchema, function: Function) -> Function:
    """A kernel that gets every argument: the dispatcher leaves out those that equal their default.

    The function itself where its own defaults are the schema's.
    """
    declared = [one for one in schema.arguments if one.has_default]
    if not declared:
        return function
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # some functions written in C have none
        parameters = {}
    if all(
        one.name in parameters and _is_same(parameters[one.name].default, one.default)
        for one in declared
    ):
        return function
    by_place, by_name = schema.positional_count, schema.names[schema.positional_count :]

    @functools.wraps(function)
    def completed(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        values = schema.complete(args, kwargs)
        named = dict(zip(by_name, values[by_place:], strict=True))
        return function(*values[:by_place], **named)

    return completed


def casting(overload: Any, device_type: str, dtype: torch.dtype) -> Function:  # noqa: ANN401 (torch's OpOverload)
    """A kernel for autocast: floating-point tensors of the device are cast, then the op runs."""

    def cast(value: Any) -> Any:  # noqa: ANN401
        if isinstance(value, (list, tuple)):
            return [cast(one) for one in value]
        fits = (
            isinstance(value, torch.Tensor)
            and value.is_floating_point()
            and value.device.type == device_type
            and value.dtype is not torch.float64
        )
        return value.to(dtype) if fits else value

    def kernel(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        with torch.autocast(device_type, enabled=False):
            named = {name: cast(one) for name, one in kwargs.items()}
            return overload(*map(cast, args), **named)

    return kernel


def _is_same(default: object, declared: object) -> bool:
    return type(default) is type(declared) and default == declared


def _require_fit(qualname: str, schema: OpSchema) -> None:
    for one in schema.arguments:
        if one.name == "self":
            message = (
                f"'{qualname}' has an argument named self: the dispatcher keeps it for methods.\n"
                "Give it another name, such as x."
            )
            raise OpDefinitionError(message, op=qualname)
    if schema.aliases:
        message = (
            f"'{qualname}' returns an argument or a view of one: {schema.text}.\n"
            "Autograd would not know that the two share their memory: custom_op supports ops that "
            "return new tensors, or write into their arguments and return nothing of them.\n"
            "Return a clone, without (a) or (a!) in the return."
        )
        raise OpDefinitionError(message, op=qualname)
    if not schema.returns and not schema.mutated:
        message = (
            f"'{qualname}' returns nothing and writes into nothing: {schema.text}.\n"
            "Such an op could have no effect.\n"
            "Return a tensor, or name what it writes into: mutates_args=('out',)."
        )
        raise OpDefinitionError(message, op=qualname)
