"""The ledger tells of each leaf where it comes from and what it keeps alive."""

from __future__ import annotations

from collections import namedtuple

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import autograd_lab as al
from autograd_lab.errors import HiddenTensorError
from autograd_lab.pytrees import saved_ledger
from tests.pytrees.trees import TREES, Box, Plain

Inputs = namedtuple("Inputs", "x ws k")


def of(ledger, path):
    return next(entry for entry in ledger.entries if entry.path == path)


def one(tensor):
    (entry,) = saved_ledger(tensor).entries
    return entry


@pytest.mark.parametrize(
    ("inputs", "origins"),
    [
        (lambda x, w: {"x": x, "ws": [w]}, ["input 'x'", "input 'ws[0]'"]),
        (lambda x, w: Inputs(x, [w], 2), ["input 'x'", "input 'ws[0]'"]),
        (lambda x, w: (x, w), ["input 0", "input 1"]),
        (lambda x, w: [1, x, [w]], ["input 1", "input 2[0]"]),
        (lambda x, w: {"a": Box(3), "x": x, "w": w}, ["input 'x'", "input 'w'"]),
    ],
    ids=["dict", "named tuple", "tuple", "list", "opaque beside"],
)
def test_inputs_are_named_as_they_were_given(inputs, origins):
    x, w = torch.ones(2), torch.ones(3)
    ledger = saved_ledger([x, {"w": w}], inputs=inputs(x, w))
    assert [entry.origin for entry in ledger.entries] == origins
    assert {entry.role for entry in ledger.entries} == {"input"}


def test_each_role_is_told():
    x, w = torch.ones(2, 3), torch.ones(3)
    out = x * w
    tree = {"x": x, "out": out, "mid": x + 1, "k": 2.0, "why": None, "box": Box(1)}
    ledger = saved_ledger(tree, inputs=(x, w), outputs=out)
    said = {entry.path: (entry.role, entry.origin) for entry in ledger.entries}
    assert said == {
        "saved['x']": ("input", "input 0"),
        "saved['out']": ("output", "output"),
        "saved['mid']": ("intermediate", ""),
        "saved['k']": ("constant", ""),
        "saved['why']": ("constant", ""),
        "saved['box']": ("constant", ""),
    }
    assert [entry.text for entry in ledger.entries[3:]] == ["2.0", "None", ""]


@pytest.mark.parametrize(
    "view", [lambda x: x[1:], lambda x: x.t(), lambda x: x.detach(), lambda x: x.view(-1)[:0]]
)
def test_a_view_is_told_by_its_memory(view):
    x = torch.ones(2, 3)
    (entry,) = saved_ledger([view(x)], inputs={"x": x}).entries
    assert (entry.role, entry.origin) == ("input", "view of input 'x'")


def test_identity_comes_before_memory():
    x = torch.ones(2, 3)
    row = x[0]
    (entry,) = saved_ledger([row], inputs={"x": x, "row": row}).entries
    assert entry.origin == "input 'row'"


def test_without_inputs_and_outputs_the_role_is_unknown():
    assert one(torch.ones(1)).role == "unknown"


def test_a_small_view_keeps_all_of_its_memory():
    entry = one(torch.ones(1000)[:2])
    assert (entry.nbytes, entry.storage_nbytes) == (8, 4000)
    entry = one(torch.ones(1).expand(1000))
    assert (entry.nbytes, entry.storage_nbytes) == (4000, 4)


def test_shared_memory_is_counted_once():
    x = torch.ones(4, 4)
    mid = x * 2
    ledger = saved_ledger([x, x[0], mid, mid.t(), torch.ones(1)], inputs=[x])
    assert ledger.storage_nbytes == 64 + 64 + 4
    assert ledger.intermediate_nbytes == 64 + 4
    assert [entry.storage for entry in ledger.entries] == [0, 0, 1, 1, 2]
    assert [other.path for other in ledger.sharing(ledger.entries[0])] == ["saved[1]"]


