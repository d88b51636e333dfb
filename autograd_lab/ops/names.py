"""Turn a qualified name into namespace and name, or say what is wrong with it."""

from __future__ import annotations

import keyword

from autograd_lab.errors import OpDefinitionError

__all__ = ["split_name"]

RESERVED = ("prim", "prims", "aten", "at", "torch", "pytorch")


def split_name(qualname: object) -> tuple[str, str]:
    """Return ("ns", "name") of "ns::name"; raises OpDefinitionError."""
    if not isinstance(qualname, str):
        raise _wrong(
            qualname,
            "has to be a string, such as 'lab::scale'",
            "Write @custom_op('lab::scale') above the function.",
        )
    namespace, found, name = qualname.partition("::")
    if not found:
        raise _wrong(
            qualname,
            "has no namespace",
            f"Write 'lab::{qualname}', with a word of your own for lab.",
        )
    if namespace in RESERVED:
        raise _wrong(
            qualname,
            f"stands in '{namespace}', which is a reserved namespace",
            f"Choose another one: 'my_{namespace}::{name}'.",
        )
    if "." in namespace:
        raise _wrong(qualname, "has a dot in its namespace", "Use letters, digits and underscores.")
    if "." in name:
        raise _wrong(
            qualname,
            "has a dot, which would make it an overload; these are not supported",
            f"Write '{namespace}::{name.replace('.', '_')}'.",
        )
    for part in (namespace, name):
        if not part.isidentifier() or keyword.iskeyword(part) or not part.isascii():
            raise _wrong(
                qualname,
                f"has '{part}', which is no name in Python",
                "Use ASCII letters, digits and underscores.",
            )
    return namespace, name


def _wrong(qualname: object, what: str, fix: str) -> OpDefinitionError:
    message = f"The name of the op, {qualname!r}, {what}.\n{fix}"
    return OpDefinitionError(message, op=qualname)
