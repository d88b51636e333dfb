"""Turn the Python stack of a call into its place: the user's line, the running module, and why.

Nothing is hooked and no frame is kept: modules are met on the stack, as the `self` of torch's
`Module.__call__`. The one trace is an entry in that frame's own dictionary of locals, which
numbers the module's calls and dies with the frame.
"""

from __future__ import annotations

import itertools
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple

import torch
from torch import nn

from autograd_lab.torch_private import MODULE_CALL, members_of

from .expressions import argument_name, callee

__all__ = [
    "ModuleCall",
    "Place",
    "PlaceFields",
    "Places",
    "global_name",
    "is_silent",
    "place_of_error",
    "user_frame",
]

TORCH = str(Path(torch.__file__).parent) + "/"
STDLIB = str(Path(sysconfig.get_paths()["stdlib"])) + "/"
OURS = tuple(
    str(Path(__file__).parents[1] / name)
    for name in ("capture/", "doors", "torch_private", "ops/", "pytrees/")
)
USER, LIBRARY, OPTIMIZER, INITIALISER, CHECKPOINT = range(5)
_NUMBERS = itertools.count()


ModuleCall = tuple[str, str, int]
"""One call of one module: its path as in `named_modules`, its type, which of its calls, from 1."""

PlaceFields = tuple[CodeType | None, int, ModuleCall | None, str | None, bool, bool, int, bool]


class Place(NamedTuple):
    """Where a call happened: `code` and `instruction` give the user's line and expression."""

    code: CodeType | None
    instruction: int
    module: ModuleCall | None
    optimizer: str | None
    is_initialiser: bool
    is_recomputed: bool
    step: int = 0  # number of the optimizer's step
    is_checkpointed: bool = False  # the user's line calls checkpoint(function, *args)


@dataclass(slots=True)
class Places:
    """Read the stack for one recorder.

    entry  the code object of the frame that opened the recording: the walk ends there
    """

    entry: CodeType | None = None
    has_scripted: bool = False
    _paths: dict[int, str] = field(default_factory=dict)
    _parameters: dict[int, tuple[str, nn.Parameter]] = field(default_factory=dict)
    _buffers: dict[int, tuple[str, torch.Tensor]] = field(default_factory=dict)
    _modules: list[nn.Module] = field(default_factory=list)
    _calls: dict[str, int] = field(default_factory=dict)
    _steps: int = 0
    _mark: str = field(default_factory=lambda: f"__autograd_lab_call_{next(_NUMBERS)}__")

    def add_root(self, module: nn.Module, prefix: str = "") -> None:
        """Learn the paths of a module tree; the tree is held until `forget`."""
        self._modules.append(module)  # ids stay valid while their modules live
        stack = [(prefix, module)]
        paths, parameters, buffers = self._paths, self._parameters, self._buffers
        while stack:
            path, child = stack.pop()
            if id(child) in paths:
                continue
            paths[id(child)] = path
            if isinstance(child, torch.jit.ScriptModule):
                self.has_scripted = True
            dot = f"{path}." if path else ""
            own_parameters, own_buffers, modules = members_of(child)
            for name, parameter in own_parameters.items():
                if parameter is not None and id(parameter) not in parameters:
                    parameters[id(parameter)] = dot + name, parameter
            for name, buffer in own_buffers.items():
                if buffer is not None and id(buffer) not in buffers:
                    buffers[id(buffer)] = dot + name, buffer
            if modules:
                inner = [(dot + name, one) for name, one in modules.items() if one is not None]
                stack.extend(reversed(inner))

    def named_parameters(self) -> Iterable[tuple[str, nn.Parameter]]:
        """The parameters of all trees; one that several modules share has the first one's name."""
        return self._parameters.values()

    def named_buffers(self) -> Iterable[tuple[str, torch.Tensor]]:
        """The buffers of all trees, likewise."""
        return self._buffers.values()

    def forget(self) -> None:
        """Let go of the modules."""
        self._modules.clear()
        self._parameters.clear()
        self._buffers.clear()
        self._paths.clear()

    def locate(self, frame: FrameType | None, *, in_backward: bool) -> PlaceFields:
        """The place of a call made from `frame`, as Place's fields.

        Inside a backward the whole stack is read, to see recomputation by checkpointing.
        """
        code, instruction, module, optimizer = None, 0, None, None
        is_initialiser = is_recomputed = is_checkpointed = False
        step, entry = 0, self.entry
        while frame is not None:
            here = frame.f_code
            if here is MODULE_CALL:
                if module is None:
                    module = self._module_call(frame)
                    if code is not None and not in_backward and module is not None:
                        break
                frame = frame.f_back
                continue
            kind = _KINDS.get(here.co_filename)
            if kind is None:
                kind = _kind(here.co_filename)
            if kind == USER:
                if code is None:
                    code, instruction = here, frame.f_lasti
                if not in_backward and (module is not None or here is entry):
                    break
            elif kind == LIBRARY:
                pass
            elif kind == CHECKPOINT:
                is_recomputed = in_backward
                is_checkpointed = is_checkpointed or code is None
            elif code is None and kind == OPTIMIZER:
                if here.co_name == "step" and isinstance(
                    owner := frame.f_locals.get("self"), torch.optim.Optimizer
                ):
                    optimizer, step = type(owner).__name__, self._step_number(frame)
            elif code is None and kind == INITIALISER:
                is_initialiser = True
            frame = frame.f_back
        return (
            code,
            instruction,
            module,
            optimizer,
            is_initialiser,
            is_recomputed,
            step,
            is_checkpointed and not is_recomputed,
        )

    def _module_call(self, frame: FrameType) -> ModuleCall | None:
        local: Any = frame.f_locals
        call = local.get(self._mark)
        if call is not None:
            return call
        module = local.get("self")
        path = self._paths.get(id(module))
        if path is None:
            if not isinstance(module, nn.Module):
                return None
            self._meet_root(module, frame)
            path = self._paths.get(id(module), type(module).__name__)
        number = self._calls[path] = self._calls.get(path, 0) + 1
        local[self._mark] = call = path, type(module).__name__, number
        return call

    def _step_number(self, frame: FrameType) -> int:
        local: Any = frame.f_locals
        step = local.get(self._mark)
        if step is None:
            self._steps += 1
            local[self._mark] = step = self._steps
        return step

    def _meet_root(self, module: nn.Module, frame: FrameType) -> None:
        """Meet a module outside the known trees: its outermost caller is a new root.

        The root is named as the user's variable that holds it, or by its class.
        """
        caller, above = frame, frame.f_back
        while above is not None and above.f_code is not self.entry:
            if above.f_code is MODULE_CALL and isinstance(above.f_locals.get("self"), nn.Module):
                module, caller = above.f_locals["self"], above
            above = above.f_back
        if id(module) in self._paths:
            return
        user = user_frame(caller.f_back)
        name = (
            global_name(user, module)
            or (user and _called(user, caller.f_back))
            or type(module).__name__
        )
        taken = set(self._paths.values())
        unique, number = name, 2
        while unique in taken:
            unique, number = f"{name}#{number}", number + 1
        self.add_root(module, unique)


