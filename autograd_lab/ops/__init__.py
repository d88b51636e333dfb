"""Custom ops: a forward, a named and checked backward, in torch's own dispatcher."""

from __future__ import annotations

from .context import BackwardContext
from .defining import custom_op
from .op import CustomOp

__all__ = ["BackwardContext", "CustomOp", "custom_op"]
