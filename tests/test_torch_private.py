"""Every private torch name works as its docstring says, and a missing one is named."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from autograd_lab import torch_private

PROBED = [
    "torch.autograd._get_sequence_nr",
    "torch.autograd._engine_run_backward",
    "torch.autograd.graph._engine_run_backward",
    "torch._C.DisableTorchFunction",
    "torch._C._is_tracing",
    "torch._foreach_norm",
    "torch._C._len_torch_dispatch_stack",
    "torch._C._functorch.peek_interpreter_stack",
    "torch._C._functorch.is_functorch_wrapped_tensor",
    "torch._C._functorch.is_legacy_batchedtensor",
    "torch._is_functional_tensor",
    "torch.utils._python_dispatch._disable_current_modes",
    "torch.overrides._get_current_function_mode_stack",
    "torch.overrides._push_mode",
    "torch.overrides._pop_mode",
    "torch.nn.Module._wrapped_call_impl",
    "torch._subclasses.fake_tensor.FakeTensor",
    "torch._subclasses.functional_tensor.FunctionalTensor",
]


class Seen(TorchFunctionMode):
    """A user's function mode that counts calls."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_function__(self, function, kinds, args=(), kwargs=None):
        self.calls.append(function)
        return function(*args, **(kwargs or {}))


class Dispatched(TorchDispatchMode):
    """A user's dispatch mode that counts ops."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        self.calls.append(function)
        return function(*args, **(kwargs or {}))


class Sub(torch.Tensor):
    """A subclass that dispatches as torch does."""


class Wrapping(torch.Tensor):
    """A subclass that would see our arithmetic."""

    @classmethod
    def __torch_dispatch__(cls, function, kinds, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class Named(torch.autograd.Function):
    """A Function that keeps a name of its own."""

    @staticmethod
    def forward(ctx, x):
        ctx.name = "mine"
        ctx.save_for_backward(x, x * 2)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad


@pytest.fixture
def x():
    return torch.arange(1.0, 4.0, requires_grad=True)


def test_sequence_number_is_that_of_the_next_node_of_this_thread(x):
    number = torch_private.autograd_sequence_number()
    y = x * 2
    assert torch_private.sequence_number_of(y.grad_fn) == number
    assert torch_private.autograd_sequence_number() == number + 1


def test_another_thread_counts_its_own_nodes(x):
    numbers = []
    [x * 2 for _ in range(3)]
    thread = threading.Thread(
        target=lambda: numbers.append(torch_private.autograd_sequence_number())
    )
    thread.start()
    thread.join()
    assert numbers[0] < torch_private.autograd_sequence_number()


@pytest.mark.parametrize("door", ["without_torch_function", "unseen", "invisible"])
def test_function_modes_see_nothing_behind_the_door(door, x):
    with Seen() as mode:
        with getattr(torch_private, door)():
            x + 1
        assert mode.calls == []
        x + 1
    assert mode.calls == [torch.Tensor.add]


@pytest.mark.parametrize("door", ["without_dispatch_modes", "unseen", "invisible"])
def test_dispatch_modes_see_nothing_behind_the_door(door, x):
    with Dispatched() as mode:
        with getattr(torch_private, door)():
            assert torch_private.dispatch_mode_count() == 0
            x + 1
        assert mode.calls == []
        x + 1
        assert torch_private.dispatch_mode_count() == 1
    assert mode.calls == [torch.ops.aten.add.Tensor]


def test_arithmetic_behind_invisible_makes_no_graph(x):
    with torch_private.invisible():
        assert (x * 2).grad_fn is None
    assert (x * 2).grad_fn is not None


def test_foreach_norm_gives_2_norms(x):
    tensors = [x.detach(), torch.zeros(2, 2), torch.full((5,), -2.0)]
    expected = [torch.linalg.vector_norm(tensor) for tensor in tensors]
    assert list(torch_private.foreach_norm(tensors)) == expected


def test_engine_function_is_what_backward_calls(x, monkeypatch):
    really, calls = torch_private.engine_function(), []
    torch_private.set_engine_function(lambda *a, **k: calls.append(1) or really(*a, **k))
    try:
        x.sum().backward()
        torch.autograd.grad(x.sum(), x)
    finally:
        torch_private.set_engine_function(really)
    assert calls == [1, 1]
    assert torch.autograd._engine_run_backward is really


def test_function_modes_are_listed_outermost_first():
    with Seen() as outer, Seen() as inner:
        assert torch_private.function_modes() == [outer, inner]


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_function_mode_leaves_from_wherever_it_stands(position):
    modes = [Seen(), Seen(), Seen()]
    with modes[0], modes[1], modes[2]:
        torch_private.leave_function_mode(modes[position])
        left = torch_private.function_modes()
        torch.overrides._push_mode(modes[position])
    assert left == [mode for mode in modes if mode is not modes[position]]


def test_leaving_a_mode_that_is_not_on_changes_nothing():
    with Seen() as mode:
        torch_private.leave_function_mode(Seen())
        assert torch_private.function_modes() == [mode]


def test_functorch_is_active_inside_vmap_and_grad_only():
    seen = []

    def square(row):
        seen.append((torch_private.functorch_is_active(), torch_private.batched_or_wrapped(row)))
        return row.square().sum()

    torch.func.vmap(square)(torch.ones(2, 3))
    torch.func.grad(square)(torch.ones(3))
    assert seen == [(True, True)] * 2
    assert not torch_private.functorch_is_active()
    assert not torch_private.batched_or_wrapped(torch.ones(3))


def test_gradients_of_is_grads_batched_are_batched(x):
    seen, y = [], x * 2
    y.register_hook(lambda grad: seen.append(torch_private.batched_or_wrapped(grad)))
    torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)
    assert seen == [True]


@pytest.mark.parametrize(
    ("kind", "own"), [(torch.Tensor, False), (nn.Parameter, False), (Sub, False), (Wrapping, True)]
)
def test_own_dispatch_is_that_of_a_subclass_that_defines_it(kind, own):
    assert torch_private.has_own_dispatch(kind) is own


def test_stand_ins_of_a_compiler_are_traced_and_data_is_not(x):
    with FakeTensorMode() as mode:
        assert torch_private.is_traced(mode.from_tensor(torch.ones(2)))
    functional = torch._to_functional_tensor(torch.ones(2))
    assert torch_private.is_traced(functional)
    assert not torch_private.is_traced(x)
    assert not torch_private.is_traced("x")


@pytest.mark.filterwarnings("ignore")  # torch.jit.trace is deprecated and says so
def test_being_traced_is_what_jit_trace_does(x):
    seen = []

    def double(y):
        seen.append(torch_private.is_being_traced())
        return y * 2

    torch.jit.trace(double, x.detach(), check_trace=False)
    assert seen == [True]
    assert not torch_private.is_being_traced()


def test_module_call_is_the_frame_that_runs_a_module():
    frames = []

    class Looking(nn.Module):
        def forward(self):
            frames.append(sys._getframe(1))
            frames.append(frames[0].f_back)

    module = Looking()
    module()
    calls = [frame for frame in frames if frame.f_code is torch_private.MODULE_CALL]
    assert [frame.f_locals["self"] for frame in calls] == [module]


def test_node_name_is_torchs_also_where_a_function_has_a_name(x):
    assert torch_private.node_name((x * 2).grad_fn) == "MulBackward0"
    assert torch_private.node_name(Named.apply(x).grad_fn) == "NamedBackward"


def test_the_node_that_made_a_tensor_is_its_grad_fn(x):
    y = x * 2
    assert torch_private.node_that_made(y) is y.grad_fn
    assert torch_private.node_that_made(x) is None


def test_a_view_that_torch_refuses_to_explain_has_no_node():
    base = torch.ones(3, requires_grad=True).clone()
    with torch.no_grad():
        view = base[:2]
    with torch.no_grad():
        base.mul_(2)
    try:
        expected = view.grad_fn
    except RuntimeError:
        expected = None
    assert torch_private.node_that_made(view) is expected


def test_a_python_node_knows_its_function_and_a_built_in_one_has_none(x):
    assert torch_private.forward_class_of(type(Named.apply(x).grad_fn)) is Named
    assert torch_private.forward_class_of(type((x * 2).grad_fn)) is None


@pytest.mark.filterwarnings("ignore")  # importing the compiler uses what torch itself deprecates
def test_the_original_of_a_compiled_model_is_the_model_inside():
    model = nn.Linear(2, 2)
    assert torch_private.original_of(torch.compile(model)) is model
    assert torch_private.original_of(model) is model


def test_members_of_a_module_are_its_own_also_those_it_shares():
    model = nn.BatchNorm1d(3)
    model.inner = nn.Linear(3, 3, bias=False)
    model.inner.weight = model.weight
    parameters, buffers, modules = torch_private.members_of(model)
    assert list(parameters) == ["weight", "bias"]
    assert list(buffers) == ["running_mean", "running_var", "num_batches_tracked"]
    assert dict(modules) == {"inner": model.inner}
    inner, _, _ = torch_private.members_of(model.inner)
    assert dict(inner) == {"weight": model.weight, "bias": None}


def raw_slots(node):
    for slot, raw_name, value_name in torch_private.saved_names(type(node)):
        raw = getattr(node, raw_name)
        if isinstance(raw, (list, tuple)):
            yield from ((f"{slot}[{k}]", "", one) for k, one in enumerate(raw))
        else:
            yield slot, value_name, raw


def slots(node):
    return {
        slot: torch_private.saved_value(node, value_name, raw)
        for slot, value_name, raw in raw_slots(node)
    }


def test_saved_tensors_of_a_built_in_node_are_named(x):
    w = torch.full((3,), 2.0, requires_grad=True)
    saved = slots((x * w).grad_fn)
    assert list(saved) == ["other", "self"]
    assert torch.equal(saved["self"], x)
    assert torch.equal(saved["other"], w)


def test_lists_of_saved_tensors_are_numbered(x):
    rows = torch.tensor([0, 2])
    saved = slots(x[rows].grad_fn)
    assert list(saved) == ["indices[0]"]
    assert torch.equal(saved["indices[0]"], rows)


def test_saved_tensors_of_a_python_function_are_numbered(x):
    saved = slots(Named.apply(x).grad_fn)
    assert list(saved) == ["saved[0]", "saved[1]"]
    assert torch.equal(saved["saved[1]"], x.detach() * 2)


def test_looking_at_saved_tensors_calls_no_hook_of_the_user(x):
    unpacked = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: unpacked.append(t) or t):
        y = x.exp()
    assert [slot for slot, _, _ in raw_slots(y.grad_fn)] == ["result"]
    assert unpacked == []


def test_a_saved_tensor_that_was_written_raises_torchs_error(x):
    y = x.exp()
    (_, value_name, raw), *_ = raw_slots(y.grad_fn)
    with torch.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch_private.saved_value(y.grad_fn, value_name, raw)


def test_a_freed_saved_tensor_raises_torchs_error(x):
    y = x.exp()
    found = list(raw_slots(y.grad_fn))
    y.sum().backward()
    with pytest.raises(RuntimeError, match="freed"):
        torch_private.saved_value(y.grad_fn, *found[0][1:])


def test_the_derivatives_file_has_the_formula_of_mul():
    text = torch_private.derivatives_file().read_text(encoding="utf-8")
    assert "- name: mul.Tensor(Tensor self, Tensor other) -> Tensor" in text


def test_no_torchgen_means_no_derivatives_file(monkeypatch):
    monkeypatch.setattr(torch_private.importlib.util, "find_spec", lambda name: None)
    assert torch_private.derivatives_file() is None


SPOIL_AND_IMPORT = """
import importlib, sys
import torch, torch.overrides, torch._subclasses.fake_tensor, torch._subclasses.functional_tensor
import torch.utils._python_dispatch
from autograd_lab import torch_private