def _called(user: FrameType, inner: FrameType | None) -> str | None:
    """What the user's line calls; of `checkpoint(net, x)` it is net."""
    while inner is not None and inner is not user:
        if _kind(inner.f_code.co_filename) == CHECKPOINT:
            return argument_name(user.f_code, user.f_lasti, (0,))
        inner = inner.f_back
    return callee(user.f_code, user.f_lasti)


def is_silent(code: CodeType) -> bool:
    """Whether code is torch.optim's or nn.init's own: their calls are not written one by one."""
    return _kind(code.co_filename) in (OPTIMIZER, INITIALISER)


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame that is neither torch's, the standard library's nor ours."""
    while frame is not None and _kind(frame.f_code.co_filename) != USER:
        frame = frame.f_back
    return frame


def place_of_error(traceback: TracebackType | None) -> Place | None:
    """The innermost of the user's lines that an exception came through."""
    place = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if _kind(code.co_filename) == USER:
            place = Place(code, traceback.tb_lasti, None, None, False, False)
        traceback = traceback.tb_next
    return place


def global_name(frame: FrameType | None, value: object) -> str | None:
    """A global variable of the frame's module that is bound to `value`.

    Locals of a function are never read: on Python < 3.13 that would keep everything they hold
    alive until it returns.
    """
    for name, bound in list(frame.f_globals.items()) if frame is not None else ():
        if bound is value and not name.startswith("_"):
            return name
    return None


def _kind(file: str) -> int:
    kind = _KINDS.get(file)
    if kind is None:
        kind = _KINDS[file] = _kind_of(file)
    return kind


def _kind_of(file: str) -> int:
    if file.startswith(TORCH):
        inner = file[len(TORCH) :]
        if inner.startswith("optim/"):
            return OPTIMIZER
        return {"nn/init.py": INITIALISER, "utils/checkpoint.py": CHECKPOINT}.get(inner, LIBRARY)
    if file.startswith(OURS) or file.startswith("<frozen"):
        return LIBRARY
    return LIBRARY if file.startswith(STDLIB) and "site-packages" not in file else USER


_KINDS: dict[str, int] = {}
