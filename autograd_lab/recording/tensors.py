"""The nouns for tensors: who one is (`TensorRef`), and what it held at a moment (`Snapshot`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NewType

import numpy as np

from .record import Record

__all__ = ["Detail", "Histogram", "Snapshot", "TensorId", "TensorRef", "Values"]

TensorId = NewType("TensorId", int)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TensorRef(Record):
    """Identity of one tensor of the user's program.

    id             given by the recorder, unique within a recording
    shape          sizes; () for a scalar
    dtype          torch's name without the prefix: "float32", "bfloat16", "complex64"
    device         torch's text: "cpu", "cuda:0"
    is_leaf        torch's is_leaf
    requires_grad  torch's requires_grad
    name           variable name or parameter path ("block.0.weight"); None where neither is known
    is_parameter   it is an `nn.Parameter`
    """

    id: TensorId
    shape: tuple[int, ...]
    dtype: str
    device: str = "cpu"
    is_leaf: bool = False
    requires_grad: bool = False
    name: str | None = None
    is_parameter: bool = False

    @property
    def numel(self) -> int:
        """Number of elements; 1 for a scalar."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histogram(Record):
    """Counts of the finite, non-zero magnitudes by their binary exponent.

    Bucket k holds the elements with 2**(first_exponent + k - 1) <= |x| < 2**(first_exponent + k):
    those with torch.frexp's exponent first_exponent + k.
    """

    first_exponent: int
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Values(Record):
    """Numbers as numpy bytes: all of a small tensor, or a stated picture of a large one.

    shape         shape of the numbers kept
    dtype         numpy's name: "float32", "complex64", "int64", "bool"; bf16 and fp16 are widened
                  to float32
    data          little-endian, C order
    sampled_from  None when all elements are here; else the tensor's shape: these are every k-th of
                  its elements, at most 1024, and at most 32 along each of the last two dimensions
    """

    shape: tuple[int, ...]
    dtype: str
    data: bytes
    sampled_from: tuple[int, ...] | None = None

    @property
    def array(self) -> np.ndarray:
        """The numbers as a read-only numpy array."""
        little_endian = np.dtype(self.dtype).newbyteorder("<")
        return np.frombuffer(self.data, dtype=little_endian).reshape(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes kept."""
        return len(self.data)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Detail(Record):
    """The costlier statistics of a snapshot.

    Min, max and mean are over the finite elements, None where there are none; for complex tensors
    they are of the magnitude. Where `values` is a down-sampled picture of a large tensor, nothing
    else is known, and the other fields are None.
    """

    min: float | None = None
    max: float | None = None
    mean: float | None = None
    zeros: int | None = None
    nans: int | None = None
    infs: int | None = None
    negatives: int | None = None
    histogram: Histogram | None = None
    values: Values | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot(Record):
    """What a tensor held at one moment.

    tensor   whose value
    version  torch's version counter then; None for inference tensors
    numel    number of elements
    norm     2-norm over all elements, computed so that it neither over- nor underflows; NaN or inf
             when elements are; None when the value could not be read (see `note`)
    finite   every element is finite; None when the value could not be read
    note     why there is no number: "modified after capture", "functorch-wrapped", "meta",
             "over the byte budget"
    detail   more statistics and values, or None
    """

    tensor: TensorId
    version: int | None = None
    numel: int = 0
    norm: float | None = None
    finite: bool | None = None
    note: str | None = None
    detail: Detail | None = None

    @property
    def rms(self) -> float | None:
        """Root mean square, norm / sqrt(numel); 0 for an empty tensor, None where norm is None."""
        if self.norm is None:
            return None
        return self.norm / math.sqrt(self.numel) if self.numel else 0.0

    @property
    def values(self) -> Values | None:
        """The numbers kept, if any."""
        return self.detail.values if self.detail else None
