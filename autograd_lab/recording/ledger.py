"""The ledger of what was saved for backward: one entry a leaf, memory counted once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from autograd_lab import views
from autograd_lab.errors import ForeignFileError

from .columns import MisfitError, decode
from .record import Record, field_names

__all__ = ["SavedEntry", "SavedLedger"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SavedEntry(Record):
    """One leaf of a saved tree.

    path            in Python's spelling: "saved['cache'][1]"
    role            "input", "output", "intermediate" (a tensor that is neither), "constant" (no
                    tensor), or "unknown" (a tensor, where inputs and outputs were not told)
    origin          which input or output: "input 'x'", or "view of output 0" for another tensor in
                    its memory; "" for the rest
    kind            its class: "Tensor", "Parameter", "float"
    text            value of a constant that is a plain number or text, shortened; else ""
    shape           sizes; None where unknown (nested and symbolic)
    dtype           torch's name without the prefix; None for a constant
    device          torch's text; None for a constant
    nbytes          of its elements; None where unknown, and for a constant
    storage_nbytes  of the memory that it keeps alive, which may be larger than its elements need (a
                    view) or smaller (expanded); None where unknown
    version         how often it was written in place before; None where unknown
    storage         number of that memory, from 0: entries with the same number share it; None where
                    unknown
    """

    path: str
    role: str
    origin: str = ""
    kind: str = "Tensor"
    text: str = ""
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    device: str | None = None
    nbytes: int | None = None
    storage_nbytes: int | None = None
    version: int | None = None
    storage: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SavedLedger(Record):
    """What a tree keeps for backward, leaf by leaf in the tree's order.

    Two ledgers are equal when all entries are. Printed, it is a table; `to_dict` gives plain JSON.

    >>> ledger = SavedLedger(entries=(SavedEntry(path="saved['k']", role="constant", text="2.0"),))
    >>> SavedLedger.from_dict(ledger.to_dict()) == ledger
    True
    """

    entries: tuple[SavedEntry, ...] = ()

    @property
    def tensors(self) -> tuple[SavedEntry, ...]:
        """The entries that are tensors."""
        return tuple(entry for entry in self.entries if entry.role != "constant")

    @property
    def storage_nbytes(self) -> int:
        """Bytes kept alive: each memory counted once, those of unknown size left out."""
        return sum(_by_storage(self.entries).values())

    @property
    def intermediate_nbytes(self) -> int:
        """Bytes kept alive that are neither an input's nor an output's: what saving adds."""
        others = {entry.storage for entry in self.entries if entry.role in ("input", "output")}
        counted = _by_storage(self.entries).items()
        return sum(nbytes for storage, nbytes in counted if storage not in others)

    @property
    def unknown_count(self) -> int:
        """Number of tensors whose memory is unknown."""
        return sum(entry.storage_nbytes is None for entry in self.tensors)

    def sharing(self, entry: SavedEntry) -> tuple[SavedEntry, ...]:
        """The other entries in the memory of this one."""
        if entry.storage is None:
            return ()
        return tuple(
            other
            for other in self.entries
            if other.storage == entry.storage and other.path != entry.path
        )

    def to_dict(self) -> dict[str, Any]:
        """The ledger as plain dicts, lists, strings and numbers, fit for `json.dumps`."""
        rows = [
            {name: _plain(getattr(entry, name)) for name in field_names(SavedEntry)}
            for entry in self.entries
        ]
        return {"kind": "SavedLedger", "entries": rows}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SavedLedger:
        """Inverse of `to_dict`; a field that an entry lacks gets its default.

        Raises ForeignFileError for what is no ledger, naming the field that does not fit.
        """
        try:
            if data["kind"] != "SavedLedger":
                message = f"it says that it is a {data['kind']!r}"
                raise MisfitError(message)
            rows = cast("list[dict[str, Any]]", list(data["entries"]))
            entries = [_entry(row) for row in rows]
        except (LookupError, TypeError, AttributeError, MisfitError) as error:
            message = (
                f"This is no SavedLedger: {error}.\n"
                "SavedLedger.from_dict was given it.\n"
                "Give what SavedLedger.to_dict returned."
            )
            raise ForeignFileError(message, error=str(error)) from error
        return cls(entries=tuple(entries))

    def __repr__(self) -> str:
        """Return the deterministic text."""
        return views.describe(self)

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        return views.mimebundle(self)


def _by_storage(entries: tuple[SavedEntry, ...]) -> dict[int, int]:
    """Bytes of each known memory, by its number."""
    return dict(_known(entries))


def _known(entries: tuple[SavedEntry, ...]) -> Iterator[tuple[int, int]]:
    for entry in entries:
        if entry.storage is not None and entry.storage_nbytes is not None:
            yield entry.storage, entry.storage_nbytes


def _plain(value: object) -> object:
    return list(cast("tuple[int, ...]", value)) if isinstance(value, tuple) else value


def _entry(row: dict[str, Any]) -> SavedEntry:
    """An entry whose fields fit their types: a table of one row is decoded."""
    columns = {name: [value] for name, value in row.items()}
    entry = decode(SavedEntry, {"SavedEntry": columns}, 0, lambda text: text.encode())
    assert isinstance(entry, SavedEntry)
    return entry
