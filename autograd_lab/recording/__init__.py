"""The nouns of a recording and their files: frozen, typed, without torch."""

from __future__ import annotations

from .events import (
    BackwardFinished,
    BackwardStarted,
    Event,
    GradAccumulated,
    NodeFinished,
    NodeStarted,
    NotSeen,
    OpCalled,
    OptimizerStepped,
    ProblemSeen,
    Scope,
)
from .graph import Edge, GradNode, NodeId, Op, OpId, PassId, SavedSlot, SourceLine, SourceText
from .ledger import SavedEntry, SavedLedger
from .record import Record
from .recording import Meta, Recording, load_recording
from .tensors import Detail, Histogram, Snapshot, TensorId, TensorRef, Values

__all__ = [
    "BackwardFinished",
    "BackwardStarted",
    "Detail",
    "Edge",
    "Event",
    "GradAccumulated",
    "GradNode",
    "Histogram",
    "Meta",
    "NodeFinished",
    "NodeId",
    "NodeStarted",
    "NotSeen",
    "Op",
    "OpCalled",
    "OpId",
    "OptimizerStepped",
    "PassId",
    "ProblemSeen",
    "Record",
    "Recording",
    "SavedEntry",
    "SavedLedger",
    "SavedSlot",
    "Scope",
    "Snapshot",
    "SourceLine",
    "SourceText",
    "TensorId",
    "TensorRef",
    "Values",
    "load_recording",
]
