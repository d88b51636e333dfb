"""Turn a dispatcher schema into what the checks need: arguments and returns, by name and kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from autograd_lab.errors import RegistrationError

__all__ = ["Argument", "Kind", "OpSchema", "read_schema"]

Kind = Literal["tensor", "tensors", "other"]

_KINDS: dict[str, Kind] = {
    "Tensor": "tensor",
    "Optional[Tensor]": "tensor",
    "List[Tensor]": "tensors",
    "List[Optional[Tensor]]": "tensors",
    "Optional[List[Tensor]]": "tensors",
    "Optional[List[Optional[Tensor]]]": "tensors",
}
DIFFERENTIABLE_RETURNS = ("int", "SymInt", "bool", "float", "Tensor", "List[Tensor]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument; `kind` is "tensor" and "tensors" (a list) also where None may stand."""

    name: str
    kind: Kind
    type: str
    is_keyword_only: bool = False
    has_default: bool = False
    default: Any = None
    is_mutated: bool = False


@dataclass(frozen=True, kw_only=True)
class OpSchema:
    """The signature of an op.

    text     as the dispatcher writes it, without the namespace
    returns  type of each return, as torch spells it: "Tensor", "List[Tensor]", "int"
    aliases  whether a return is declared a view of an argument
    """

    text: str
    arguments: tuple[Argument, ...]
    returns: tuple[str, ...]
    aliases: bool = False

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all arguments, in order."""
        return tuple(one.name for one in self.arguments)

    @cached_property
    def tensor_names(self) -> tuple[str, ...]:
        """The arguments that a gradient is asked for."""
        return tuple(one.name for one in self.arguments if one.kind != "other")

    @cached_property
    def has_lists(self) -> bool:
        """Whether an argument is a list of tensors."""
        return any(one.kind == "tensors" for one in self.arguments)

    @cached_property
    def positional_count(self) -> int:
        """How many arguments may be given by place."""
        return sum(not one.is_keyword_only for one in self.arguments)

    @property
    def keyword_only_tensors(self) -> tuple[str, ...]:
        """The arguments that hold tensors and are given by name alone."""
        return tuple(
            one.name for one in self.arguments if one.is_keyword_only and one.kind != "other"
        )

    @property
    def mutated(self) -> tuple[str, ...]:
        """The arguments that the op writes into."""
        return tuple(one.name for one in self.arguments if one.is_mutated)

    @cached_property
    def unfit_for_backward(self) -> str | None:
        """Why no backward can be registered for such an op; None where one can."""
        if self.mutated:
            return f"it writes into {', '.join(self.mutated)}, so what backward would read is gone"
        if not self.returns:
            return "it returns nothing that could have a gradient"
        others = [one for one in self.returns if one not in DIFFERENTIABLE_RETURNS]
        if others:
            return f"it returns {others[0]}, not one of {', '.join(DIFFERENTIABLE_RETURNS)}"
        return None

    def require_fit_for_backward(self, op: str) -> None:
        """Raise RegistrationError where no backward can be registered for such an op."""
        if self.unfit_for_backward is None:
            return
        message = (
            f"'{op}' can't have a backward: {self.unfit_for_backward}.\n"
            f"Its schema is {self.text}.\n"
            "Write an op that returns new tensors; or call this one where no gradient is needed."
        )
        raise RegistrationError(message, op=op, reason=self.unfit_for_backward)

    def complete(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """One value for each argument, in order.

        The dispatcher hands a kernel neither trailing arguments that equal their default nor, by
        place, keyword-only ones.
        """
        if len(args) == len(self.arguments):
            return args
        rest = self.arguments[len(args) :]
        return (*args, *(kwargs.get(one.name, one.default) for one in rest))


def read_schema(schema: Any) -> OpSchema:  # noqa: ANN401 (torch's FunctionSchema has no Python type)
    """Read what torch made of an op's signature."""
    return OpSchema(
        text=str(schema).partition("::")[2],
        arguments=tuple(
            Argument(
                name=one.name,
                kind=_KINDS.get(str(one.type), "other"),
                type=str(one.type),
                is_keyword_only=one.kwarg_only,
                has_default=one.has_default_value(),
                default=one.default_value,
                is_mutated=one.alias_info is not None and one.alias_info.is_write,
            )
            for one in schema.arguments
        ),
        returns=tuple(str(one.type) for one in schema.returns),
        aliases=any(one.alias_info is not None for one in schema.returns),
    )
