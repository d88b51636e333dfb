"""Turn a node's name into its derivative: torch's own formula, and the plain rule people write.

Node names follow torchgen: `pow.Tensor_Tensor` is the second entry of that base name, so it is
PowBackward1. The file is scanned for names once, and only the entries asked for are parsed.
"""

from __future__ import annotations

import re
from functools import cache

import yaml

from autograd_lab.torch_private import derivatives_file

__all__ = ["formula_of", "rule_of"]

VIEW = "dx = g, put back where the view took it from"
RULES = {
    "AccumulateGrad": "leaf.grad += g",
    "AbsBackward": "dx = g * sign(x)",
    "AddBackward": "da = g, db = g (each summed to its own shape)",
    "AddmmBackward": "dbias = g, da = g @ b.T, db = a.T @ g",
    "AliasBackward": VIEW,
    "AsStridedBackward": VIEW,
    "BmmBackward": "da = g @ b.mT, db = a.mT @ g",
    "CatBackward": "each input gets its own part of g",
    "CloneBackward": "dx = g",
    "ConvolutionBackward": "dx = g spread back through w, dw = x correlated with g, db = sum(g)",
    "CosBackward": "dx = -g * sin(x)",
    "DivBackward": "da = g / b, db = -g * a / b**2",
    "DotBackward": "da = g * b, db = g * a",
    "EmbeddingBackward": "each row of w gets the sum of g over the places that looked it up",
    "ExpBackward": "dx = g * exp(x)",
    "ExpandBackward": "dx = g summed over the expanded dimensions",
    "GeluBackward": "dx = g * (Phi(x) + x * phi(x))",
    "IndexBackward": VIEW,
    "LogBackward": "dx = g / x",
    "LogSoftmaxBackward": "dx = g - softmax(x) * sum(g)",
    "MaskedFillBackward": "dx = g, and 0 where the mask filled",
    "MaxBackward": "dx = g at the maximum, 0 elsewhere",
    "MaxPool2DWithIndicesBackward": "dx = g at the maximum of each window, 0 elsewhere",
    "MeanBackward": "dx = g / n, for each of the n elements",
    "MmBackward": "da = g @ b.T, db = a.T @ g",
    "MulBackward": "da = g * b, db = g * a",
    "MvBackward": "dA = outer(g, v), dv = A.T @ g",
    "NativeBatchNormBackward": (
        "dweight = sum(g * n), dbias = sum(g), dx = (h - mean(h) - n * mean(h * n)) / std "
        "for each channel in training; h = g * weight, n = x normalized"
    ),
    "NativeLayerNormBackward": (
        "dweight = sum(g * n), dbias = sum(g), dx = (h - mean(h) - n * mean(h * n)) / std "
        "for each row; h = g * weight, n = x normalized"
    ),
    "NegBackward": "dx = -g",
    "NllLossBackward": "dx = -g / n at the target's class, 0 elsewhere",
    "PermuteBackward": VIEW,
    "PowBackward": "dx = g * n * x**(n - 1)",
    "ReciprocalBackward": "dx = -g / x**2",
    "ReluBackward": "dx = g where x > 0, else 0",
    "RsqrtBackward": "dx = -g / 2 * x**(-3/2)",
    "SelectBackward": VIEW,
    "SigmoidBackward": "dx = g * s * (1 - s), s = sigmoid(x)",
    "SinBackward": "dx = g * cos(x)",
    "SliceBackward": VIEW,
    "SoftmaxBackward": "dx = s * (g - sum(g * s)), s = softmax(x)",
    "SplitBackward": VIEW,
    "SqrtBackward": "dx = g / (2 * sqrt(x))",
    "SqueezeBackward": VIEW,
    "StackBackward": "each input gets its own part of g",
    "SubBackward": "da = g, db = -g (each summed to its own shape)",
    "SumBackward": "dx = g, for each element",
    "TBackward": VIEW,
    "TanhBackward": "dx = g * (1 - tanh(x)**2)",
    "ToCopyBackward": "dx = g, in x's dtype and on its device",
    "TransposeBackward": VIEW,
    "UnbindBackward": VIEW,
    "UnsafeViewBackward": VIEW,
    "UnsqueezeBackward": VIEW,
    "ViewBackward": VIEW,
    "WhereBackward": "da = g where the condition holds, db = g where it does not",
}


def rule_of(node_name: str) -> str | None:
    """The plain rule in one line, None for rarer nodes: g comes in, dx goes out to input x."""
    return RULES.get(re.sub(r"\d+(_copy)?$", "", node_name.rpartition("::")[2]))


@cache
def formula_of(node_name: str) -> str | None:
    """Torch's own formula, one line per input ("self: grad * result"), or None.

    Source: derivatives.yaml, which torch ships with torchgen.
    """
    entry = _entries().get(node_name.removesuffix("_copy"))
    if entry is None:
        return None
    (fields,) = yaml.safe_load(entry)
    fields = fields.get("dispatch", {}).get("Default", fields)
    known = ("name", "dispatch", "output_differentiability")
    lines = [
        f"{name}: {' '.join(str(rule).split())}"
        for name, rule in fields.items()
        if name not in known
        and not re.fullmatch(r"result\d*|output\d*|out", name)
        and rule != "non_differentiable"
    ]
    return "\n".join(lines) or None


@cache
def _entries() -> dict[str, str]:
    """The text of each entry by the name of its node."""
    path = derivatives_file()
    if path is None:
        return {}
    numbers: dict[str, int] = {}
    entries = {}
    for entry in re.split(r"^(?=- name:)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[
        1:
    ]:
        schema = re.match(r"- name:\s+(\w+)", entry)
        if schema is None:
            continue
        title = "".join(part.title() for part in schema[1].split("_"))
        name = f"{title}Backward".replace("ForwardBackward", "Backward")
        entries[f"{name}{numbers.get(name, 0)}"] = entry
        numbers[name] = numbers.get(name, 0) + 1
    return entries
