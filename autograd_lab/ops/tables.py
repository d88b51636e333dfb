"""What the engine of an op looks up in each call; it does not hold the op."""

from __future__ import annotations

import functools
from collections import namedtuple
from typing import Any

from .gradient_faults import GradientSite
from .registrations import Registration, Registrations
from .schema import OpSchema

__all__ = ["OpTables"]


class OpTables:
    """An op's name, schema and registrations, and what is derived of them once.

    name          without the namespace
    keys          names of the arguments that a gradient is asked for
    keywords      names of the arguments that are given by name alone
    inputs_of     makes the named tuple of all arguments, `scale_args(x=..., w=...)`
    """

    __slots__ = (
        "_site",
        "inputs_of",
        "keys",
        "keywords",
        "name",
        "names",
        "positional",
        "qualname",
        "registered",
        "returns_plain",
        "schema",
        "tensor_names",
    )

    def __init__(self, qualname: str, schema: OpSchema) -> None:
        self.qualname, self.schema = qualname, schema
        self.name = qualname.partition("::")[2]
        self.registered = Registrations()
        self.names, self.tensor_names = schema.names, schema.tensor_names
        self.keys = frozenset(schema.tensor_names)
        self.positional = schema.positional_count
        self.keywords = schema.names[schema.positional_count :]
        self.returns_plain = schema.returns == ("Tensor",)
        self._site: tuple[Registration, GradientSite] | None = None
        inputs: Any = namedtuple(f"{self.name}_args", schema.names)
        self.inputs_of = functools.partial(tuple.__new__, inputs)  # 3 times as fast as _make

    def site_of(self, backward: Registration) -> GradientSite:
        """Where a backward's gradients are checked; kept, since it is asked for in every call."""
        kept = self._site
        if kept is None or kept[0] is not backward:
            site = GradientSite(
                self.qualname, backward.place, self.names, self.tensor_names, self.keys
            )
            kept = self._site = backward, site
        return kept[1]
