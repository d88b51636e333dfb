"""Turn a function, or a schema in words, into the signature that the dispatcher is given."""

from __future__ import annotations

import dis
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, get_args, get_origin

import torch

from autograd_lab.errors import OpDefinitionError

__all__ = ["is_stub", "require_same_arguments", "schema_text"]

Function = Callable[..., Any]
_FOR_OTHERS = {  # what people write, and the nearest spelling that the dispatcher knows
    dict: "Split it into arguments: a list of tensors and a list of str.",
    list: "Say of what: list[Tensor], list[int], list[float] or list[bool].",
    tuple: "Write list[int] or list[Tensor]; a tuple is taken where a list stands.",
    set: "Write list[int] or list[str].",
    complex: "Write two floats, or a tensor.",
    Any: "Say what it is: Tensor, int, float, bool, str, or a list of one of these.",
    torch.nn.Parameter: "Write Tensor; a Parameter is taken where a Tensor stands.",
    object: "Say what it is: Tensor, int, float, bool, str, or a list of one of these.",
}
_KNOWN = (
    "Tensor, int, float, bool, str, torch.dtype, torch.device, list[...] of these, and ... | None"
)
_RETURNS = (
    "Tensor, list[Tensor], int, float, bool, a tuple of these, or None where it writes in place"
)
_STUB_CODE = frozenset(
    ("RESUME", "NOP", "POP_TOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST", "COPY_FREE_VARS")
)


def schema_text(
    qualname: str,
    name: str,
    function: object,
    schema: str | None,
    mutates_args: Iterable[str] | str,
) -> str:
    """The signature "(Tensor x, float k=1.0) -> Tensor" of an op.

    From the annotations of `function`, or the text `schema`, whose arguments the function has to
    have. Raises OpDefinitionError.
    """
    if not isinstance(function, FunctionType):
        raise _wrong(
            qualname,
            f"Expected a Python function for '{qualname}', got {type(function).__name__}.",
            "Write @custom_op above a def, with the schema as its second argument if it has one.",
        )
    namespace = qualname.partition("::")[0]
    if function.__name__ not in (name, "_", "<lambda>"):
        raise _wrong(
            qualname,
            f"The op '{qualname}' is written as a function named '{function.__name__}'.",
            f"Name the function '{name}', or the op '{namespace}::{function.__name__}'.",
        )
    parameters = inspect.signature(function).parameters
    _check_parameters(qualname, parameters.values())
    if schema is not None:
        if mutates_args:
            raise _wrong(
                qualname,
                f"'{qualname}' has a schema in words and mutates_args, too.",
                "Say in the schema what is written into: '(Tensor x, Tensor(a!) out) -> ()'.",
            )
        return _from_text(qualname, schema, function)
    return _from_annotations(qualname, function, parameters, mutates_args)


def is_stub(function: Function) -> bool:
    """Whether a function's body is `...`, `pass` or a docstring: a signature, and no kernel."""
    instructions = list(dis.get_instructions(function))
    constants = [one.argval for one in instructions if one.opname in ("LOAD_CONST", "RETURN_CONST")]
    return {one.opname for one in instructions} <= _STUB_CODE and constants in ([None], [])


def _check_parameters(qualname: str, parameters: Iterable[inspect.Parameter]) -> None:
    for one in parameters:
        if one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            raise _wrong(
                qualname,
                f"The parameter '{one.name}' of '{qualname}' is {one.kind.description}.",
                "Ops have a fixed number of named arguments: leave out '/', '*args', '**kwargs'; "
                "a list[Tensor] takes any number of tensors.",
            )
        if one.name == "self":
            raise _wrong(
                qualname,
                f"'{qualname}' has an argument named self, which the dispatcher keeps for methods.",
                "Give it another name, such as x.",
            )


