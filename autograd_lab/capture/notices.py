"""Turn what the recorder knows it could not see into NotSeen lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autograd_lab.recording import GradNode, NotSeen

from .tape import Tape

__all__ = ["not_seen"]


def not_seen(tape: Tape, nodes: Sequence[GradNode]) -> list[NotSeen]:
    """One line a reason: what was noticed on the way, then what is missing in the end."""
    found = [*tape.not_seen.items(), *_missing(tape, nodes)]
    return [NotSeen(reason=reason, text=text) for reason, text in found]


def _missing(tape: Tape, nodes: Sequence[GradNode]) -> Iterator[tuple[str, str]]:
    compiled = sum(node.short_name == "CompiledFunctionBackward" for node in nodes)
    if compiled:
        yield (
            "compiled",
            f"A compiled region is one opaque node ({compiled} of them here): its inner calls are "
            "not Python's. To see inside, record the model without torch.compile (the original is "
            "model._orig_mod).",
        )
    unknown = [
        node.short_name
        for number, node in enumerate(nodes)
        if node.made_by is None
        and node.leaf is None
        and node.made_in_pass is None
        and node.short_name != "CompiledFunctionBackward"
        and tape.nodes[number].defined_at is None
    ]
    if unknown:
        some = list(dict.fromkeys(unknown))
        names = ", ".join(some[:5]) + (", ..." if len(some) > 5 else "")
        nodes_were = "1 node" if len(unknown) == 1 else f"{len(unknown)} nodes"
        yield (
            "unseen calls",
            f"{nodes_were} ({names}) came from calls that the recorder could not see: before the "
            "block, on another thread, or in scripted or C++ code. Gradients are recorded there, "
            "source lines are not.",
        )
    measures = tape.shots.measures
    if measures.refused_count:
        tensors = "1 tensor" if measures.refused_count == 1 else f"{measures.refused_count} tensors"
        yield (
            "budget",
            f"The values of {tensors} were not kept: the budget of {measures.budget_nbytes} bytes "
            "is used up. Their norms are here; give record(max_bytes=...) more to keep the values.",
        )
    if not tape.events:
        yield (
            "empty",
            "No torch call and no backward ran inside the block, so there is nothing to show.",
        )
