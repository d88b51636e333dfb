"""Keep the ops that this process defined, by name; defining one again replaces it."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import torch

from autograd_lab.errors import OpDefinitionError, OpRedefinedWarning, file_label, is_cell

__all__ = ["make_room", "op_named", "register", "require_free"]

_lock = threading.RLock()
_ops: dict[str, Any] = {}


def op_named(qualname: str) -> Any:  # noqa: ANN401 (a CustomOp; its file imports this one)
    """The op that has this name now; raises OpDefinitionError where there is none."""
    op = _ops.get(qualname)
    if op is None:
        message = (
            f"There is no op '{qualname}' in this process.\n"
            "It was looked for among those that custom_op defined.\n"
            "Run the file or cell that defines it first."
        )
        raise OpDefinitionError(message, op=qualname)
    return op


def require_free(qualname: str, file: str, line: int) -> None:
    """Raise OpDefinitionError where another library has this name; warn where other code has."""
    old = _ops.get(qualname)
    if old is None:
        namespace, _, name = qualname.partition("::")
        if hasattr(getattr(torch.ops, namespace), name):
            message = (
                f"Another library has already defined an op '{qualname}'.\n"
                "autograd_lab replaces its own ops alone.\n"
                f"Choose another name, such as 'my_{namespace}::{name}'."
            )
            raise OpDefinitionError(message, op=qualname)
        return
    old_file, old_line = old.place
    if _home(old_file) != _home(file):
        warnings.warn(
            f"The op '{qualname}' was defined at {file_label(old_file)}:{old_line} and is now "
            f"replaced by the one at {file_label(file)}:{line}. Give one of them another name.",
            OpRedefinedWarning,
            stacklevel=4,
        )


def make_room(qualname: str) -> Any:  # noqa: ANN401
    """Take an op out of the dispatcher, so that its name is free; the op, or None."""
    with _lock:
        old = _ops.pop(qualname, None)
        if old is not None:
            old.withdraw()
        return old


def register(op: Any) -> None:  # noqa: ANN401
    """Let an op be found by its name."""
    with _lock:
        _ops[op.qualname] = op


def _home(file: str) -> str:
    """What people would call one place: a file, or the notebook whose cells have passing names."""
    return "notebook" if is_cell(file) else file