def test_versions_are_those_of_now():
    x = torch.ones(2)
    x.add_(1).mul_(2)
    assert one(x).version == 2
    with torch.inference_mode():
        assert one(torch.ones(2)).version is None


@pytest.mark.parametrize(
    ("make", "shape", "nbytes", "storage_nbytes"),
    [
        (lambda: torch.ones(3, device="meta"), (3,), 12, 12),
        (lambda: torch.eye(3).to_sparse(), (3, 3), None, None),
        (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), None, 20, 20),
        (lambda: torch.ones(2, dtype=torch.bfloat16), (2,), 4, 4),
        (lambda: torch.ones((), dtype=torch.complex128), (), 16, 16),
        (lambda: torch.ones(0, 3), (0, 3), 0, 0),
        (lambda: torch.nn.Parameter(torch.ones(2)), (2,), 8, 8),
    ],
    ids=["meta", "sparse", "nested", "bf16", "complex", "empty", "parameter"],
)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_sizes_of_unusual_tensors(make, shape, nbytes, storage_nbytes):
    entry = one(make())
    assert (entry.shape, entry.nbytes, entry.storage_nbytes) == (shape, nbytes, storage_nbytes)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_a_quantised_and_a_jagged_tensor_have_an_entry():
    quantised = one(torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8))
    assert (quantised.dtype, quantised.nbytes) == ("qint8", 3)
    jagged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    entry = one(jagged)
    assert (entry.shape, entry.storage_nbytes, entry.kind) == (None, None, "NestedTensor")


def test_fake_tensors_have_sizes():
    with FakeTensorMode():
        x = torch.ones(4)
        ledger = saved_ledger({"x": x, "v": x[1:]}, inputs={"x": x})
    assert [entry.storage_nbytes for entry in ledger.entries] == [16, 16]
    assert ledger.entries[1].origin == "view of input 'x'"


@pytest.mark.parametrize("transform", [torch.func.vmap, torch.func.grad], ids=lambda f: f.__name__)
def test_functorchs_tensors_are_unknown_and_shown(transform):
    shown = []

    def call(x):
        shown.append(repr(saved_ledger([x, {"k": 2}], inputs={"x": x})))
        return (x * 2).sum()

    transform(call)(torch.ones(3))
    assert "unknown" in shown[0]
    assert "input 'x'" in shown[0]


def test_nothing_runs_in_the_users_modes_and_nothing_is_written():
    seen = []

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, requires_grad=True)
    with Watch():
        saved_ledger({"x": x, "p": Plain(x)}, inputs=[x])
    assert seen == []
    assert x._version == 0


def test_a_tensor_that_refuses_to_tell_is_unknown():
    class Sullen(torch.Tensor):
        @property
        def dtype(self):
            raise ValueError

        @property
        def shape(self):
            raise KeyError

    entry = one(torch.ones(2).as_subclass(Sullen))
    assert (entry.kind, entry.dtype, entry.shape) == ("Sullen", None, None)


def test_hidden_tensors_are_refused_as_in_saving():
    with pytest.raises(HiddenTensorError, match="saved is a Box"):
        saved_ledger(Box(torch.ones(1)))


@pytest.mark.parametrize("tree", TREES.values(), ids=list(TREES))
def test_every_kind_of_tree_has_a_ledger_that_survives_json(tree):
    ledger = al.saved_ledger(tree)
    assert al.SavedLedger.from_dict(ledger.to_dict()) == ledger
    assert repr(ledger).startswith("Saved for backward: ")


def test_paths_are_those_of_the_saved_tree():
    ledger = saved_ledger({"cache": [1, Plain(torch.ones(1))]})
    assert [entry.path for entry in ledger.entries] == [
        "saved['cache'][0]",
        "saved['cache'][1].a",
        "saved['cache'][1].b",
    ]
    assert of(ledger, "saved['cache'][1].a").kind == "Tensor"
