"""Every underscored torch name that the package uses, probed one by one at import.

A name without which nothing can be recorded raises UnsupportedTorchError and says which torch it
was looked for in; a name with a fall-back says so beside it. Tested on the oldest and the newest
supported torch.
"""

from __future__ import annotations

import importlib
import importlib.util
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import nn
from torch.autograd.function import BackwardCFunction

from autograd_lab.errors import UnsupportedTorchError

__all__ = [
    "MODULE_CALL",
    "EngineCall",
    "KernelNames",
    "autograd_sequence_number",
    "base_of",
    "batched_or_wrapped",
    "derivatives_file",
    "dispatch_mode_count",
    "engine_function",
    "foreach_norm",
    "forward_class_of",
    "forward_level",
    "function_modes",
    "functorch_is_active",
    "has_own_dispatch",
    "invisible",
    "is_being_traced",
    "is_traced",
    "keeps_graph",
    "kernel_names",
    "leave_function_mode",
    "members_of",
    "name_nodes",
    "node_name",
    "node_that_made",
    "original_of",
    "registered_node",
    "saved_names",
    "saved_value",
    "schema_of",
    "sequence_number_of",
    "set_engine_function",
    "unseen",
    "without_dispatch_modes",
    "without_torch_function",
]

OLDEST_TORCH = (2, 10)
_OLDEST = ".".join(map(str, OLDEST_TORCH))
EngineCall = Callable[..., Any]


def _need(owner: object, path: str) -> Any:  # noqa: ANN401 (whatever torch has there)
    """The attribute at a dotted path below `owner`, or UnsupportedTorchError."""
    value = owner
    for name in path.split("."):
        value = getattr(value, name, None)
        if value is None:
            where = getattr(owner, "__name__", owner)
            message = (
                f"torch {torch.__version__} lacks the private name {where}.{path}.\n"
                "autograd_lab needs it to see the backward pass.\n"
                f"Install torch >= {_OLDEST} (2.13 is tested), or a newer autograd_lab."
            )
            raise UnsupportedTorchError(message, name=path, torch=torch.__version__)
    return value


if tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) < OLDEST_TORCH:
    _old = (
        f"torch {torch.__version__} is too old for autograd_lab.\n"
        f"It needs torch >= {_OLDEST}.\n"
        "Update with: pip install -U torch"
    )
    raise UnsupportedTorchError(_old, torch=torch.__version__)

autograd_sequence_number: Callable[[], int] = _need(torch, "autograd._get_sequence_nr")
"""The number that the next node made by this thread will get."""

without_torch_function: Callable[[], AbstractContextManager[None]] = _need(
    torch, "_C.DisableTorchFunction"
)
"""Switch off function modes and subclasses' __torch_function__ for this thread."""

is_being_traced: Callable[[], bool] = _need(torch, "_C._is_tracing")
"""Whether torch.jit.trace watches this thread: it would write our arithmetic into its graph."""

foreach_norm: Callable[..., list[torch.Tensor]] = _need(torch, "_foreach_norm")
"""2-norms of many tensors in one call."""

dispatch_mode_count: Callable[[], int] = _need(torch, "_C._len_torch_dispatch_stack")
"""How many Python dispatch modes are on in this thread."""

_peek_functorch: Callable[[], object] = _need(torch, "_C._functorch.peek_interpreter_stack")
_is_wrapped: Callable[[torch.Tensor], bool] = _need(
    torch, "_C._functorch.is_functorch_wrapped_tensor"
)
_is_legacy_batched: Callable[[torch.Tensor], bool] = _need(
    torch, "_C._functorch.is_legacy_batchedtensor"
)
_is_functional: Callable[[torch.Tensor], bool] = _need(torch, "_is_functional_tensor")
_disable_current_modes: Callable[[], AbstractContextManager[Any]] = _need(
    importlib.import_module("torch.utils._python_dispatch"), "_disable_current_modes"
)
_default_dispatch: object = _need(torch.Tensor, "__torch_dispatch__")
_function_mode_stack: Callable[[], list[Any]] = _need(
    importlib.import_module("torch.overrides"), "_get_current_function_mode_stack"
)
_push_function_mode: Callable[[Any], None] = _need(
    importlib.import_module("torch.overrides"), "_push_mode"
)
_pop_function_mode: Callable[[], Any] = _need(
    importlib.import_module("torch.overrides"), "_pop_mode"
)

MODULE_CALL: CodeType = _need(nn.Module, "_wrapped_call_impl").__code__
"""The frame that runs a module; its `self` is the module."""

_TRACING_TYPES: tuple[type, ...] = (
    _need(importlib.import_module("torch._subclasses.fake_tensor"), "FakeTensor"),
    _need(importlib.import_module("torch._subclasses.functional_tensor"), "FunctionalTensor"),
)

