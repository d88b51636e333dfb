"""Turn a recording into one whose values read "?": for predictions before the numbers are shown."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from autograd_lab.recording import Event, Recording, Snapshot

from .words import HIDDEN

__all__ = ["with_values_hidden"]


def with_values_hidden(recording: Recording) -> Recording:
    """The same events, nodes and names; no norm, no number and no NaN of what tensors held."""
    return replace(recording, events=tuple(map(_event_without_values, recording.events)))


def _event_without_values(event: Event) -> Event:
    changes: dict[str, Any] = {}
    for field in fields(event):
        value = getattr(event, field.name)
        if isinstance(value, Snapshot):
            changes[field.name] = _hidden(value)
        elif isinstance(value, tuple) and any(isinstance(one, Snapshot) for one in value):
            changes[field.name] = tuple(map(_hidden, value))
    return replace(event, **changes) if changes else event


def _hidden(snapshot: Snapshot | None) -> Snapshot | None:
    if snapshot is None:
        return None
    return Snapshot(
        tensor=snapshot.tensor, version=snapshot.version, numel=snapshot.numel, note=HIDDEN
    )
