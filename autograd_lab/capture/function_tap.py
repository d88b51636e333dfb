"""Turn the user's forward calls into tape entries, with a TorchFunctionMode that changes nothing.

A dispatch mode is not used: torch picks other backward formulas under one (4 of 1043 OpInfo
samples changed).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, handle_torch_function

from autograd_lab import torch_private

from .arguments import Position, positions_in, tensors_in, written_by
from .call_kinds import BUILT_IN, CallKind, kind_of, writes_in_place
from .memory import storage_of
from .places import Place, global_name, is_silent, user_frame
from .shots import IS_PARAMETER
from .tape import SAME_ELEMENTS, Tape

__all__ = ["FunctionTap"]

HANDING_OVER = handle_torch_function.__code__
ATTENTION = torch.nn.functional.multi_head_attention_forward

Fresh = list[tuple[int, Position]]


class FunctionTap(TorchFunctionMode):
    """Sees the outermost torch calls of the threads that enter it.

    Inside its own handler torch switches it off.
    """

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self.tape = tape
        self._is_on = False
        self._thread = 0

    def start(self) -> None:
        """Watch the calls of this thread."""
        self._is_on, self._thread = True, threading.get_ident()
        self.__enter__()

    def stop(self) -> None:
        """Watch no longer, also under a mode that was entered later; may be called again."""
        if not self._is_on:
            return
        if threading.get_ident() == self._thread:
            torch_private.leave_function_mode(self)
        else:
            self.tape.not_seen["left in another thread"] = (
                "The block was left in another thread than it was entered in. In the first one a "
                "function mode that does nothing stays on; enter and leave in one thread."
            )
        self._is_on = False

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,  # noqa: ANN401 (torch's protocol)
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 (whatever the call returns)
        """Run the call; write down what it did."""
        if torch.compiler.is_compiling() or self.tape.is_over:
            return func(*args, **(kwargs or {}))
        if torch_private.is_being_traced():
            self.tape.not_seen["traced"] = (
                "torch.jit.trace ran inside the block: what it traced is not in the recording, and "
                "the source lines in its graph are the recorder's. Trace before the block."
            )
            return func(*args, **(kwargs or {}))
        kwargs = kwargs or {}
        kind = kind_of(func)
        if not kind.is_op:
            if kind.lends_memory:
                self._before_lending()
            return func(*args, **kwargs)
        is_inplace = writes_in_place(kind, args, kwargs)
        inputs, fresh = self._before_call(func, args, kwargs, is_inplace, sys._getframe(1))
        before = torch_private.autograd_sequence_number()
        output = func(*args, **kwargs)
        after = torch_private.autograd_sequence_number()
        try:
            with torch_private.unseen():
                if isinstance(output, torch.Tensor):
                    outputs: Sequence[torch.Tensor] = (output,)
                else:
                    outputs = list(tensors_in(output))
                    if not outputs and is_inplace:  # `y[0] = x` returns nothing
                        outputs = list(tensors_in(args[:1]))
                if outputs or after != before:
                    facts = (inputs, fresh, before, after, is_inplace)
                    self._write(func, kind, args, kwargs, outputs, facts, sys._getframe(1))
        except Exception as error:
            self.tape.failed(error)
        return output

    def _before_lending(self) -> None:
        """From now on numpy or another library may write the memory, and no version will move."""
        try:
            with torch_private.unseen():
                self.tape.shots.trust_nothing()
        except Exception as error:
            self.tape.failed(error)

    def _before_call(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        inplace: bool,
        frame: FrameType,
    ) -> tuple[list[int], Fresh]:
        """Meet the inputs while they are what the call will read.

        Returns their rows, and those among them whose value was taken just now. They are measured
        at once: the call may write into them, as batch norm does into its running statistics.
        """
        tape = self.tape
        inputs: list[int] = []
        fresh: Fresh = []
        try:
            with torch_private.unseen():
                if torch_private.functorch_is_active():
                    tape.shots.may_be_wrapped = True
                if not is_silent(frame.f_code):
                    current = tape.shots.current
                    for key, value in (
                        (*enumerate(args), *kwargs.items()) if kwargs else enumerate(args)
                    ):
                        if isinstance(value, torch.Tensor):
                            row = current(value)
                            if row is None:
                                row = self._meet_input(value, (key,), frame, fresh)
                            inputs.append(row)
                        elif isinstance(value, (list, tuple, dict)):
                            for position, tensor in positions_in(key, value):
                                row = current(tensor)
                                if row is None:
                                    row = self._meet_input(tensor, position, frame, fresh)
                                inputs.append(row)
                if inplace:
                    tape.shots.before_writing(written_by(func, args, kwargs))
                elif fresh and any(not tape.shots.flags(row) & IS_PARAMETER for row, _ in fresh):
                    tape.shots.flush()
        except Exception as error:
            tape.failed(error)
        return inputs, fresh

    def _write(
        self,
        func: Callable[..., Any],
        kind: CallKind,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        outputs: Sequence[torch.Tensor],
        facts: tuple[list[int], Fresh, int, int, bool],
        frame: FrameType,
    ) -> None:
        """Write down one call that returned.

        facts  the rows of its inputs, those met just now, its sequence numbers from and to, and
               whether it wrote in place
        """
        tape, shots = self.tape, self.tape.shots
        inputs, fresh, before, after, is_inplace = facts
        if tape.is_over or (
            outputs and type(outputs[0]) is not torch.Tensor and torch_private.is_traced(outputs[0])
        ):
            return
        state = tape.thread()
        place = tape.places.locate(frame, in_backward=bool(state.passes))
        code, optimizer, is_initialiser = place[0], place[3], place[4]
        if is_initialiser:
            return
        if optimizer is not None:
            self._write_optimizer_call(state.index, state.inside, Place(*place), args)
            return
        number, last_node, node = len(tape.ops), None, None
        if outputs:
            node = torch_private.node_that_made(outputs[0])
            if node is not None:
                last = torch_private.sequence_number_of(node)
                if last >= before:
                    last_node = last, torch_private.node_name(node)
        if kind.is_uninitialised:
            rows = [shots.leave_out(tensor, "memory not written yet") for tensor in outputs]
        elif last_node is not None and len(inputs) == 1 and last_node[1] in SAME_ELEMENTS:
            base = args[0] if args else None
            rows = [shots.shoot_view(tensor, base, inputs[0]) for tensor in outputs]
        else:
            rows = [shots.shoot(tensor) for tensor in outputs]
        if func is ATTENTION and not kwargs.get("training") and not outputs[0].requires_grad:
            tape.not_seen["fused attention"] = (
                "In eval mode without grad, torch may run attention as one fused kernel. Any "
                "recording switches that off: outputs differ by about 5e-7, and it is slower."
            )
        tape.events.append(("op", state.index, state.inside, number))
        tape.ops.append(
            (
                func,
                place,
                inputs,
                rows,
                state.index,
                before,
                after,
                last_node,
                is_inplace,
                _caller(frame, func) is code,
                fresh,
                [storage_of(tensor) for tensor in outputs] if is_inplace else (),
            )
        )
        if last_node is not None and node is not None:
            tape.mark(node, number)
        if is_inplace:
            self._mark_base(outputs, before, number)

    def _mark_base(self, outputs: Sequence[torch.Tensor], before: int, number: int) -> None:
        """A write into a view gives its base a new node, too."""
        for tensor in outputs:
            base = tensor._base if type(tensor) is torch.Tensor else None
            node = None if base is None else torch_private.node_that_made(base)
            if node is not None and torch_private.sequence_number_of(node) >= before:
                self.tape.mark(node, number)

    def _meet_input(
        self, tensor: torch.Tensor, position: Position, frame: FrameType, fresh: Fresh
    ) -> int:
        """The row of an input whose present value is not on the tape.

        At `values="none"` parameters stay unmeasured: they are no outputs of the recorded calls.
        """
        tape, shots = self.tape, self.tape.shots
        if not shots.measures.keeps_values and isinstance(tensor, torch.nn.Parameter):
            row = shots.find(tensor)
            if row is None:
                row = shots.identify(tensor)
                tape.parameters.append(row)
            return row
        if tape.pass_count and shots.find(tensor) is None:
            tape.recognise_grad(tensor)
        row = shots.shoot(tensor)
        fresh.append((row, position))
        origin = shots.origin(row)
        name = global_name(user_frame(frame), tensor) if origin not in tape.tensor_names else None
        if name is not None:
            tape.tensor_names[origin] = name
        return row

    def _write_optimizer_call(
        self, thread: int, inside: int | None, place: Place, args: tuple[Any, ...]
    ) -> None:
        shots, events = self.tape.shots, self.tape.events
        written = {
            shots.origin(shots.identify(tensor))
            for tensor in tensors_in(args[:1])
            if isinstance(tensor, torch.nn.Parameter)
        }
        if events and events[-1][0] == "optimizer" and events[-1][3].step == place.step:
            _, _, _, _, calls, parameters = events[-1]
            events[-1] = ("optimizer", thread, inside, place, calls + 1, parameters | written)
        else:
            events.append(("optimizer", thread, inside, place, 1, written))


def _caller(frame: FrameType, func: Callable[..., Any]) -> CodeType | None:
    """The code that called the function; torch's Python functions hand themselves over to modes."""
    if isinstance(func, BUILT_IN):
        return frame.f_code
    inner = getattr(func, "__code__", None)
    caller: FrameType | None = frame
    while caller is not None and (caller.f_code is HANDING_OVER or caller.f_code is inner):
        caller = caller.f_back
    return None if caller is None else caller.f_code
