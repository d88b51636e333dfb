"""Recording: turn live PyTorch programs into recordings."""

from __future__ import annotations

from .recorder import Recorder, record, record_step

__all__ = ["Recorder", "record", "record_step"]
