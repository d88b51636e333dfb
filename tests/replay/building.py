"""Build recordings by hand: a short program of forward calls and backward passes, without torch."""

from __future__ import annotations

from dataclasses import replace

from autograd_lab.recording import (
    BackwardFinished,
    BackwardStarted,
    Edge,
    Event,
    GradAccumulated,
    GradNode,
    NodeFinished,
    NodeId,
    NodeStarted,
    Op,
    OpCalled,
    OpId,
    PassId,
    Recording,
    SavedSlot,
    Snapshot,
    SourceLine,
    TensorId,
    TensorRef,
)


class Builder:
    """A recorder for programs that never ran: each method adds what a recorder would have seen."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.nodes: list[GradNode] = []
        self.ops: list[Op] = []
        self.tensors: list[TensorRef] = []
        self.node_of: dict[TensorId, NodeId] = {}
        self.grads: dict[TensorId, float] = {}
        self.pass_count = 0

    def recording(self) -> Recording:
        return Recording(
            events=tuple(self.events),
            nodes=tuple(self.nodes),
            ops=tuple(self.ops),
            tensors=tuple(self.tensors),
        )

    def tensor(self, name=None, *, shape=(2, 3), leaf=False, parameter=False, requires_grad=False):
        tensor = TensorId(len(self.tensors))
        self.tensors.append(
            TensorRef(
                id=tensor,
                shape=shape,
                dtype="float32",
                name=name,
                is_leaf=leaf or parameter,
                is_parameter=parameter,
                requires_grad=requires_grad or leaf,
            )
        )
        return tensor

    def parameter(self, name, *, requires_grad=True, shape=(2, 3)):
        return self.tensor(name, parameter=True, requires_grad=requires_grad, shape=shape)

    def node(self, name, edges=(), **fields):
        node = NodeId(len(self.nodes))
        edges = tuple(None if target is None else Edge(node=target, input=0) for target in edges)
        self.nodes.append(GradNode(id=node, name=name, edges=edges, **fields))
        return node

    def grad_fn(self, tensor):
        """The node that a gradient of `tensor` goes to: None where it needs none."""
        ref = self.tensors[tensor]
        if tensor not in self.node_of and ref.is_leaf and ref.requires_grad:
            self.node_of[tensor] = self.node("torch::autograd::AccumulateGrad", leaf=tensor)
        return self.node_of.get(tensor)

    def op(
        self, name, *inputs, out=None, module=None, extra_nodes=0, saved=(), grad=True, **fields
    ):
        """Call an op: one node of its name, `extra_nodes` more in a chain before it."""
        op = OpId(len(self.ops))
        output = self.tensor(out, requires_grad=grad)
        edges = [self.grad_fn(tensor) for tensor in inputs]
        made: list[NodeId] = []
        if grad and any(edge is not None for edge in edges):
            slots = tuple(
                SavedSlot(name=slot, nbytes=nbytes, storage=storage)
                for slot, nbytes, storage in saved
            )
            place = {"made_by": op, "module": module}
            for number in range(extra_nodes):
                made.append(self.node(f"Part{number}Backward0", edges, **place))
                edges = [made[-1]]
            made.append(self.node(f"{name.title()}Backward0", edges, saved=slots, **place))
            self.node_of[output] = made[-1]
        self.ops.append(
            Op(
                id=op,
                name=name,
                qualname=f"torch.{name}",
                inputs=inputs,
                outputs=(output,),
                nodes=tuple(made),
                module=module,
                source=SourceLine(file="model.py", line=10 + op),
                **fields,
            )
        )
        self.events.append(OpCalled(op=op, outputs=(self.snapshot(output, 1.0),)))
        return output

    def snapshot(self, tensor, norm, numel=6):
        return Snapshot(tensor=tensor, norm=norm, numel=numel, finite=abs(norm) < float("inf"))

    def start_pass(self, *roots, **fields):
        self.pass_count += 1
        pass_id = PassId(self.pass_count)
        self.events.append(BackwardStarted(pass_id=pass_id, roots=roots, **fields))
        return pass_id

    def run(self, pass_id, node, *, received=1.0, returned=1.0, accumulates=True):
        """Run one node; `returned` is the norm for every edge, or one each (None: no gradient)."""
        self.start(pass_id, node, received=received)
        record = self.nodes[node]
        norms = returned if isinstance(returned, tuple) else (returned,) * len(record.edges)
        if record.leaf is not None and accumulates and received is not None:
            before = self.grads.get(record.leaf)
            self.grads[record.leaf] = received + (before or 0.0)
            self.events.append(
                GradAccumulated(
                    pass_id=pass_id,
                    node=node,
                    leaf=record.leaf,
                    before=None if before is None else self.snapshot(record.leaf, before),
                    added=self.snapshot(record.leaf, received),
                    after=self.snapshot(record.leaf, self.grads[record.leaf]),
                )
            )
        grads = tuple(
            self.snapshot(TensorId(0), norm) if edge is not None and norm is not None else None
            for edge, norm in zip(record.edges, norms, strict=True)
        )
        self.events.append(NodeFinished(pass_id=pass_id, node=node, grad_inputs=grads))

    def start(self, pass_id, node, *, received=1.0):
        grad = None if received is None else self.snapshot(TensorId(0), received)
        self.events.append(NodeStarted(pass_id=pass_id, node=node, grad_outputs=(grad,)))

    def finish_pass(self, pass_id, error=None):
        self.events.append(BackwardFinished(pass_id=pass_id, error=error))

    def backward(self, output, *, gain=1.0, stop_after=None, **fields):
        """Run the engine from `output`: inner nodes newest first, then the leaves."""
        root = self.node_of[output]
        pass_id = self.start_pass(root, **fields)
        order = self.order_from(root)
        norms = {root: 1.0}
        for node in order[:stop_after]:
            received = norms[node]
            self.run(pass_id, node, received=received, returned=received * gain)
            for edge in self.nodes[node].edges:
                if edge is not None:
                    norms[edge.node] = received * gain
        self.finish_pass(pass_id, None if stop_after is None else "RuntimeError: planted")
        return pass_id

    def order_from(self, root):
        reached, stack = {root}, [root]
        while stack:
            new = {e.node for e in self.nodes[stack.pop()].edges if e is not None} - reached
            reached |= new
            stack += new
        inner = sorted((n for n in reached if self.nodes[n].leaf is None), reverse=True)
        return inner + sorted(n for n in reached if self.nodes[n].leaf is not None)

    def amend_tensor(self, tensor, **fields):
        self.tensors[tensor] = replace(self.tensors[tensor], **fields)


def chain(length, *, name="sin", module=None):
    """`length` calls on one leaf, and a backward through them."""
    build = Builder()
    x = build.tensor("x", leaf=True)
    for number in range(length):
        path = module(number) if module else None
        x = build.op(name, x, module=path, saved=[("self", 24, number)])
    build.backward(x)
    return build.recording()


def perceptron(depth, *, residual=False, prefix="blocks"):
    """`depth` blocks of linear and relu with two parameters each, and a backward."""
    build = Builder()
    h = build.tensor("x")
    for number in range(depth):
        path = f"{prefix}.{number}"
        weight = build.parameter(f"{path}.fc.weight")
        bias = build.parameter(f"{path}.fc.bias", shape=(3,))
        y = build.op("linear", h, weight, bias, module=f"{path}.fc")
        y = build.op("relu", y, module=f"{path}.act")
        h = build.op("add", h, y, module=path) if residual else y
    build.backward(build.op("sum", h))
    return build.recording()
