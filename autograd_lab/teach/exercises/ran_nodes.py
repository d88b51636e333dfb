"""Turn a learner's function of a leaf into the names of the nodes that backward really ran."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["nodes_of"]


def nodes_of(build: Callable[[torch.Tensor], Any]) -> Any:  # noqa: ANN401 (what is no tensor, too)
    """Names of the nodes that `build` makes from a leaf, in the order in which backward runs them.

    The leaf's own node and the numbers at the end of torch's names are left out. What is no tensor
    is returned as it is, so that the verdict can say so.
    """
    result = build(torch.tensor(1.0, requires_grad=True))
    if not isinstance(result, torch.Tensor):
        return result
    ran: list[str] = []
    seen = set()
    waiting = [result.grad_fn] if result.grad_fn else []
    while waiting:
        node = waiting.pop()
        if node not in seen and node.next_functions:  # the leaf's own node has none
            seen.add(node)
            _note_when_it_runs(node, ran)
            waiting += [parent for parent, _ in node.next_functions if parent is not None]
    if seen:
        result.backward(torch.ones_like(result))
    return ran


def _note_when_it_runs(node: torch.autograd.graph.Node, ran: list[str]) -> None:
    name = node.name().rstrip("0123456789")
    node.register_prehook(lambda _: ran.append(name))
