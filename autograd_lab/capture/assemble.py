"""Turn the tape of a finished block into a frozen Recording."""

from __future__ import annotations

import torch

from autograd_lab.recording import Meta, Recording

from .event_records import EventRecords
from .graph_records import GraphRecords
from .notices import not_seen
from .problems import with_problems
from .tape import Tape

__all__ = ["assemble"]


def assemble(tape: Tape) -> Recording:
    """Build the Recording of a tape that was let go: the user's tensors are not touched."""
    graph = GraphRecords(tape)
    events = EventRecords(graph).all()
    tensors = graph.tensors()
    parameters = [graph.snapshot(row) for row in tape.parameter_shots]
    events = with_problems(events, graph.nodes, graph.ops, tensors, graph.writes(), parameters)
    devices = [tensor.device for tensor in tensors if tensor.device != "cpu"]
    measures = tape.shots.measures
    return Recording(
        events=(*events, *not_seen(tape, graph.nodes)),
        nodes=tuple(graph.nodes),
        ops=tuple(graph.ops),
        tensors=tuple(tensors),
        sources=graph.sources(),
        meta=Meta(
            torch_version=str(torch.__version__),
            device=devices[0] if devices else "cpu",
            values=measures.values,
            budget_nbytes=measures.budget_nbytes,
        ),
    )