def _from_annotations(
    qualname: str,
    function: Function,
    parameters: Any,  # noqa: ANN401 (inspect's mapping proxy)
    mutates_args: Iterable[str] | str,
) -> str:
    try:
        annotations = inspect.get_annotations(function, eval_str=True)
    except NameError as error:
        raise _wrong(
            qualname,
            f"An annotation of '{qualname}' can't be read: {error}.",
            "Import the name at the top of the file: annotations are read when the op is defined.",
        ) from error
    for name in parameters:
        if name not in annotations:
            raise _wrong(
                qualname,
                f"Parameter '{name}' of '{qualname}' must have a type annotation.",
                f"Write '{name}: Tensor', or what it is; or hand custom_op the schema as text.",
            )
    if "return" not in annotations:
        raise _wrong(
            qualname,
            f"No return type annotation was provided for '{qualname}'.",
            "Write '-> Tensor', or '-> tuple[Tensor, Tensor]' for two outputs.",
        )
    returned = annotations["return"]
    if get_origin(returned) is tuple and len(get_args(returned)) == 1:
        raise _wrong(
            qualname,
            f"The return type of '{qualname}' is a tuple of one.",
            "Write '-> Tensor', and return the tensor itself.",
        )
    if not isinstance(mutates_args, str):
        mutates_args = tuple(mutates_args)
        for name in mutates_args:
            if name not in parameters:
                raise _wrong(
                    qualname,
                    f"mutates_args of '{qualname}' names {name!r}, which is no argument.",
                    f"Its arguments are {', '.join(map(repr, parameters)) or 'none'}.",
                )
    try:
        return torch.library.infer_schema(function, mutates_args=mutates_args)
    except ValueError as error:
        raise _unfit(qualname, annotations, parameters, error) from error


def _unfit(
    qualname: str,
    annotations: dict[str, Any],
    parameters: Any,  # noqa: ANN401
    error: ValueError,
) -> OpDefinitionError:
    """Name the one annotation that doesn't fit, and the nearest that does."""
    for name in parameters:
        try:
            torch.library.infer_schema(_with_one(annotations[name]), mutates_args=())
        except ValueError:
            kind = annotations[name]
            origin = getattr(kind, "__origin__", kind)
            fix = _FOR_OTHERS.get(origin, f"An argument can be {_KNOWN}.")
            return _wrong(
                qualname,
                f"Parameter '{name}' of '{qualname}' has unsupported type {_spelled(kind)}.",
                fix,
            )
    default = re.search(r"[Pp]arameter (\w+).*default", str(error))
    if default:
        what = (
            f"The default of parameter '{default[1]}' of '{qualname}' can't be written in a schema."
        )
        return _wrong(qualname, what, "A default is None, a number, a bool or a str.")
    if "return" in str(error):
        what = (
            f"The return type {_spelled(annotations['return'])} of '{qualname}' is not supported."
        )
        return _wrong(qualname, what, f"It can be {_RETURNS}.")
    return _wrong(
        qualname,
        f"'{qualname}' has no schema: {str(error).splitlines()[0][:200]}",
        f"An argument can be {_KNOWN}.",
    )


def _with_one(annotation: object) -> Function:
    """A function of one argument with this annotation."""

    def function(x: Any) -> None: ...  # noqa: ANN401

    function.__annotations__ = {"x": annotation, "return": None}
    return function


def _spelled(kind: object) -> str:
    return (
        kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__origin__") else str(kind)
    )


def require_same_arguments(qualname: str, function: Function, names: Sequence[str]) -> None:
    """Raise OpDefinitionError where a function has other arguments than its schema in words.

    A signature without any, `def scale(): ...`, leaves all to the schema.
    """
    parameters = list(inspect.signature(function).parameters)
    if parameters and parameters != list(names):
        raise _wrong(
            qualname,
            f"The function of '{qualname}' has the arguments {parameters}; its schema names "
            f"{list(names)}.",
            "Make the signature match the schema, in names and order.",
        )


def _from_text(qualname: str, schema: str, function: Function) -> str:
    if not isinstance(schema, str) or not re.match(r"\s*\(.*\)\s*->", schema, re.DOTALL):
        raise _wrong(
            qualname,
            f"The schema of '{qualname}' has to be text, as '(Tensor x, float k=1.0) -> Tensor', "
            f"got {schema!r}.",
            "Leave out the name of the op; or leave out the schema and annotate the function.",
        )
    if function.__annotations__:
        raise _wrong(
            qualname,
            f"'{qualname}' has a schema in words and type annotations, too.",
            "Take away one of them: they could contradict each other.",
        )
    return schema.strip()


def _wrong(qualname: str, what: str, fix: str) -> OpDefinitionError:
    return OpDefinitionError(f"{what}\n{fix}", op=qualname)
