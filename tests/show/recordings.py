"""Hand-made recordings: small enough to check by eye, made without torch."""

from __future__ import annotations

import math

import numpy as np

from autograd_lab.recording import (
    BackwardFinished,
    BackwardStarted,
    Detail,
    Edge,
    GradAccumulated,
    GradNode,
    Meta,
    NodeFinished,
    NodeId,
    NodeStarted,
    NotSeen,
    Op,
    OpCalled,
    OpId,
    OptimizerStepped,
    PassId,
    ProblemSeen,
    Recording,
    SavedSlot,
    Snapshot,
    SourceLine,
    SourceText,
    TensorId,
    TensorRef,
    Values,
)

PASS = PassId(1)
META = Meta(torch_version="2.13.0")


def held(tensor: int, *numbers: float, shape: tuple[int, ...] | None = None) -> Snapshot:
    """What a tensor held: all of its numbers are kept."""
    array = np.array(numbers, dtype="<f4")
    finite = array[np.isfinite(array)]
    bad = finite.size < array.size
    detail = Detail(
        min=float(finite.min()) if finite.size else None,
        max=float(finite.max()) if finite.size else None,
        mean=float(finite.mean()) if finite.size else None,
        zeros=int((array == 0).sum()),
        nans=int(np.isnan(array).sum()),
        infs=int(np.isinf(array).sum()),
        negatives=int((array < 0).sum()),
        values=Values(
            shape=(array.size,) if shape is None else shape, dtype="float32", data=array.tobytes()
        ),
    )
    norm = (
        math.nan
        if np.isnan(array).any()
        else float(np.linalg.norm(array.astype("f8")))
        if not bad
        else math.inf
    )
    return Snapshot(
        tensor=TensorId(tensor),
        version=0,
        numel=array.size,
        norm=norm,
        finite=not bad,
        detail=detail,
    )


def normed(tensor: int, norm: float, numel: int = 4) -> Snapshot:
    """What a tensor held: only its norm is kept."""
    return Snapshot(
        tensor=TensorId(tensor), version=0, numel=numel, norm=norm, finite=math.isfinite(norm)
    )


def line(number: int, text: str, file: str = "lesson.py") -> SourceLine:
    """A line of the user's program."""
    return SourceLine(file=file, line=number, text=text)


def scalar(name: str = "x") -> Recording:
    """`y = x * x + x; y.backward()` at x = 3: two gradients meet at x."""
    source = line(2, "y = x * x + x")
    tensors = (
        ref(0, (), name=name, leaf=True),
        ref(1, ()),
        ref(2, (), name="y"),
        *(ref(i, ()) for i in range(3, 8)),
    )
    ops = (
        Op(
            id=OpId(0),
            name="mul",
            qualname="torch.Tensor.mul",
            inputs=tids(0, 0),
            outputs=tids(1),
            nodes=(NodeId(1),),
            source=source,
        ),
        Op(
            id=OpId(1),
            name="add",
            qualname="torch.Tensor.add",
            inputs=tids(1, 0),
            outputs=tids(2),
            nodes=(NodeId(0),),
            source=source,
        ),
    )
    saved = (
        SavedSlot(
            name="self",
            shape=(),
            dtype="float32",
            version=0,
            nbytes=4,
            storage=0,
            tensor=TensorId(0),
        ),
        SavedSlot(
            name="other",
            shape=(),
            dtype="float32",
            version=0,
            nbytes=4,
            storage=0,
            tensor=TensorId(0),
        ),
    )
    nodes = (
        GradNode(
            id=NodeId(0),
            name="AddBackward0",
            edges=edges(1, 2),
            made_by=OpId(1),
            source=source,
            formula="self: g\nother: g",
        ),
        GradNode(
            id=NodeId(1),
            name="MulBackward0",
            edges=edges(2, 2),
            saved=saved,
            made_by=OpId(0),
            source=source,
            formula="self: g * other\nother: g * self",
        ),
        GradNode(id=NodeId(2), name="torch::autograd::AccumulateGrad", leaf=TensorId(0)),
    )
    events = (
        OpCalled(op=OpId(0), outputs=(held(1, 9.0, shape=()),), inputs=(held(0, 3.0, shape=()),)),
        OpCalled(op=OpId(1), outputs=(held(2, 12.0, shape=()),)),
        BackwardStarted(
            pass_id=PASS, roots=(NodeId(0),), grad_outputs=(None,), source=line(3, "y.backward()")
        ),
        NodeStarted(pass_id=PASS, node=NodeId(0), grad_outputs=(held(3, 1.0, shape=()),)),
        NodeFinished(
            pass_id=PASS,
            node=NodeId(0),
            grad_inputs=(held(3, 1.0, shape=()), held(3, 1.0, shape=())),
        ),
        NodeStarted(pass_id=PASS, node=NodeId(1), grad_outputs=(held(3, 1.0, shape=()),)),
        NodeFinished(
            pass_id=PASS,
            node=NodeId(1),
            grad_inputs=(held(4, 3.0, shape=()), held(5, 3.0, shape=())),
        ),
        NodeStarted(pass_id=PASS, node=NodeId(2), grad_outputs=(held(6, 7.0, shape=()),)),
        GradAccumulated(
            pass_id=PASS,
            node=NodeId(2),
            leaf=TensorId(0),
            added=held(6, 7.0, shape=()),
            after=held(7, 7.0, shape=()),
        ),
        NodeFinished(pass_id=PASS, node=NodeId(2)),
        BackwardFinished(pass_id=PASS),
    )
    text = SourceText(
        file="lesson.py",
        function="<module>",
        first_line=1,
        lines=("x = torch.tensor(3.0)", "y = x * x + x", "y.backward()"),
    )
    return Recording(
        events=events, nodes=nodes, ops=ops, tensors=tensors, sources=(text,), meta=META
    )


