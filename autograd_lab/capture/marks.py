"""Turn the nodes that a recorder marked back into what they were.

A mark is a number in a node's own dictionary of metadata. A pass that frees its graph takes the
marks off what it reached; what is left is reached from the tensors that are still alive.
"""

from __future__ import annotations

from autograd_lab import torch_private

from .tape import Tape

__all__ = ["take_off_marks"]


def take_off_marks(tape: Tape) -> None:
    """Take the recorder's numbers off every node that can still be reached."""
    if not tape.mark_count and not tape.has_retained:
        return
    try:
        with torch_private.unseen():
            stack = [torch_private.node_that_made(tensor) for tensor in tape.shots.alive()]
            seen = set(stack)
            while stack:
                node = stack.pop()
                if node is None:
                    continue
                metadata = node.metadata
                metadata.pop(tape.op_key, None)
                metadata.pop(tape.node_key, None)
                for target, _ in node.next_functions:
                    if target is not None and target not in seen:
                        seen.add(target)
                        stack.append(target)
    except Exception as error:
        tape.failed(error)
