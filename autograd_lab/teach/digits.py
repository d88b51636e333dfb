"""Turn the shipped file of handwritten digits into training and held-out tensors.

The data are in the package so that no lesson, test or demo needs a network, scikit-learn or scipy.
"""

from __future__ import annotations

import importlib.resources
from dataclasses import dataclass

import numpy as np
import torch

__all__ = ["Digits", "digits"]

_HELD_OUT_EVERY = 5
_BRIGHTEST = 16  # a pixel counts the inked dots of a 4x4 block


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Digits:
    """Handwritten digits: images (n, 1, 8, 8) float32 in [0, 1], labels (n,) int64 in 0..9."""

    train_images: torch.Tensor
    train_labels: torch.Tensor
    test_images: torch.Tensor
    test_labels: torch.Tensor

    def __repr__(self) -> str:
        """Counts only: the tensors are large."""
        train, test = len(self.train_labels), len(self.test_labels)
        return f"Digits: {train} training and {test} held-out images of 8x8"


def digits() -> Digits:
    """Return the 1797 UCI optical digits, split into 1433 for training and 364 held out.

    Within each class, in the file's order, images number 0, 5, 10, ... are held out, so every class
    has 35 to 37 held-out images and the split never changes. The same 13 writers are on both sides.

    Every call returns fresh tensors on the CPU. Data: E. Alpaydin and C. Kaynak, Optical
    Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998, doi 10.24432/C50P49,
    licence CC BY 4.0 (see `teach/data/README.md`).
    """
    source = importlib.resources.files("autograd_lab.teach") / "data" / "digits.npz"
    with source.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        pixels, classes = arrays["images"], arrays["labels"]
    images = torch.tensor(pixels, dtype=torch.float32, device="cpu").unsqueeze(1) / _BRIGHTEST
    labels = torch.tensor(classes, dtype=torch.int64, device="cpu")
    held_out = torch.zeros(len(labels), dtype=torch.bool, device="cpu")
    for digit in range(10):
        held_out[(labels == digit).nonzero().flatten()[::_HELD_OUT_EVERY]] = True
    return Digits(
        train_images=images[~held_out],
        train_labels=labels[~held_out],
        test_images=images[held_out],
        test_labels=labels[held_out],
    )
