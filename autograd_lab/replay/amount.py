"""Turn the snapshots of several gradients into one amount: their common norm, rms and state."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, NamedTuple

from autograd_lab.recording import Snapshot

__all__ = ["Amount", "AmountState", "amount_of"]

AmountState = Literal["value", "zero", "non-finite", "none"]


class Amount(NamedTuple):
    """How much gradient there is; `norm` and `rms` are None where it is none or could not be read.

    finite  None where it is none or could not be read
    state   "value", "zero" (every element is exactly 0), "non-finite", or "none" for no gradient
    """

    norm: float | None
    rms: float | None
    finite: bool | None
    state: AmountState

    @property
    def is_number(self) -> bool:
        """It has a finite rms."""
        return self.rms is not None and math.isfinite(self.rms)


def amount_of(snapshots: Iterable[Snapshot | None]) -> Amount:
    """Measure all elements of `snapshots` together; None entries are no gradients."""
    known = [snapshot for snapshot in snapshots if snapshot is not None]
    if not known:
        return Amount(None, None, None, "none")
    numel = sum(snapshot.numel for snapshot in known)
    norms = [snapshot.norm for snapshot in known if snapshot.norm is not None]
    norm = math.hypot(*norms) if len(norms) == len(known) else None
    rms = None if norm is None else norm / math.sqrt(numel) if numel else 0.0
    if any(snapshot.finite is False for snapshot in known):
        return Amount(norm, rms, False, "non-finite")
    finite = None if any(snapshot.finite is None for snapshot in known) else True
    return Amount(norm, rms, finite, "zero" if norm == 0 and numel else "value")
