"""The digits that are shipped: their bytes, their split, their size."""

import hashlib
from importlib.resources import files

import numpy as np
import torch

from autograd_lab.teach import digits

FILE = files("autograd_lab.teach") / "data" / "digits.npz"


def test_the_file_is_small_and_holds_the_original_bytes():
    arrays = np.load(FILE, allow_pickle=False)
    sums = {name: hashlib.sha256(arrays[name].tobytes()).hexdigest()[:16] for name in arrays.files}
    assert sums == {"images": "8f26b2bd9d135c25", "labels": "8ba4f891220f5e4c"}
    assert {arrays[name].dtype for name in arrays.files} == {np.dtype(np.uint8)}
    assert FILE.stat().st_size < 100_000


def test_shapes_types_and_range():
    d = digits()
    assert d.train_images.shape == (1433, 1, 8, 8)
    assert d.test_images.shape == (364, 1, 8, 8)
    assert d.train_images.dtype is d.test_images.dtype is torch.float32
    assert d.train_labels.dtype is d.test_labels.dtype is torch.int64
    assert d.train_images.aminmax() == (0.0, 1.0)


def test_counts_of_each_class():
    d = digits()
    train, test = (torch.bincount(labels).tolist() for labels in (d.train_labels, d.test_labels))
    assert test == [36, 37, 36, 37, 37, 37, 37, 36, 35, 36]
    assert [a + b for a, b in zip(train, test, strict=True)] == [
        178, 182, 177, 183, 181, 182, 181, 179, 174, 180,
    ]  # fmt: skip


def test_every_image_is_on_one_side_only():
    d = digits()
    stored = np.load(FILE, allow_pickle=False)["images"].reshape(-1, 64)
    both = torch.cat([d.train_images, d.test_images]).mul(16).view(-1, 64).to(torch.uint8)
    assert sorted(map(bytes, both.numpy())) == sorted(map(bytes, stored))


def test_each_call_gives_fresh_tensors_with_the_same_numbers():
    first = digits()
    first.train_images.zero_()
    assert digits().train_images.sum() > 0


def test_a_default_device_or_dtype_of_the_user_changes_nothing():
    with torch.device("meta"):
        d = digits()
    assert d.train_images.device.type == d.test_labels.device.type == "cpu"


def test_the_text_has_counts_only():
    assert repr(digits()) == "Digits: 1433 training and 364 held-out images of 8x8"


def test_authors_and_licence_are_named():
    text = (FILE.parent / "README.md").read_text(encoding="utf-8") + (digits.__doc__ or "")
    for word in ("Alpaydin", "Kaynak", "10.24432/C50P49", "CC BY 4.0"):
        assert text.count(word) >= 2
