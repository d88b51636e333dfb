"""autograd_lab: see PyTorch's backward happen.

The public names load lazily, so importing the package loads neither torch nor a plot.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Cursor": "replay",
    "CustomOp": "ops",
    "Recorder": "capture",
    "Recording": "recording",
    "SavedLedger": "recording",
    "Stepper": "show",
    "custom_op": "ops",
    "device": "doors",
    "gradient_flow": "replay",
    "load_recording": "recording",
    "record": "capture",
    "record_step": "capture",
    "save_pytree_for_backward": "pytrees",
    "saved_ledger": "pytrees",
    "step_through": "doors",
    "to_html": "show",
    "unpack_saved": "pytrees",
}
__all__ = sorted(["__version__", *_HOMES])  # pyright: ignore[reportUnsupportedDunderAll] (one list of names, not two)


def __getattr__(name: str) -> Any:  # noqa: ANN401 (a module's attribute has no other type)
    """Load a public name from its room the first time it is asked for."""
    if name not in _HOMES:
        message = (
            f"module 'autograd_lab' has no attribute {name!r}. Public names: {', '.join(__all__)}."
        )
        raise AttributeError(message)
    value = getattr(importlib.import_module(f"autograd_lab.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names, for completion."""
    return list(__all__)
