"""Turn the user's lines into names for tensors: what a line assigns to, and what it calls with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from .expressions import argument_name, target_name
from .tape import RawOp, Tape

__all__ = ["name_tensors"]


def name_tensors(tape: Tape, ops: Sequence[RawOp]) -> dict[int, str]:
    """Names by the tensor's first row: parameter paths and globals met on the way, then variables.

    Of the calls on one line, the last one's output gets the variable that the line assigns to.
    """
    names, last = dict(tape.tensor_names), {}
    origin = tape.shots.origin
    for op in ops:
        code, instruction = op.place.code, op.place.instruction
        if code is None:
            continue
        for row, position in op.new_inputs:
            if origin(row) not in names and (name := _input_name(op, position)) is not None:
                names[origin(row)] = name
        before = last.get(code)
        if before is not None and _where(before) != (instruction, op.place.module):
            _name_output(before, origin, names)
        last[code] = op
    for op in last.values():
        _name_output(op, origin, names)
    return names


def _where(op: RawOp) -> tuple[int, object]:
    return op.place.instruction, op.place.module


def _input_name(op: RawOp, position: tuple[int | str, ...]) -> str | None:
    code, function = op.place.code, op.function
    assert code is not None
    if op.is_direct:
        name = getattr(function, "__name__", "")
        is_method = getattr(torch.Tensor, name, None) is function
        is_reflected = name.startswith("__r") and name != "__rshift__"
        return argument_name(
            code, op.place.instruction, position, is_method=is_method, is_reflected=is_reflected
        )
    if len(op.new_inputs) == 1 or position == (0,):  # `self.fc1(x)` runs `linear(x, weight, bias)`
        first = 1 if op.place.is_checkpointed else 0  # checkpoint(function, x)
        return argument_name(code, op.place.instruction, (first,))
    return None


def _name_output(op: RawOp, origin: Callable[[int], int], names: dict[int, str]) -> None:
    if op.outputs and origin(op.outputs[0]) not in names and op.place.code is not None:
        name = target_name(op.place.code, op.place.instruction)
        if name is not None:
            names[origin(op.outputs[0])] = name
