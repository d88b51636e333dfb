"""Turn the user's forward calls into tape entries, with a TorchFunctionMode that changes nothing.

A dispatch mode is not used: torch picks other backward formulas under one (4 of 1043 OpInfo
samples changed).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode, handle_torch_function

from autograd_lab import torch_private

from .places import Place, global_name, is_optimizer, user_frame
from .tape import SAME_ELEMENTS, Tape

__all__ = ["FunctionTap"]

HANDING_OVER = handle_torch_function.__code__
PropertyRead = type(torch.Tensor.requires_grad.__get__)  # pyright: ignore[reportAttributeAccessIssue]
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


ATTENTION = torch.nn.functional.multi_head_attention_forward


class FunctionTap(TorchFunctionMode):
    """Sees the outermost torch calls of the threads that enter it.

    Inside its own handler torch switches it off.
    """

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self.tape = tape
        self._is_on = False

    def start(self) -> None:
        """Watch the calls of this thread."""
        self._is_on = True
        self.__enter__()

    def stop(self) -> None:
        """Watch no longer, also under a mode that was entered later; may be called again."""
        if self._is_on:
            torch_private.leave_function_mode(self)
            self._is_on = False

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,  # noqa: ANN401 (torch's protocol)
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 (whatever the call returns)
        """Run the call; write down what it did."""
        if torch.compiler.is_compiling():
            return func(*args, **(kwargs or {}))
        if torch_private.is_being_traced():
            self.tape.not_seen["traced"] = (
                "torch.jit.trace ran inside the block: what it traced is not in the recording, and "
                "the source lines in its graph are the recorder's. Trace before the block."
            )
            return func(*args, **(kwargs or {}))
        facts = _FACTS.get(func)
        if facts is None:
            facts = _learn(func)
        kwargs = kwargs or {}
        if not facts.is_op:
            return func(*args, **kwargs)
        inplace = facts.is_inplace or (
            facts.inplace_at is not None
            and bool(
                kwargs.get(
                    "inplace", args[facts.inplace_at] if facts.inplace_at < len(args) else False
                )
            )
        )
        if not inplace and kwargs.get("out") is not None:
            inplace = True
        early = self._before_writing(args, sys._getframe(1)) if inplace else None
        before = torch_private.autograd_sequence_number()
        output = func(*args, **kwargs)
        after = torch_private.autograd_sequence_number()
        try:
            with torch_private.unseen():
                written = inplace, early
                self._write(func, args, kwargs, output, before, after, written, sys._getframe(1))
        except Exception as error:
            self.tape.failed(error)
        return output

    def _before_writing(self, args: tuple[Any, ...], frame: FrameType) -> int | None:
        """Measure what is about to be written over; the row of the target, if it is new here."""
        shots, row = self.tape.shots, None
        try:
            with torch_private.unseen():
                target = args[0] if args else None
                if (
                    isinstance(target, torch.Tensor)
                    and shots.current(target) is None
                    and not is_optimizer(frame.f_code)
                    and not torch_private.is_traced(target)
                ):
                    row = shots.shoot(target)
            shots.before_writing()
        except Exception as error:
            self.tape.failed(error)
        return row

    def _write(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        output: Any,  # noqa: ANN401 (whatever the call returned)
        before: int,
        after: int,
        written: tuple[bool, int | None],
        frame: FrameType,
    ) -> None:
        tape, shots = self.tape, self.tape.shots
        inplace, early = written
        outputs = (output,) if isinstance(output, torch.Tensor) else list(_tensors_in(output))
        if not outputs and inplace:  # `y[0] = x` returns nothing
            outputs = list(_tensors_in(args[:1]))
        if not outputs and after == before:
            return
        if outputs and type(outputs[0]) is not torch.Tensor and torch_private.is_traced(outputs[0]):
            return
        if torch_private.functorch_is_active():
            shots.may_be_wrapped = True
        state = tape.thread()
        place = tape.places.locate(frame, in_backward=bool(state.passes))
        if place.is_initialiser:
            return
        if place.optimizer is not None:
            self._write_optimizer_call(state.index, state.inside, place, args)
            return
        inputs: list[int] = []
        fresh: list[tuple[int, tuple[int | str, ...]]] = []
        find, is_taken = shots.find, shots.is_taken
        for position, tensor in _positions(args, kwargs):
            row = find(tensor)
            if row is None or not is_taken[row] or row == early:
                row = self._meet_input(tensor, row, position, frame, fresh)
            inputs.append(row)
        last_node = None
        if outputs:
            node = torch_private.node_that_made(outputs[0])
            if node is not None and (number := torch_private.sequence_number_of(node)) >= before:
                last_node = number, torch_private.node_name(node)
        if last_node is not None and len(inputs) == 1 and last_node[1] in SAME_ELEMENTS:
            rows = [self._share(args, tensor) for tensor in outputs]
        else:
            rows = [shots.shoot(tensor) for tensor in outputs]
        if func is ATTENTION and not kwargs.get("training") and not outputs[0].requires_grad:
            tape.not_seen["fused attention"] = (
                "In eval mode without grad, torch may run attention as one fused kernel. Any "
                "recording switches that off: outputs differ by about 5e-7, and it is slower."
            )
        storages = [_storage(tensor) for tensor in outputs] if inplace else ()
        is_direct = _caller(frame, func) is place.code
        facts = (
            inputs,
            rows,
            state.index,
            before,
            after,
            last_node,
            inplace,
            is_direct,
            fresh,
            storages,
        )
        tape.events.append(("op", state.index, state.inside, len(tape.ops)))
        tape.ops.append((func, place, *facts))

    def _meet_input(
        self,
        tensor: torch.Tensor,
        row: int | None,
        position: tuple[int | str, ...],
        frame: FrameType,
        fresh: list[tuple[int, tuple[int | str, ...]]],
    ) -> int:
        """The row of an input whose value is not on the tape.

        At `values="none"` parameters stay unmeasured: they are no outputs of the recorded calls.
        """
        tape, shots = self.tape, self.tape.shots
        if not shots.keeps_values and isinstance(tensor, torch.nn.Parameter):
            if row is None:
                row = shots.identify(tensor)
                tape.parameters.append(row)
            return row
        if row is None or not shots.is_taken[row]:  # else it was, just before it was written over
            row = shots.shoot(tensor)
        fresh.append((row, position))
        name = global_name(user_frame(frame), tensor) if row not in tape.tensor_names else None
        if name is not None:
            tape.tensor_names[shots.origins[row]] = name
        return row

    def _share(self, args: tuple[Any, ...], tensor: torch.Tensor) -> int:
        """A view's norm is its base's: measured once."""
        base = args[0] if args else None
        if isinstance(base, torch.Tensor) and base.numel() == tensor.numel():
            source = self.tape.shots.current(base)
            if source is not None:
                return self.tape.shots.share(tensor, source)
        return self.tape.shots.shoot(tensor)

    def _write_optimizer_call(
        self, thread: int, inside: int | None, place: Place, args: tuple[Any, ...]
    ) -> None:
        shots, events = self.tape.shots, self.tape.events
        written = {
            shots.origins[shots.identify(tensor)]
            for tensor in _tensors_in(args[:1])
            if isinstance(tensor, torch.nn.Parameter)
        }
        if events and events[-1][0] == "optimizer" and events[-1][3].step == place.step:
            _, _, _, _, calls, parameters = events[-1]
            events[-1] = ("optimizer", thread, inside, place, calls + 1, parameters | written)
        else:
            events.append(("optimizer", thread, inside, place, 1, written))


def _caller(frame: FrameType, func: Callable[..., Any]) -> CodeType | None:
    """The code that called the function; torch's Python functions hand themselves over to modes."""
    inner = getattr(func, "__code__", None)
    caller: FrameType | None = frame
    while caller is not None and (caller.f_code is HANDING_OVER or caller.f_code is inner):
        caller = caller.f_back
    return None if caller is None else caller.f_code


