"""The immutable whole: everything that one `record()` block saw."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from autograd_lab import views

from .events import Event, NotSeen, ProblemSeen
from .files import damaged, read_record, write_record
from .graph import GradNode, NodeId, Op, OpId, SourceText
from .record import Record
from .references import broken_reference
from .tensors import TensorId, TensorRef

__all__ = ["SCHEMA_VERSION", "Meta", "Recording", "load_recording"]

SCHEMA_VERSION = 1
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Meta(Record):
    """How a recording was made.

    values         "none", "auto" or "all"
    budget_nbytes  bounds the values kept
    """

    schema_version: int = SCHEMA_VERSION
    torch_version: str = ""
    device: str = "cpu"
    values: str = "auto"
    budget_nbytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Recording(Record):
    """Events in the order in which they happened, and the nouns that they name by id.

    Ids are positions: `recording.nodes[node_id]`, `recording.ops[op_id]` and
    `recording.tensors[tensor_id]`.
    """

    events: tuple[Event, ...] = ()
    nodes: tuple[GradNode, ...] = ()
    ops: tuple[Op, ...] = ()
    tensors: tuple[TensorRef, ...] = ()
    sources: tuple[SourceText, ...] = ()
    meta: Meta = Meta()

    def node(self, node_id: NodeId) -> GradNode:
        """The node with this id."""
        return self.nodes[node_id]

    def op(self, op_id: OpId) -> Op:
        """The forward call with this id."""
        return self.ops[op_id]

    def tensor(self, tensor_id: TensorId) -> TensorRef:
        """The tensor with this id."""
        return self.tensors[tensor_id]

    def events_of(self, kind: type[T]) -> Iterator[T]:
        """Yield the events of one type, in order."""
        return (event for event in self.events if isinstance(event, kind))

    @property
    def problems(self) -> tuple[ProblemSeen, ...]:
        """What the user should know, in order."""
        return tuple(self.events_of(ProblemSeen))

    @property
    def not_seen(self) -> tuple[NotSeen, ...]:
        """What could not be seen, and why."""
        return tuple(self.events_of(NotSeen))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write one strict JSON file; tensors over 64 kB go into a .safetensors file beside it.

        That file is named after the JSON and its own content
        (`step.json.1f0c9a3e.safetensors`), so no other file is ever overwritten, and a crash
        leaves the old recording whole. Saving over an older recording removes the file of its
        values.

        Returns the path. Raises OutputError where the folder does not exist.
        """
        return write_record(self, path, SCHEMA_VERSION)

    def __repr__(self) -> str:
        """Return the deterministic text."""
        return views.describe(self)

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        return views.mimebundle(self)


def load_recording(path: str | os.PathLike[str]) -> Recording:
    """Read what `Recording.save` wrote; the result equals what was saved.

    Raises ForeignFileError (not a recording), DamagedFileError (truncated or contradictory),
    NewerSchemaError, MissingValuesError (the .safetensors file beside it is missing or another's),
    FileNotFoundError.
    """
    recording = read_record(Recording, path, SCHEMA_VERSION)
    why = broken_reference(recording)
    if why is not None:
        raise damaged(Path(path), why)
    return recording
