"""Turn the user's forward calls into tape entries, with a TorchFunctionMode that changes nothing.

A dispatch mode is not used: torch picks other backward formulas under one (4 of 1043 OpInfo samples changed).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from autograd_lab import torch_private

from .places import Place, global_name, user_frame
from .tape import RawOp, Tape

__all__ = ["FunctionTap"]

PropertyRead = type(torch.Tensor.requires_grad.__get__)
VIEWS = frozenset({"T", "mT", "H", "mH", "real", "imag"})
NO_OPS = frozenset(
    {
        "backward",
        "grad",
        "requires_grad_",
        "retain_grad",
        "register_hook",
        "__deepcopy__",
        "__reduce_ex__",
        "is_floating_point",
        "size",
        "dim",
        "numel",
        "item",
        "tolist",
        "numpy",
        "__repr__",
        "__format__",
        "__len__",
        "__bool__",
        "_make_subclass",
        "is_complex",
        "stride",
        "is_contiguous",
        "_set_grad_enabled",
        "set_grad_enabled",
        "pin_memory",
        "share_memory_",
    }
)


class FunctionTap(TorchFunctionMode):
    """Sees the outermost torch calls of the threads that enter it; torch switches it off inside its own handler."""

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self.tape = tape

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the call; write down what it did."""
        if torch.compiler.is_compiling():
            return func(*args, **(kwargs or {}))
        if type(func) is PropertyRead and func.__self__.__name__ not in VIEWS:  # pyright: ignore[reportFunctionMemberAccess]
            return func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name in NO_OPS:
            return func(*args, **(kwargs or {}))
        kwargs = kwargs or {}
        inplace = _writes_in_place(func, name, args, kwargs)
        if inplace:
            self.tape.measurer.flush()
        before = torch_private.autograd_sequence_number()
        output = func(*args, **kwargs)
        after = torch_private.autograd_sequence_number()
        try:
            with torch_private.without_torch_function():
                self._write(func, args, kwargs, output, before, after, inplace, sys._getframe(1))  # noqa: SLF001
        except Exception as error:  # noqa: BLE001 (our fault must not stop the user's program)
            self.tape.failed(error)
        return output

    def _write(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        output: Any,
        before: int,
        after: int,
        inplace: bool,
        frame: FrameType,
    ) -> None:
        tape = self.tape
        outputs = [output] if isinstance(output, torch.Tensor) else list(_tensors_in(output))
        if not outputs and after == before:
            return
        if any(torch_private.is_traced(tensor) for tensor in outputs):
            return
        state = tape.thread()
        place = tape.places.locate(frame, in_backward=bool(state.passes))
        if place.is_initialiser:
            return
        if place.optimizer is not None:
            self._write_optimizer_call(state.index, state.inside, place, args)
            return
        number = len(tape.ops)
        inputs, fresh = [], []
        shots = []
        for position, tensor in _positions(args, kwargs):
            identity = tape.identify(tensor)
            inputs.append(identity)
            if identity not in tape.measured:
                tape.measured.add(identity)
                shots.append(tape.shoot(tensor))
                fresh.append((identity, position))
                self._name_leaf(tensor, identity, frame)
        last_node = None
        for tensor in outputs[:1]:
            node = tensor.grad_fn
            if node is not None and node._sequence_nr() >= before:
                last_node = node._sequence_nr(), node.name()
                tape.made_by[last_node[0]] = number
        for sequence_number in range(before, after):
            tape.made_by[sequence_number] = number
        taken = tuple(tape.shoot(tensor) for tensor in outputs)
        tape.measured.update(shot.tensor for shot in taken)
        tape.ops.append(
            RawOp(
                function=func,
                place=place,
                inputs=tuple(inputs),
                outputs=tuple(shot.tensor for shot in taken),
                is_inplace=inplace,
                is_direct=frame.f_code is place.code,
                last_node=last_node,
                new_inputs=tuple(fresh),
                storages=tuple(_storage(tensor) for tensor in (outputs or _written(args))) if inplace else (),
            )
        )
        tape.events.append(("op", state.index, state.inside, number, taken, tuple(shots)))

    def _name_leaf(self, tensor: torch.Tensor, number: int, frame: FrameType) -> None:
        if number in self.tape.tensor_names:
            return
        name = self.tape.places.parameter_names.get(id(tensor)) if tensor.is_leaf else None
        if name is None:
            name = global_name(user_frame(frame), tensor)
        if name is not None:
            self.tape.tensor_names[number] = name

    def _write_optimizer_call(self, thread: int, inside: int | None, place: Place, args: tuple[Any, ...]) -> None:
        written = {self.tape.identify(tensor) for tensor in _tensors_in(args[:1]) if isinstance(tensor, torch.nn.Parameter)}
        events = self.tape.events
        if events and events[-1][0] == "optimizer" and events[-1][3].step == place.step:
            _, _, _, _, count, parameters = events[-1]
            events[-1] = ("optimizer", thread, inside, place, count + 1, parameters | written)
        else:
            events.append(("optimizer", thread, inside, place, 1, written))


def _positions(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[tuple[tuple[int | str, ...], torch.Tensor]]:
    """Tensors among the arguments, with where they stand: (1,), (0, 2), ("weight",)."""
    for first, value in (*enumerate(args), *kwargs.items()):
        if isinstance(value, torch.Tensor):
            yield (first,), value
        elif isinstance(value, (list, tuple)):
            for number, item in enumerate(value):
                if isinstance(item, torch.Tensor):
                    yield (first, number), item
                elif isinstance(item, (list, tuple, dict)):
                    yield from (((first, number), tensor) for tensor in _tensors_in(item))
        elif isinstance(value, dict):
            yield from (((first,), tensor) for tensor in _tensors_in(value))


def _tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """All tensors in nested tuples, lists, dicts and dataclass-like results, in order."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, torch.Tensor):
            yield item
        elif isinstance(item, (tuple, list)):
            stack.extend(reversed(item))
        elif isinstance(item, dict):
            stack.extend(reversed(list(item.values())))


def _written(args: tuple[Any, ...]) -> list[torch.Tensor]:
    return [args[0]] if args and isinstance(args[0], torch.Tensor) else []


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0


def _writes_in_place(func: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """`add_`, `__iadd__`, `__setitem__`, `out=`, `inplace=True`."""
    if name.endswith("_") and not name.endswith("__"):
        return True
    if name.startswith("__i") and name.endswith("__") and name not in ("__invert__", "__index__", "__int__"):
        return True
    if name == "__setitem__" or kwargs.get("out") is not None:
        return True
    position = _inplace_position(func)
    if position is None:
        return False
    return bool(kwargs.get("inplace", args[position] if position < len(args) else False))


@lru_cache(maxsize=512)
def _inplace_position(func: Callable[..., Any]) -> int | None:
    """Where a Python function takes `inplace`; None where it does not."""
    code = getattr(func, "__code__", None)
    if code is None:
        return None
    try:
        names = list(inspect.signature(func).parameters)
    except (TypeError, ValueError):
        return None
    return names.index("inplace") if "inplace" in names else None