_REGISTERED_NODES: Mapping[type, Any] = getattr(
    getattr(torch.utils, "_pytree", None), "SUPPORTED_NODES", {}
)

schema_of: Callable[[Any], Any] = operator.attrgetter("_schema")
"""The signature of an op overload, as the dispatcher has it."""
_need(torch.ops.aten.add.Tensor, "_schema")

base_of: Callable[[torch.Tensor], torch.Tensor | None] = operator.attrgetter("_base")
"""The tensor that another one is a view of; None for one that is no view."""
_need(torch.zeros(2).view(2), "_base")

keeps_graph: Callable[[], bool] = _need(torch, "_C._autograd._get_current_graph_task_keep_graph")
"""Whether the engine call that this thread works for was given retain_graph."""

_NAMES_OF_KERNELS = {
    "below_autograd": (torch, "_C._AutoDispatchBelowAutograd"),
    "after_autograd": (torch, "_C._after_autograd_keyset"),
    "is_transformed": (torch, "_C._are_functorch_transforms_active"),
    "single_level_function": (torch, "autograd.function._SingleLevelFunction"),
    "get_single_level": (torch, "_C._functorch.get_single_level_autograd_function_allowed"),
    "set_single_level": (torch, "_C._functorch.set_single_level_autograd_function_allowed"),
    "redispatch": (torch.ops.aten.add.Tensor, "redispatch"),
    "forward_level": (torch.autograd.forward_ad, "_current_level"),
}

_need(torch, "autograd._engine_run_backward")
_need(torch, "autograd.graph._engine_run_backward")
for _name in ("_parameters", "_buffers", "_modules"):
    _need(nn.Module(), _name)
_need(BackwardCFunction, "_sequence_nr")
_need(BackwardCFunction, "_raw_saved_tensors")


def engine_function() -> EngineCall:
    """The Python entry to the engine, which `backward` and `grad` call."""
    return _need(torch, "autograd.graph._engine_run_backward")


def set_engine_function(function: EngineCall) -> None:
    """Put another function at the Python entry to the engine, wherever torch looks it up."""
    torch.autograd._engine_run_backward = function  # pyright: ignore[reportPrivateImportUsage]
    torch.autograd.graph._engine_run_backward = function  # last: `engine_function` reads this one


def function_modes() -> list[Any]:
    """Function modes that are on in this thread, outermost first."""
    return _function_mode_stack()


def leave_function_mode(mode: object) -> None:
    """Take a mode out of this thread's stack, wherever it stands.

    Torch's own exit drops the innermost one.
    """
    stack = _function_mode_stack()
    if mode not in stack:
        return
    first = stack.index(mode)
    for _ in stack[first:]:
        _pop_function_mode()
    for other in stack[first:]:
        if other is not mode:
            _push_function_mode(other)


def functorch_is_active() -> bool:
    """Whether this thread is inside vmap, torch.func.grad or their like."""
    return _peek_functorch() is not None


def batched_or_wrapped(tensor: torch.Tensor) -> bool:
    """Whether a tensor is functorch's or made by `is_grads_batched`: its numbers can't be read."""
    return _is_wrapped(tensor) or _is_legacy_batched(tensor)


def has_own_dispatch(kind: type) -> bool:
    """Whether a Tensor subclass would see our arithmetic in its __torch_dispatch__."""
    own: object = getattr(kind, "__torch_dispatch__", _default_dispatch)
    return _unbound(own) is not _unbound(_default_dispatch)


def _unbound(method: object) -> object:
    """The function of a class method, which is bound anew at each look-up."""
    return getattr(method, "__func__", method)


def is_traced(tensor: object) -> bool:
    """Whether a tensor is a compiler's stand-in (fake or functional), not the user's data."""
    return isinstance(tensor, _TRACING_TYPES) or (
        isinstance(tensor, torch.Tensor) and _is_functional(tensor)
    )


def without_dispatch_modes() -> AbstractContextManager[Any]:
    """Switch off the user's dispatch modes for this thread; free where none is on."""
    return _disable_current_modes() if dispatch_mode_count() else nullcontext()


def node_name(node: Any) -> str:  # noqa: ANN401 (a C++ class without a Python type)
    """The name of an autograd node, also where a user's Function keeps a `ctx.name` of its own."""
    return type(node).name(node)


def sequence_number_of(node: Any) -> int:  # noqa: ANN401
    """The number that a node got from its thread when it was made."""
    return type(node)._sequence_nr(node)


def node_that_made(tensor: torch.Tensor) -> Any:  # noqa: ANN401 (a C++ class without a Python type)
    """A tensor's `grad_fn`.

    None where torch refuses to say: for a view made under no_grad whose base was written.
    """
    try:
        return tensor.grad_fn
    except RuntimeError:
        return None


