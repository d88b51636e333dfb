"""Turn the graph below the roots of an engine call into raw nodes: numbers, edges, saved slots."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence, Set
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction

from autograd_lab import torch_private

from .saved_slots import read_slots
from .tape import RawNode, Tape

__all__ = ["meet_graph", "next_to_run", "node_of"]

ACCUMULATE = "torch::autograd::AccumulateGrad"


def meet_graph(
    tape: Tape,
    starts: Sequence[Any],
    ids: dict[Any, int],
    in_pass: int,
    thread: int,
    *,
    keeps_graph: bool,
) -> None:
    """Number each node below `starts`, depth first; its edges and slots are read once.

    ids          gains the number of each node
    keeps_graph  the node keeps its number in its metadata, for the next pass
    """
    nodes, same = tape.nodes, set[int]()
    order: list[tuple[Any, int, Any]] = []
    stack = list(reversed(starts))
    while stack:
        node = stack.pop()
        if node in ids:
            continue
        name = torch_private.node_name(node)
        if name == ACCUMULATE:
            ids[node] = _number_of_leaf(tape, node, name)
            continue
        nexts = node.next_functions
        number = ids[node] = _number_of(
            tape, node, name, in_pass, thread, same, keeps_graph=keeps_graph
        )
        order.append((node, number, nexts))
        if len(nexts) == 1:
            target = nexts[0][0]
            if target is not None:
                stack.append(target)
        else:
            stack.extend([target for target, _ in reversed(nexts) if target is not None])
    for node, number, nexts in order:
        raw = nodes[number]
        if raw.edges is None:
            edges: list[int] = []
            for target, position in nexts:
                edges.append(-1 if target is None else ids[target])
                edges.append(position)
            raw.edges = edges
            raw.saved = read_slots(node, tape.shots)
        if isinstance(node, BackwardCFunction) or (
            raw.saved and any(fields[7] is not None for fields in raw.saved)  # packed_by
        ):
            raw.is_open = True


def node_of(root: Any) -> Any:  # noqa: ANN401 (a tensor or a GradientEdge)
    """The node that the engine starts from; None where the root wants no gradient."""
    if not isinstance(root, torch.Tensor):
        return root.node
    if root.grad_fn is None and root.requires_grad:  # a leaf that is itself a root
        return torch.autograd.graph.get_gradient_edge(root).node
    return root.grad_fn


def next_to_run(ids: Mapping[Any, int], done: Set[int]) -> int | None:
    """The node that the engine had to run next: of those whose gradients had all come, the last.

    That is the one made last (torch/csrc/autograd/engine.cpp, ReadyQueue); None where none waits.
    """
    left = [(node, number) for node, number in ids.items() if number not in done]
    missing = {
        ids[target] for node, _ in left for target, _ in node.next_functions if target is not None
    }
    ready = [(node, number) for node, number in left if number not in missing]
    if not ready:
        return None
    return max(ready, key=lambda one: torch_private.sequence_number_of(one[0]))[1]


def _number_of_leaf(tape: Tape, node: Any, name: str) -> int:  # noqa: ANN401 (a C++ class)
    number = len(tape.nodes)
    leaf = tape.shots.origin(tape.shots.identify(node.variable))
    known = tape.accumulators.setdefault(leaf, number)
    if known == number:
        raw = RawNode(name)
        raw.leaf, raw.edges = leaf, ()
        tape.nodes.append(raw)
    return known


def _number_of(
    tape: Tape,
    node: Any,  # noqa: ANN401
    name: str,
    in_pass: int,
    thread: int,
    same: set[int],
    *,
    keeps_graph: bool,
) -> int:
    """The recorder's number of a node, new at the first meeting.

    same  nodes that were met before and whose graph was found to be the same one in this pass
    """
    metadata = node.metadata
    if tape.has_retained and (known := metadata.get(tape.node_key)) is not None:
        return known
    made_by, sequence_number = metadata.get(tape.op_key), torch_private.sequence_number_of(node)
    key = thread, sequence_number
    known = tape.by_sequence.get(key)
    if known is not None and tape.nodes[known].name == name:
        raw = tape.nodes[known]
        is_another = raw.in_pass == in_pass or made_by not in (None, raw.made_by)
        if not is_another and _is_same_graph(
            tape, node, known, same
        ):  # a graph that kept nothing may run twice without being retained
            raw.in_pass = in_pass
            for slot, *_, problem in read_slots(node, tape.shots) if raw.saved else ():
                if problem is not None:
                    tape.refused.append((in_pass, known, slot, problem))
            return known
    number = len(tape.nodes)
    raw = RawNode(name)
    raw.sequence_number, raw.in_pass = sequence_number, in_pass
    if made_by is not None:
        raw.made_by = made_by
    if thread:
        raw.thread = thread
    tape.by_sequence[key] = number
    if tape.made_in and (made_in := tape.made_in.get(key)) is not None:
        raw.made_in = made_in
    if isinstance(node, BackwardCFunction):
        raw.defined_at = _definition(type(node))
    tape.nodes.append(raw)
    if keeps_graph:
        metadata[tape.node_key] = number
    return number


def _is_same_graph(tape: Tape, node: Any, number: int, same: set[int]) -> bool:  # noqa: ANN401
    """Whether a node that has the number and name of one met before leads to the same leaves.

    Sequence numbers start anew in each thread: two graphs made in two threads share them.
    """
    stack, seen = [(node, number)], set[int]()
    while stack:
        node, number = stack.pop()
        if number in same or number in seen:
            continue
        seen.add(number)
        raw, nexts = tape.nodes[number], node.next_functions
        if raw.name != torch_private.node_name(node):
            return False
        if raw.leaf is not None:
            row = tape.shots.find(node.variable)
            if row is None or tape.shots.origin(row) != raw.leaf:
                return False
            continue
        if raw.edges is None or len(raw.edges) != 2 * len(nexts):
            return False
        for (target, _), known in zip(nexts, raw.edges[::2], strict=True):
            if (target is None) != (known < 0):
                return False
            if target is not None:
                stack.append((target, known))
    same |= seen
    return True


def _definition(kind: type) -> tuple[str, int] | None:
    """File and line of a Python Function's backward."""
    forward = torch_private.forward_class_of(kind)
    code = getattr(
        inspect.unwrap(getattr(forward, "backward", None) or (lambda: None)), "__code__", None
    )
    return (code.co_filename, code.co_firstlineno) if code else None