def walk(path):
    value = sys.modules["torch"]
    for name in path:
        value = getattr(value, name)
    return value

missed = []
for path in {paths!r}:
    *owner, name = path.split(".")[1:]
    owner = walk(owner)
    held = getattr(owner, name)
    try:
        setattr(owner, name, None)
        importlib.reload(torch_private)
        missed.append(path + ": accepted")
    except Exception as error:
        text = str(error)
        facts = getattr(error, "facts", {{}})
        fine = type(error).__name__ == "UnsupportedTorchError" and error.code == "AL300"
        fine = fine and name in text and torch.__version__ in text and ">= 2.10" in text
        fine = fine and facts["name"].endswith(name) and facts["torch"] == torch.__version__
        if not fine:
            missed.append(f"{{path}}: {{error!r}}")
    finally:
        setattr(owner, name, held)
importlib.reload(torch_private)
print(missed)
"""

VERSIONS = """
import importlib, json
import torch
from autograd_lab import torch_private

said = {{}}
for version in {versions!r}:
    torch.__version__ = version
    try:
        importlib.reload(torch_private)
        said[version] = "imported"
    except Exception as error:
        said[version] = f"{{type(error).__name__}} {{error}}"
print(json.dumps(said))
"""
OLD = ["2.9.1", "1.13.0+cu117", "2.9.0a0+git1234"]
SUPPORTED = ["2.10.0", "2.13.0+cpu", "3.0.0", "2.10.0a0+gitabc"]


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def said():
    """What the file says to each version of torch."""
    return json.loads(run(VERSIONS.format(versions=OLD + SUPPORTED)))


def test_each_missing_private_name_is_named_with_the_torch_that_lacks_it():
    assert run(SPOIL_AND_IMPORT.format(paths=PROBED)) == "[]\n"


@pytest.mark.parametrize("version", OLD)
def test_an_old_torch_is_refused_with_the_way_to_update(version, said):
    assert said[version].startswith(f"UnsupportedTorchError torch {version} is too old")
    assert "pip install -U torch" in said[version]


@pytest.mark.parametrize("version", SUPPORTED)
def test_a_supported_torch_is_taken_whatever_its_suffix(version, said):
    assert said[version] == "imported"


def test_a_type_registered_with_torchs_pytree_is_found_and_another_is_not():
    node = torch_private.registered_node(OrderedDict)
    values, context = node.flatten_fn(OrderedDict(a=1, b=2))
    assert node.unflatten_fn(values, context) == OrderedDict(a=1, b=2)
    assert torch_private.registered_node(type("Box", (), {})) is None


def test_the_schema_of_an_op_names_its_arguments():
    schema = torch_private.schema_of(torch.ops.aten.mul.Tensor)
    assert [one.name for one in schema.arguments] == ["self", "other"]


def test_base_of_a_view():
    base = torch.ones(4)
    assert torch_private.base_of(base.view(2, 2)) is base
    assert torch_private.base_of(base) is None


@pytest.mark.parametrize("kept", [True, False])
def test_keeps_graph_tells_of_retain_graph(kept):
    seen = []
    x = torch.ones(1, requires_grad=True)
    x.register_hook(lambda grad: seen.append(torch_private.keeps_graph()))
    (x * 2).backward(retain_graph=kept)
    assert seen == [kept]


def test_forward_level_is_known_inside_a_dual_level():
    assert torch_private.forward_level() == -1
    with torch.autograd.forward_ad.dual_level():
        assert torch_private.forward_level() == 0


def test_kernel_names_are_all_there_or_listed(monkeypatch):
    names = torch_private.kernel_names()
    assert isinstance(names, torch_private.KernelNames)
    assert names.missing == ()
    assert names.is_transformed() is False
    monkeypatch.delattr(torch._C, "_after_autograd_keyset")
    assert torch_private.kernel_names().missing == ("_C._after_autograd_keyset",)


def test_name_nodes_names_the_nodes_of_a_function():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    torch_private.name_nodes(Double, "TwiceBackward")
    assert Double.apply(torch.ones(1, requires_grad=True)).grad_fn.name() == "TwiceBackward"


def test_no_public_name_of_the_file_goes_untested():
    source = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in torch_private.__all__ if name not in source] == [UNTESTED]


UNTESTED = "Engine" + "Call"  # a type