def forward_class_of(kind: type) -> type | None:
    """The user's torch.autograd.Function behind a node's class.

    None for a built-in node, and where torch no longer keeps it: its source line is then not shown.
    """
    return getattr(kind, "_forward_cls", None)


def original_of(model: nn.Module) -> nn.Module:
    """The module inside what `torch.compile` returned; any other module is its own original."""
    return getattr(model, "_orig_mod", model)


def members_of(
    module: nn.Module,
) -> tuple[
    Mapping[str, nn.Parameter | None],
    Mapping[str, torch.Tensor | None],
    Mapping[str, nn.Module | None],
]:
    """The parameters, buffers and modules that a module itself holds.

    The public iterators may be overridden, and they leave out what was met before.
    """
    return module._parameters, module._buffers, module._modules


def registered_node(kind: type) -> Any:  # noqa: ANN401 (torch's NodeDef: flatten_fn, unflatten_fn, flatten_with_keys_fn)
    """How torch's pytree takes a registered type apart and rebuilds it; None where it is none.

    A torch without that registry has none: builtin containers, named tuples and dataclasses remain.
    """
    return _REGISTERED_NODES.get(kind)


def saved_names(kind: type) -> tuple[tuple[str, str, str], ...]:
    """(slot, attribute with torch's SavedTensor, attribute with its value) of a node's class.

    The attribute holds one SavedTensor or a tuple of them; reading it unpacks nothing.
    """
    names = _SLOTS.get(kind)
    if names is not None:
        return names
    if issubclass(kind, BackwardCFunction):
        return _SLOTS_OF_PYTHON
    found = [name for name in dir(kind) if name.startswith("_raw_saved_")]
    names = _SLOTS[kind] = tuple((name[11:], name, name[4:]) for name in found)
    return names


_SLOTS_OF_PYTHON = (("saved", "_raw_saved_tensors", ""),)
# of built-in nodes only: their classes live for ever
_SLOTS: dict[type, tuple[tuple[str, str, str], ...]] = {}


def saved_value(node: Any, value_name: str, raw: Any) -> torch.Tensor | None:  # noqa: ANN401 (C++ classes without a Python type)
    """The saved tensor behind a slot that `saved_names` named and no hook packed.

    Raises torch's RuntimeError when it was modified in place or freed.
    """
    return getattr(node, value_name) if value_name else raw.unpack()


def derivatives_file() -> Path | None:
    """Torch's derivatives.yaml; None where this build has none: only the plain rules are shown."""
    spec = importlib.util.find_spec("torchgen")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "packaged" / "autograd" / "derivatives.yaml"
        if path.exists():
            return path
    return None


@dataclass(frozen=True, slots=True)
class KernelNames:
    """What an Autograd kernel in Python is made of; `missing` lists what this torch lacks.

    below_autograd         context manager: dispatch goes on below autograd
    after_autograd         the dispatch keys that come after autograd
    is_transformed         whether this thread is inside torch.func
    single_level_function  base of an autograd.Function for one level of torch.func
    """

    missing: tuple[str, ...]
    below_autograd: Any = None
    after_autograd: Any = None
    is_transformed: Any = None
    single_level_function: Any = None
    get_single_level: Any = None
    set_single_level: Any = None


def kernel_names() -> KernelNames:
    """Probe the names that the kernel engine of custom ops needs; nothing else needs them.

    Where one is missing, ops run on the public API of torch.library alone.
    """
    found = {name: _below(owner, path) for name, (owner, path) in _NAMES_OF_KERNELS.items()}
    missing = tuple(path for name, (_, path) in _NAMES_OF_KERNELS.items() if found[name] is None)
    return KernelNames(
        missing, **{name: found[name] for name in found if name in KernelNames.__slots__}
    )


def _below(owner: object, path: str) -> Any:  # noqa: ANN401 (whatever torch has there)
    for name in path.split("."):
        owner = getattr(owner, name, None)
    return owner


def forward_level() -> int:
    """The level of forward-mode differentiation that this thread is in; -1 outside."""
    return torch.autograd.forward_ad._current_level


def name_nodes(function: type, name: str) -> None:
    """Give the nodes of an autograd.Function class a name of their own, where torch allows it."""
    node_class = getattr(function, "_backward_cls", None)
    if node_class is not None:
        node_class.__name__ = name


def unseen() -> AbstractContextManager[Any]:
    """Look at tensors unseen: no function modes, no dispatch modes of the user.

    Cheap enough for every hook.
    """
    return _both_off() if dispatch_mode_count() else without_torch_function()


@contextmanager
def _both_off() -> Iterator[None]:
    with without_torch_function(), _disable_current_modes():
        yield


@contextmanager
def invisible() -> Iterator[None]:
    """Run our own arithmetic unseen: no grad, no function modes, no dispatch modes of the user."""
    # function modes first: they would see no_grad switch
    with without_torch_function(), torch.no_grad(), without_dispatch_modes():
        yield
