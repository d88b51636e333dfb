"""Show records: text, tables, pictures, pages. Names load lazily: text needs no matplotlib."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "FlowFigure": "figures",
    "Stepper": "stepper",
    "describe": "describing",
    "flow_figure": "figures",
    "format_number": "numbers",
    "full_text": "recording_text",
    "graph_svg": "svg",
    "mimebundle": "bundles",
    "pack_of": "pack",
    "to_html": "page",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:  # noqa: ANN401 (a module's attribute has no other type)
    """Load a public name from its file the first time it is asked for."""
    if name not in _HOMES:
        known = ", ".join(__all__)
        message = f"module 'autograd_lab.show' has no attribute {name!r}. Public names: {known}."
        raise AttributeError(message)
    value = getattr(importlib.import_module(f"autograd_lab.show.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names, for completion."""
    return list(__all__)
