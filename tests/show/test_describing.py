import dataclasses
import inspect

import pytest

from autograd_lab import recording as nouns
from autograd_lab.recording import Record, Snapshot, SourceLine, TensorRef
from autograd_lab.show import describe
from tests.show import recordings

KINDS = [kind for _, kind in inspect.getmembers(nouns, inspect.isclass) if issubclass(kind, Record)]


def any_of(kind):
    """An instance of a record with its required fields filled in."""
    samples = {"str": "x", "int": 1, "float": 1.0, "bool": True, "bytes": b"abc"}
    required = [
        field
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    return kind(
        **{
            field.name: samples.get(str(field.type), 0 if "Id" in str(field.type) else ())
            for field in required
        }
    )


@pytest.mark.parametrize(
    "kind", [k for k in KINDS if dataclasses.is_dataclass(k)], ids=lambda k: k.__name__
)
def test_every_public_record_has_a_text_without_addresses(kind):
    text = describe(any_of(kind))
    assert text
    assert " at 0x" not in text


def test_a_tensor_is_one_line():
    tensor = recordings.scalar().tensors[0]
    assert describe(tensor) == "x scalar, float32, leaf, requires grad"


def test_a_tensor_names_its_device_when_it_is_not_the_cpu():
    tensor = TensorRef(id=nouns.TensorId(0), shape=(2, 3), dtype="bfloat16", device="cuda:0")
    assert describe(tensor) == "tensor (2, 3), bfloat16, cuda:0"


def test_a_source_line_is_its_place_and_text():
    assert describe(SourceLine(file="In[3]", line=7, text="  y = x")) == "In[3] line 7  y = x"


def test_bytes_are_counted_not_printed():
    values = recordings.held(0, 1.0, 2.0).values
    assert "data: 8 bytes" in describe(values)


def test_what_is_no_record_is_refused():
    with pytest.raises(TypeError, match="not a record"):
        describe(3)


def test_a_snapshot_lists_its_fields():
    assert "norm: 5" in describe(Snapshot(tensor=nouns.TensorId(0), norm=5.0, numel=2))
