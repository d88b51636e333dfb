"""Turn what went wrong into one short sentence that says what to do about it."""

from __future__ import annotations

import ast

import torch

from autograd_lab.recording import GradNode, Op

__all__ = ["cure_of_call", "cure_of_error", "cure_of_node", "cure_of_write"]

FREED = "Run the forward again before it, or give the earlier backward retain_graph=True."
_DIVISION = "x / 0 is Inf and 0 / 0 is NaN: add a small number to the divisor."
_LOGARITHM = "The log of 0 is -Inf, of a negative number NaN: clamp its input, x.clamp(min=1e-8)."
_ROOT = "The root of a negative number is NaN, 1 / sqrt(0) is Inf: clamp its input, x.clamp(min=0)."
_EXPONENTIAL = (
    "exp overflows, in float32 above 88.7: subtract the maximum first, as logsumexp and softmax do."
)
_POWER = "0 to a negative power is Inf, a negative number to a fraction NaN: clamp its input."
_ARCUS = "It is defined from -1 to 1 only: clamp its input to a little less than that."
_SOFTMAX = "A row of -Inf alone has no softmax: leave at least one entry of each row unmasked."
_SPREAD = "One element has no spread (it divides by n - 1): give correction=0, or more elements."
_CALLS = {
    **dict.fromkeys(("div", "divide", "true_divide", "reciprocal"), _DIVISION),
    **dict.fromkeys(("truediv", "rtruediv", "rdiv"), _DIVISION),
    **dict.fromkeys(("log", "log2", "log10", "log1p"), _LOGARITHM),
    **dict.fromkeys(("sqrt", "rsqrt"), _ROOT),
    **dict.fromkeys(("exp", "exp2", "expm1", "sinh", "cosh"), _EXPONENTIAL),
    **dict.fromkeys(("pow", "float_power", "rpow"), _POWER),
    **dict.fromkeys(("acos", "arccos", "asin", "arcsin", "atanh", "arctanh"), _ARCUS),
    **dict.fromkeys(("softmax", "log_softmax", "scaled_dot_product_attention"), _SOFTMAX),
    "mean": "The mean of no elements is NaN: look why the tensor is empty.",
    **dict.fromkeys(("std", "var", "std_mean", "var_mean"), _SPREAD),
}
_NODES = {
    "Sqrt": "g / (2 * sqrt(x)) divides by 0 at x = 0: add a small number under the root.",
    "Rsqrt": "-g / (2 * x**1.5) divides by 0 at x = 0: add a small number under the root.",
    "Log": "g / x divides by 0 at x = 0: clamp the input of the log, x.clamp(min=1e-8).",
    "Div": "g / b divides by 0 where the divisor b is 0: add a small number to it.",
    "Reciprocal": "-g / x**2 divides by 0 at x = 0: add a small number to x.",
    "Pow": "g * n * x**(n - 1) is Inf at x = 0 where n is below 1: add a small number to x.",
    "Acos": "-g / sqrt(1 - x**2) divides by 0 at 1 and -1: clamp its input to a little less.",
    "Asin": "g / sqrt(1 - x**2) divides by 0 at 1 and -1: clamp its input to a little less.",
    "Atan2": "g / (x**2 + y**2) divides by 0 where both are 0: add a small number to x.",
}
_MASKED = " A torch.where or a mask after it does not help, since 0 times Inf is NaN."


def cure_of_call(op: Op, what: str, dtype: str) -> str:
    """What to do where a call made NaN or Inf of finite inputs.

    what   "NaN" or "Inf"
    dtype  of what it returned
    """
    cure = _CALLS.get(op.name.strip("_"))
    if cure is not None:
        return cure
    return _overflow(dtype) if what == "Inf" else "Look at the values of its inputs."


def cure_of_node(node: GradNode, what: str, dtype: str, *, is_masked: bool) -> str:
    """What to do where a node made NaN or Inf of finite gradients.

    is_masked  some element of the gradient it received is 0
    """
    cure = _NODES.get(node.short_name.partition("Backward")[0])
    if cure is not None:
        return f"Its rule {cure}{_MASKED if is_masked and what == 'NaN' else ''}"
    if what == "Inf" and dtype != "float32":
        return _overflow(dtype)
    rule = f"Its rule is {node.rule}: look" if node.rule else "Look"
    return f"{rule} at the values that its forward call was given."


def cure_of_write(op: Op) -> str:
    """What to write instead of an in-place call; its own line out of place where that is plain."""
    instead = _out_of_place(op.source.text) if op.source else None
    if instead is not None:
        return f"Write {instead} instead."
    plain = "" if op.name.startswith("__") else ", or give inplace=False"
    if op.name.endswith("_") and plain:
        plain = f", or call {op.name.rstrip('_')} instead"
    return f"Write into a copy, as x.clone() makes one{plain}."


def cure_of_error(error: str) -> str:
    """What to do about an error of torch's engine; "" where only its own text says."""
    if "can be implicitly created only for scalar" in error:
        return "Make it a scalar first, as loss.mean() does, or give backward a gradient."
    return ""


def _overflow(dtype: str) -> str:
    kind: torch.dtype = getattr(torch, dtype)
    if not kind.is_floating_point:
        return "Look at the values of its inputs."
    largest = f"{torch.finfo(kind).max:.5g}".replace("e+", "e")
    wider = ", or use float32" if kind.itemsize < 4 else ""
    return f"{dtype} holds at most {largest}: scale the inputs down{wider}."


def _out_of_place(text: str) -> str | None:
    """`h *= 3` as `h = h * 3`, `h.mul_(3)` as `h = h.mul(3)`; None for a line of another kind."""
    try:
        lines = [statement for statement in ast.parse(text.strip()).body if _writes(statement)]
    except SyntaxError:
        return None
    if len(lines) != 1:
        return None
    match lines[0]:
        case ast.AugAssign(target=ast.Name() as name, op=operator, value=value):
            return f"{name.id} = {ast.unparse(ast.BinOp(ast.Name(name.id), operator, value))}"
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name() as name) as method) as call
        ):
            method.attr = method.attr.rstrip("_")
            return f"{name.id} = {ast.unparse(call)}"
        case _:
            return None


def _writes(statement: ast.stmt) -> bool:
    match statement:
        case ast.AugAssign():
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name))):
            return name.endswith("_") and not name.startswith("_")
        case _:
            return False
