"""Turn calls, nodes and tensors of a recording into the words in which problems speak of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autograd_lab.recording import GradNode, Op, Snapshot, TensorId, TensorRef

__all__ = ["Wording", "joined", "kind_of_bad", "shape_words"]


class Wording:
    """The words for the calls, nodes and tensors of one recording.

    gradients  tensors that are gradients, as far as they were met
    """

    def __init__(
        self, nodes: Sequence[GradNode], ops: Sequence[Op], tensors: Sequence[TensorRef]
    ) -> None:
        self.nodes, self.ops, self.tensors = nodes, ops, tensors
        self.gradients: set[TensorId] = set()

    def call(self, op: Op) -> str:
        """A call with its module and line: "relu in act at net.py:7"."""
        module = f" in {op.module}" if op.module else ""
        return f"{op.name}{module}{f' at {op.source.place}' if op.source else ''}"

    def node(self, node: GradNode) -> str:
        """A node with the call that made it: "ReluBackward0 (made by relu in act at net.py:7)"."""
        if node.made_by is not None:
            return f"{node.short_name} (made by {self.call(self.ops[node.made_by])})"
        if node.formula and node.formula.startswith("backward defined"):
            return f"{node.short_name} ({node.formula})"
        if node.leaf is not None:
            return f"{node.short_name} of {self.tensor(node.leaf)}"
        return f"{node.short_name} ({node.source.place})" if node.source else node.short_name

    def tensor(self, tensor: TensorId) -> str:
        """A tensor's name, or what it is."""
        name = self.tensors[tensor].name
        return name or ("a gradient" if tensor in self.gradients else "an unnamed tensor")


def kind_of_bad(shots: Iterable[Snapshot]) -> str:
    """What those that are not finite hold: the norm is NaN where any element is one, else Inf."""
    norms = [shot.norm for shot in shots if shot.finite is False]
    has_nan = any(norm is None or norm != norm for norm in norms)
    return "NaN" if has_nan else "Inf" if norms else ""


def shape_words(shape: tuple[int, ...]) -> str:
    """A shape as torch.Size prints it."""
    return str(list(shape))


def joined(names: Iterable[str]) -> str:
    """Names with "and" between them, each once."""
    return " and ".join(dict.fromkeys(names))
