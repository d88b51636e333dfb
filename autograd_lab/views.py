"""The one upward door: turn a record into its shown form by loading `autograd_lab.show` by name.

Records live below the rooms that draw them. A record's `__repr__`, `_repr_mimebundle_` or
`report()` is one line that calls this file, so no other file passes the wall upward.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["describe", "mimebundle"]


def describe(record: object) -> str:
    """Return the deterministic text of a public record."""
    return importlib.import_module("autograd_lab.show").describe(record)


def mimebundle(record: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (data, metadata) by MIME type, as Jupyter's `_repr_mimebundle_` wants them."""
    return importlib.import_module("autograd_lab.show").mimebundle(record)
