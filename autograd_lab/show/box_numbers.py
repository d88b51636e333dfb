"""Turn values into the second line of a box: choices, the most telling first."""

from __future__ import annotations

from collections.abc import Iterable

from autograd_lab.recording import Snapshot, TensorRef

from .numbers import format_shape
from .passes import NodeRun
from .words import amount, is_bad

__all__ = [
    "bad_amount",
    "held_numbers",
    "leaf_numbers",
    "norm_numbers",
    "op_numbers",
    "run_numbers",
]


def op_numbers(outputs: tuple[Snapshot, ...], ref: TensorRef, *, is_birth: bool) -> list[str]:
    """What a call returned where it is one number, NaN or Inf; else nothing. `ref`: its output."""
    bad = bad_amount(outputs)
    begins = [f"{bad} begins here", f"returns {bad}"] if bad and is_birth else []
    value = amount(outputs[0]) if len(outputs) == 1 else ""
    if value.startswith("= "):
        return [*begins, *([f"{ref.name} {value}"] if ref.name else []), value, value[2:]]
    return [*begins, f"norm {bad}", bad] if bad else []


def norm_numbers(number: str, *, word: str = "") -> list[str]:
    """A norm, with as many words as there is room for: "grad norm 0.5", "norm 0.5"."""
    return [*([f"{word} norm {number}"] if word else []), f"norm {number}"]


def held_numbers(
    ref: TensorRef, value: Snapshot | None, grad: Snapshot | None, *, has_grad: bool
) -> list[str]:
    """What a leaf or input holds where it is one number, NaN or Inf, and its `.grad` once known."""
    number = amount(value).removeprefix("= ") if value is not None else ""
    is_one = value is not None and amount(value).startswith("= ")
    data = [f"holds {bad_amount((value,))}"] if is_bad(value) else []
    data = [f"data {number}", number] if is_one else data
    if not has_grad:
        return data
    numbers = leaf_numbers(ref, grad)
    return [*(f"{one} · {numbers[1]}" for one in data), *numbers]


def leaf_numbers(ref: TensorRef, grad: Snapshot | None) -> list[str]:
    """The `.grad` of a leaf."""
    known = amount(grad).removeprefix("= ")
    choices = [f"{format_shape(ref.shape)} · grad {known}", f"grad {known}"]
    if grad is not None and grad.norm is not None and grad.numel > 1:
        choices.append(f"grad {grad.norm:.2g}")  # two digits, where four don't fit
    return choices


def run_numbers(run: NodeRun | None, *, is_leaf: bool, is_birth: bool) -> list[str]:
    """What a run of a node received, or where NaN or Inf begins; nothing without a run."""
    received = amount(run.received[0]) if run is not None and run.received else ""
    number = received.removeprefix("= ")
    if is_leaf:
        return [f"+= {number}"] if number else []
    if run is None or not received:
        return []
    bad = bad_amount(run.returned)
    if bad and is_birth:
        return [f"{bad} begins here", f"returns {bad}", bad]
    return [f"grad {number}", number] if received != number else norm_numbers(number, word="grad")


def bad_amount(snapshots: Iterable[Snapshot | None]) -> str:
    """NaN or Inf, as a word, where one of these has such an element; else nothing."""
    return next((amount(one).removeprefix("= ") for one in snapshots if is_bad(one)), "")