def with_problems() -> Recording:
    """The scalar recording, a problem, an unseen part, an optimizer step, on a GPU."""
    base = scalar()
    extra = (
        ProblemSeen(
            kind="non-finite backward",
            text="MulBackward0 returned NaN for input 0; what it received was finite.",
            node=NodeId(1),
            pass_id=PASS,
            source=line(2, "y = x * x + x"),
        ),
        NotSeen(
            reason="threads", text="2 forward calls ran on another thread; their calls are missing."
        ),
        OptimizerStepped(
            optimizer="SGD", op_count=3, parameters=tids(0), source=line(4, "optimizer.step()")
        ),
    )
    meta = Meta(torch_version="2.13.0", device="cuda:0")
    return Recording(
        events=base.events + extra,
        nodes=base.nodes,
        ops=base.ops,
        tensors=base.tensors,
        sources=base.sources,
        meta=meta,
    )


def chain(length: int) -> Recording:
    """`length` calls of sin one after the other, then backward through all of them."""
    source = line(5, "x = x.sin()")
    tensors = [
        ref(0, (4,), name="x", leaf=True),
        *(ref(i, (4,), name="y") for i in range(1, length + 1)),
    ]
    grads = [ref(length + 1 + i, (4,)) for i in range(length + 2)]
    ops = [
        Op(
            id=OpId(i),
            name="sin",
            qualname="torch.sin",
            inputs=tids(i),
            outputs=tids(i + 1),
            nodes=(NodeId(i),),
            source=source,
        )
        for i in range(length)
    ]
    nodes = [
        GradNode(
            id=NodeId(i),
            name="SinBackward0",
            edges=edges(i - 1 if i else length),
            saved=(
                SavedSlot(
                    name="self",
                    shape=(4,),
                    dtype="float32",
                    version=0,
                    nbytes=16,
                    storage=i,
                    tensor=TensorId(i),
                ),
            ),
            made_by=OpId(i),
            source=source,
            formula="self: g * self.cos()",
        )
        for i in range(length)
    ]
    nodes.append(
        GradNode(id=NodeId(length), name="torch::autograd::AccumulateGrad", leaf=TensorId(0))
    )
    events: list = [OpCalled(op=OpId(i), outputs=(normed(i + 1, 1.0),)) for i in range(length)]
    events.append(
        BackwardStarted(
            pass_id=PASS, roots=(NodeId(length - 1),), grad_outputs=(normed(length + 1, 2.0),)
        )
    )
    for k, i in enumerate(reversed(range(length))):
        before, after = (
            normed(length + 1 + k, 2.0 * 0.9**k),
            normed(length + 2 + k, 2.0 * 0.9 ** (k + 1)),
        )
        events.append(NodeStarted(pass_id=PASS, node=NodeId(i), grad_outputs=(before,)))
        events.append(NodeFinished(pass_id=PASS, node=NodeId(i), grad_inputs=(after,)))
    last = normed(2 * length + 1, 2.0 * 0.9**length)
    events.append(NodeStarted(pass_id=PASS, node=NodeId(length), grad_outputs=(last,)))
    events.append(
        GradAccumulated(pass_id=PASS, node=NodeId(length), leaf=TensorId(0), added=last, after=last)
    )
    events.append(NodeFinished(pass_id=PASS, node=NodeId(length)))
    events.append(BackwardFinished(pass_id=PASS))
    return Recording(
        events=tuple(events),
        nodes=tuple(nodes),
        ops=tuple(ops),
        tensors=(*tensors, *grads),
        meta=META,
    )


def ref(
    number: int, shape: tuple[int, ...], *, name: str | None = None, leaf: bool = False
) -> TensorRef:
    """A float32 tensor that requires a gradient."""
    return TensorRef(
        id=TensorId(number),
        shape=shape,
        dtype="float32",
        is_leaf=leaf,
        requires_grad=True,
        name=name,
    )


def tids(*numbers: int) -> tuple[TensorId, ...]:
    """Ids of tensors."""
    return tuple(map(TensorId, numbers))


def edges(*nodes: int | None) -> tuple[Edge | None, ...]:
    """Edges to input 0 of these nodes."""
    return tuple(None if node is None else Edge(node=NodeId(node), input=0) for node in nodes)


def failed() -> Recording:
    """The scalar recording, cut off inside the second node by an exception."""
    base = scalar()
    error = "RuntimeError: saved tensor was modified"
    events = (*base.events[:6], BackwardFinished(pass_id=PASS, error=error))
    return Recording(
        events=events,
        nodes=base.nodes,
        ops=base.ops,
        tensors=base.tensors,
        sources=base.sources,
        meta=base.meta,
    )


def with_nan() -> Recording:
    """The scalar recording, but the multiplication's backward returns NaN."""
    base = scalar()
    nan = held(4, math.nan, shape=())
    events = list(base.events)
    events[6] = NodeFinished(pass_id=PASS, node=NodeId(1), grad_inputs=(nan, nan))
    return Recording(
        events=tuple(events), nodes=base.nodes, ops=base.ops, tensors=base.tensors, meta=base.meta
    )


ALL = {
    "nan": with_nan(),
    "scalar": scalar(),
    "problems": with_problems(),
    "failed": failed(),
    "chain": chain(400),
    "unprintable": scalar(name="\udc80 \x00\x1b[1m"),
    "hostile": scalar(name='<script>alert("x")</script>&\'</title></style></svg>"'),
    "empty": Recording(),
}
