"""Turn a recording into its timeline: phases, and marks on the steps that people look for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autograd_lab.recording import (
    BackwardFinished,
    Event,
    GradAccumulated,
    NodeFinished,
    NodeStarted,
    OpCalled,
    OptimizerStepped,
    ProblemSeen,
    Recording,
)

from .bad_steps import has_fault
from .frame_text import event_words
from .recording_tables import problem_line
from .words import Words, is_bad

__all__ = ["marks", "phases"]

KINDS = {"forward": "f", "optimizer": "o", "between": "x"}


def phases(recording: Recording, names: Sequence[str]) -> list[dict[str, Any]]:
    """Stretches of steps in the same phase; the step that ends a pass belongs to it."""
    found: list[dict[str, Any]] = []
    for step, (event, name) in enumerate(zip(recording.events, names, strict=True), 1):
        if isinstance(event, BackwardFinished):
            name = f"backward {event.pass_id}"
        if found and found[-1]["name"] == name:
            found[-1]["last"] = step
        else:
            kind = KINDS.get(name, "b")
            found.append({"name": name, "kind": kind, "first": step, "last": step})
    return found


def marks(recording: Recording, words: Words) -> list[dict[str, Any]]:
    """Accumulations, the first NaN or Inf of a faulty recording, optimizer steps, problems."""
    found: list[dict[str, Any]] = []
    has_bad = not has_fault(recording)
    for step, event in enumerate(recording.events, 1):
        if not has_bad and _brings_bad(event):
            has_bad = True
            text = f"the first NaN or Inf: {event_words(event, words)}"
            found.append({"step": step, "kind": "nonfinite", "text": text})
        match event:
            case GradAccumulated():
                text = f"{words.tensor(event.leaf)}.grad +="
                found.append({"step": step, "kind": "accumulate", "text": text})
            case OptimizerStepped():
                found.append({"step": step, "kind": "optimizer", "text": event_words(event, words)})
            case ProblemSeen():
                found.append({"step": step, "kind": "problem", "text": problem_line(event)})
            case _:
                pass
    return found


def _brings_bad(event: Event) -> bool:
    match event:
        case OpCalled():
            return any(map(is_bad, (*event.inputs, *event.outputs)))
        case NodeStarted():
            return any(map(is_bad, event.grad_outputs))
        case NodeFinished():
            return any(map(is_bad, event.grad_inputs))
        case GradAccumulated():
            return is_bad(event.added) or is_bad(event.after)
        case _:
            return False
