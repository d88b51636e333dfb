"""Ops that several tests define anew, each test under a namespace of its own."""

from __future__ import annotations

import collections
import itertools

import torch
from torch import Tensor

from autograd_lab.ops import custom_op

Pair = collections.namedtuple("Pair", "a b")
_numbers = itertools.count()


def fresh(name):
    """A qualified name that no other test has."""
    return f"t{next(_numbers)}::{name}"


def raw(op):
    """The op as torch.ops has it."""
    namespace, _, name = op.qualname.partition("::")
    return getattr(getattr(torch.ops, namespace), name)


def mulsin_op(qualname=None):
    """k * sin(x) * w, with its saved values in a nested tree."""

    @custom_op(qualname or fresh("mulsin"))
    def mulsin(x: Tensor, w: Tensor, k: float) -> Tensor:
        return k * x.sin() * w

    @mulsin.impl_abstract
    def _(x, w, k):
        return torch.empty_like(x)

    @mulsin.impl_save_for_backward
    def _(inputs, output):
        return {"x": inputs.x, "rest": Pair([inputs.w, "hi"], {"k": inputs.k})}

    @mulsin.impl_backward()
    def _(ctx, saved, grad):
        x, w, k = saved["x"], saved["rest"].a[0], saved["rest"].b["k"]
        return {"x": grad * k * x.cos() * w, "w": grad * k * x.sin()}

    return mulsin


def mulsin_tangent(ctx, saved, tangents):
    x, w, k = saved["x"], saved["rest"].a[0], saved["rest"].b["k"]
    tangent = torch.zeros_like(x)
    if tangents["x"] is not None:
        tangent = tangent + tangents["x"] * k * x.cos() * w
    if tangents["w"] is not None:
        tangent = tangent + tangents["w"] * k * x.sin()
    return tangent


def many_op():
    """Lists, an optional, a default; several outputs, one of them integer, one a list."""

    @custom_op(fresh("many"))
    def many(
        xs: list[Tensor], b: Tensor | None, idx: list[int], scale: float = 3.0
    ) -> tuple[Tensor, Tensor, list[Tensor]]: ...

    @many.impl("cpu")
    def _(xs, b, idx, scale=3.0):
        total = torch.zeros(3, dtype=torch.double)
        for i, x in enumerate(xs):
            total = total + x * (i + 1) * scale
        if b is not None:
            total = total + b
        return total, total.argsort(), [x * 2 for x in xs]

    @many.impl_abstract
    def _(xs, b, idx, scale=3.0):
        like = torch.empty_like(xs[0])
        return like, torch.empty_like(like, dtype=torch.long), [torch.empty_like(x) for x in xs]

    @many.impl_save_for_backward
    def _(inputs, output):
        return {"n": len(inputs.xs), "has_b": inputs.b is not None, "scale": inputs.scale}

    @many.impl_backward(output_differentiability=[True, False, True])
    def _(ctx, saved, g, gi, gl):
        many.seen = ctx.needs_input_grad
        return {
            "xs": [g * (i + 1) * saved["scale"] + gl[i] * 2 for i in range(saved["n"])],
            "b": g if saved["has_b"] else None,
        }

    return many


def scaled_op(backward=None, save=None, schema="(Tensor x) -> Tensor"):
    """2x, with any backward."""

    @custom_op(fresh("scaled"), schema)
    def scaled(): ...

    scaled.impl("cpu")(lambda x: x * 2)
    scaled.impl_save_for_backward(save or (lambda inputs, output: None))
    scaled.impl_backward(backward or (lambda ctx, saved, grad: {"x": grad * 2}))
    return scaled
