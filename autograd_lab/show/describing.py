"""Turn any public record into its text: one function a type, found by the record's class."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import singledispatch

from autograd_lab.recording import Recording, SavedLedger, SourceLine, TensorRef
from autograd_lab.replay import Cursor, Frame, GradientFlow

from .flow_text import flow_text
from .frame_text import cursor_text, frame_text
from .ledger_text import ledger_text
from .numbers import format_number, format_shape
from .printable import printable
from .recording_text import recording_text
from .tables import shorten

__all__ = ["describe"]


def describe(record: object) -> str:
    """Return the deterministic text of a record.

    A record of a later room gets its text by `_text_of.register(Kind, text_of_kind)` here; until
    then its fields are listed, bytes by their number.
    """
    return printable(_text_of(record))


@singledispatch
def _text_of(record: object) -> str:
    if not is_dataclass(record):
        message = f"{type(record).__name__} is not a record of autograd_lab"
        raise TypeError(message)
    lines = [f"  {field.name}: {_field(getattr(record, field.name))}" for field in fields(record)]
    return "\n".join([type(record).__name__, *lines])


def _tensor_text(tensor: TensorRef) -> str:
    marks = [
        word
        for word, holds in (("leaf", tensor.is_leaf), ("requires grad", tensor.requires_grad))
        if holds
    ]
    device = [] if tensor.device == "cpu" else [tensor.device]
    name = tensor.name or "tensor"
    return ", ".join([f"{name} {format_shape(tensor.shape)}", tensor.dtype, *device, *marks])


def _source_text(source: SourceLine) -> str:
    return f"{source.place}  {source.text.strip()}".rstrip()


def _field(value: object) -> str:
    """A field's value in one line, without addresses."""
    if isinstance(value, float):
        return format_number(value)
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, tuple):
        shown = ", ".join(_field(item) for item in value[:8])
        return f"({shown}{f', {len(value) - 8} more' if len(value) > 8 else ''})"
    if is_dataclass(value) and not isinstance(value, type):
        inner = ", ".join(
            f"{field.name}={_field(getattr(value, field.name))}" for field in fields(value)
        )
        return f"{type(value).__name__}({shorten(inner, 120)})"
    return (
        shorten(str(value), 120)
        if isinstance(value, (str, int)) or value is None
        else type(value).__name__
    )


_text_of.register(Recording, recording_text)
_text_of.register(Frame, frame_text)
_text_of.register(Cursor, cursor_text)
_text_of.register(GradientFlow, flow_text)
_text_of.register(SavedLedger, ledger_text)
_text_of.register(TensorRef, _tensor_text)
_text_of.register(SourceLine, _source_text)
