"""Recordings by hand that hold every kind of event, every dtype and every awkward number."""

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
    Histogram,
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
    Scope,
    Snapshot,
    SourceLine,
    SourceText,
    TensorId,
    TensorRef,
    Values,
)

LINE = SourceLine(file="In[3]", line=7, function="step", text='loss = "ü" < 1  # <b>')
NAN, INF = math.nan, math.inf
ARRAYS = {
    "NaN and Inf": np.array([NAN, INF, -INF, -0.0, 5e-324], dtype="float64"),
    "bfloat16, widened": np.array([[1.0, NAN], [-0.0, 3.390625]], dtype="float32"),
    "complex64": np.array([1 + 2j, complex(NAN, -INF)], dtype="complex64"),
    "complex128": np.array([[1e300 - 2j]], dtype="complex128"),
    "empty": np.zeros((0, 3), dtype="float32"),
    "0-d": np.array(2.5, dtype="float32"),
    "bool": np.array([True, False, True]),
    "int64": np.array([-(2**63), 2**63 - 1]),
    "uint8": np.arange(4, dtype="uint8"),
}
LARGE = {
    "float32": np.linspace(-1, 1, 20_000, dtype="float32").reshape(100, 200),
    "NaN": np.full(20_000, NAN, dtype="float32"),
    "complex64": (np.arange(10_000) + 1j).astype("complex64"),
    "complex128": np.full((2, 4_000), 1 - 2j, dtype="complex128"),
    "bool": np.arange(70_000) % 3 == 0,
    "int64": np.arange(9_000),
}


def values(array, **fields):
    """The record of an array, as capture makes it."""
    return Values(
        shape=array.shape,
        dtype=array.dtype.name,
        data=np.ascontiguousarray(array).data.tobytes(),
        **fields,
    )


def snapshot(array, *, tensor=0, **fields):
    """A snapshot that keeps all elements of an array."""
    return Snapshot(
        tensor=TensorId(tensor), numel=array.size, detail=Detail(values=values(array)), **fields
    )


def small(**fields):
    """Every type of event once, and a tensor of every kind."""
    outputs = tuple(
        snapshot(array, tensor=number, norm=norm, finite=norm == 1.0, version=number)
        for (number, array), norm in zip(
            enumerate(ARRAYS.values()),
            [NAN, INF, -INF, 1.0, -0.0, 5e-324, 1e308, None, 0.1],
            strict=True,
        )
    )
    node, op, first = NodeId(0), OpId(0), PassId(1)
    events = (
        OpCalled(op=op, outputs=outputs, inputs=outputs[:1], scope=Scope(module="a", stage=1)),
        BackwardStarted(pass_id=first, roots=(node,), grad_outputs=(None,), source=LINE),
        NodeStarted(pass_id=first, node=node, grad_outputs=(outputs[0], None)),
        NodeFinished(pass_id=first, node=node, grad_inputs=(None, outputs[1]), inside=node),
        GradAccumulated(pass_id=first, node=NodeId(1), leaf=TensorId(0), added=outputs[2]),
        OptimizerStepped(optimizer="SGD", op_count=2, parameters=(TensorId(0),), source=LINE),
        ProblemSeen(kind="exception", text="a\x00b\u2028\U0001f600\udc80", node=node),
        NotSeen(reason="scripted", text="<script>", thread=3),
        BackwardFinished(pass_id=first, error="RuntimeError: no"),
    )
    everything = {
        "events": events,
        "nodes": (
            GradNode(
                id=node,
                name="MulBackward0",
                edges=(Edge(node=NodeId(1), input=0), None),
                saved=(SavedSlot(name="self", shape=(2, 0), storage=1), SavedSlot(name="other")),
                made_by=op,
                source=LINE,
            ),
            GradNode(id=NodeId(1), name="torch::autograd::AccumulateGrad", leaf=TensorId(0)),
        ),
        "ops": (
            Op(id=op, name="mul", qualname="torch.mul", nodes=(node,), module="", source=LINE),
        ),
        "tensors": tuple(
            TensorRef(id=TensorId(number), shape=array.shape, dtype=array.dtype.name, name=name)
            for number, (name, array) in enumerate(ARRAYS.items())
        ),
        "sources": (SourceText(file="In[3]", function="step", first_line=6, lines=("", "x")),),
        "meta": Meta(torch_version="2.13.0", values="all", budget_nbytes=2**62),
    }
    return Recording(**everything | fields)


def large():
    """Several values over 64 kB, which go into the file beside the JSON."""
    outputs = tuple(snapshot(array, tensor=number) for number, array in enumerate(LARGE.values()))
    histogram = Histogram(first_exponent=-3, counts=(1, 0, 2))
    small_one = Snapshot(tensor=TensorId(0), detail=Detail(min=-INF, histogram=histogram))
    return small(events=(OpCalled(op=OpId(0), outputs=(*outputs, small_one)),))