def _positions(
    args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[tuple[tuple[int | str, ...], torch.Tensor]]:
    """Tensors among the arguments, with where they stand: (1,), (0, 2), ("weight",)."""
    found: list[tuple[tuple[int | str, ...], torch.Tensor]] = []
    for first, value in (*enumerate(args), *kwargs.items()) if kwargs else enumerate(args):
        if isinstance(value, torch.Tensor):
            found.append(((first,), value))
        elif isinstance(value, (list, tuple)):
            for number, item in enumerate(value):
                if isinstance(item, torch.Tensor):
                    found.append(((first, number), item))
                elif isinstance(item, (list, tuple, dict)):
                    found.extend(((first, number), tensor) for tensor in _tensors_in(item))
        elif isinstance(value, dict):
            found.extend(((first,), tensor) for tensor in _tensors_in(value))
    return found


def _tensors_in(value: Any) -> Iterator[torch.Tensor]:  # noqa: ANN401 (whatever a call takes)
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


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0


class Facts(NamedTuple):
    """What a function's name says.

    is_op       it computes
    is_inplace  it writes in place: `add_`, `__iadd__`, `__setitem__`
    inplace_at  where it takes `inplace`
    """

    is_op: bool
    is_inplace: bool = False
    inplace_at: int | None = None


_FACTS: dict[Callable[..., Any], Facts] = {}


def _learn(func: Callable[..., Any]) -> Facts:
    if len(_FACTS) > 4096:  # functions made at run time
        _FACTS.clear()
    facts = _FACTS[func] = _facts(func)
    return facts


def _facts(func: Callable[..., Any]) -> Facts:
    name = getattr(func, "__name__", "")
    if name in NO_OPS or name == "__set__" or name == "__delete__":
        return Facts(is_op=False)
    if type(func) is PropertyRead and name == "__get__":
        return Facts(is_op=func.__self__.__name__ in VIEWS)  # pyright: ignore[reportFunctionMemberAccess]
    is_dunder = name.startswith("__") and name.endswith("__")
    if name == "__setitem__" or (
        name.startswith("__i")
        and is_dunder
        and name not in ("__invert__", "__index__", "__int__", "__iter__")
    ):
        return Facts(is_op=True, is_inplace=True)
    if name.endswith("_") and not is_dunder:
        return Facts(is_op=True, is_inplace=True)
    code = getattr(func, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    return Facts(is_op=True, inplace_at=names.index("inplace") if "inplace" in names else None)
