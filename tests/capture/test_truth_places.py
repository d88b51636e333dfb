"""What a recording says of names, lines, modules and calls is where the program wrote them."""

from __future__ import annotations

import ast
import json
import threading
from contextlib import nullcontext

import nbformat
import pytest
import torch
from nbclient import NotebookClient
from torch import nn
from torch.nn import functional as F  # noqa: N812 (torch's own custom)
from torch.utils.checkpoint import checkpoint

import autograd_lab as al
from autograd_lab.recording import BackwardStarted, Op, OpCalled, Recording
from tests.capture.programs import batch, small_net
from tests.capture.running import reasons

GLOBAL = torch.ones(3)


def op_named(recording: Recording, name: str) -> Op:
    (op,) = [op for op in recording.ops if op.name == name]
    return op


def names(recording: Recording, numbers) -> list[str | None]:
    return [recording.tensors[number].name for number in numbers]


def test_variables_are_named_as_the_lines_name_them():
    x, w, b = (torch.ones(3, requires_grad=True) for _ in range(3))
    with al.record() as rec:
        h = x * w
        out = (h + b).tanh()
        loss = out.sum()
        loss.backward()

    recording = rec.recording
    assert names(recording, op_named(recording, "mul").inputs) == ["x", "w"]
    assert names(recording, op_named(recording, "mul").outputs) == ["h"]
    assert names(recording, op_named(recording, "add").inputs) == ["h", "b"]
    assert names(recording, op_named(recording, "add").outputs) == [None]
    assert names(recording, op_named(recording, "tanh").outputs) == ["out"]
    leaves = [
        recording.tensors[node.leaf].name for node in recording.nodes if node.leaf is not None
    ]
    assert sorted(leaves) == ["b", "w", "x"]


def test_names_of_operators_arguments_and_items_are_found():
    a, b = torch.ones(2, 2), torch.ones(2, 2)
    parts = {"q": torch.ones(2, 2)}
    with al.record() as rec:
        joined = torch.cat([a, b])
        shifted = 2 - a
        masked = torch.where(condition=b > 0, input=a, other=parts["q"])
        a2 = a @ b
        first, second = a2.split(1)

    recording = rec.recording
    assert names(recording, op_named(recording, "cat").inputs) == ["a", "b"]
    assert names(recording, op_named(recording, "cat").outputs) == ["joined"]
    rsub = next(op for op in recording.ops if "rsub" in op.name)
    assert names(recording, rsub.inputs) == ["a"]
    where = op_named(recording, "where")
    assert "parts['q']" in names(recording, where.inputs)
    assert names(recording, op_named(recording, "matmul").outputs) == ["a2"]
    assert joined is not shifted is not masked is not first is not second


def test_global_variable_is_named():
    with al.record() as rec:
        GLOBAL.exp()

    assert names(rec.recording, op_named(rec.recording, "exp").inputs) == ["GLOBAL"]


def test_two_calls_on_one_line_have_their_own_place_and_the_same_line():
    x = batch()
    with al.record() as rec:
        y = x.sin() + x.cos()

    sin, cos, add = rec.recording.ops
    assert {op.source.line for op in (sin, cos, add)} == {sin.source.line}
    assert names(rec.recording, add.outputs) == ["y"]
    assert names(rec.recording, (*sin.outputs, *cos.outputs)) == [None, None]
    assert y.shape == x.shape


def test_source_line_is_that_of_the_call_in_a_statement_of_many_lines():
    x = batch()
    here = test_source_line_is_that_of_the_call_in_a_statement_of_many_lines.__code__
    with al.record() as rec:
        torch.add(
            x.sin(),
            x.cos(),
        )

    lines = {op.name: op.source.line - here.co_firstlineno for op in rec.recording.ops}
    assert (lines["cos"] - lines["sin"], lines["sin"] - lines["add"]) == (1, 1)
    assert op_named(rec.recording, "sin").source.file == "tests/capture/test_truth_places.py"
    assert op_named(rec.recording, "sin").source.text == "x.sin(),"


def test_nodes_are_made_by_their_calls():
    x = batch(requires_grad=True)
    with al.record() as rec:
        F.layer_norm(x.exp().T, (5,)).square().mean().backward()

    recording = rec.recording
    made = {n.short_name: recording.ops[n.made_by].name for n in recording.nodes if n.leaf is None}
    assert made == {
        "MeanBackward0": "mean",
        "PowBackward0": "square",
        "NativeLayerNormBackward0": "layer_norm",
        "PermuteBackward0": "T",
        "ExpBackward0": "exp",
    } or made == {**made, "TBackward0": "T"}
    for op in recording.ops:
        assert all(recording.nodes[node].made_by == op.id for node in op.nodes)


def test_one_call_may_make_many_nodes():
    net = nn.MultiheadAttention(4, 2)
    x = torch.randn(3, 2, 4)
    with al.record(net) as rec:
        net(x, x, x)[0].sum().backward()

    call = op_named(rec.recording, "multi_head_attention_forward")
    assert len(call.nodes) > 10
    assert call.module_type == "MultiheadAttention"


def test_call_under_no_grad_makes_no_node():
    x = batch(requires_grad=True)
    with al.record() as rec, torch.no_grad():
        x.exp()

    assert op_named(rec.recording, "exp").nodes == ()


def test_module_paths_are_those_of_named_modules():
    net = nn.Sequential(small_net(), nn.Sequential(nn.Linear(3, 2), nn.Tanh()))
    with al.record(net) as rec:
        net(batch()).sum().backward()

    found = [(op.name, op.module, op.module_type) for op in rec.recording.ops]
    assert [one for one in found if one[1] is not None] == [
        ("linear", "0.0", "Linear"),
        ("relu", "0.1", "ReLU"),
        ("linear", "0.2", "Linear"),
        ("linear", "1.0", "Linear"),
        ("tanh", "1.1", "Tanh"),
    ]
    nodes = {node.short_name: node.module for node in rec.recording.nodes if node.leaf is None}
    assert nodes["TanhBackward0"] == "1.1"


def test_module_without_a_model_is_named_by_its_variable():
    net = small_net()
    with al.record() as rec:
        net(batch()).sum().backward()

    assert {op.module for op in rec.recording.ops if op.module} == {"net.0", "net.1", "net.2"}
    leaves = {rec.recording.tensors[n.leaf].name for n in rec.recording.nodes if n.leaf is not None}
    assert leaves == {"net.0.weight", "net.0.bias", "net.2.weight", "net.2.bias"}


@pytest.mark.parametrize("nested", [False, True], ids=["one block", "two nested blocks"])
def test_calls_of_a_shared_module_are_numbered(nested):
    class Twice(nn.Module):
        def forward(self, x):
            return (x.sin() * 2).cos()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.shared = Twice()

        def forward(self, x):
            return self.shared(self.shared(x))

    net = Net()
    with al.record(net) as outer, al.record(net) if nested else nullcontext() as inner:
        net(batch())

    for rec in (outer, inner)[: 1 + nested]:
        calls = [(op.name, op.module, op.module_call) for op in rec.recording.ops if op.module]
        assert calls == [
            (name, "shared", number) for number in (1, 2) for name in ("sin", "mul", "cos")
        ]


def test_tied_weight_is_one_tensor_with_one_accumulator():
    embed = nn.Embedding(7, 4)
    head = nn.Linear(4, 7, bias=False)
    head.weight = embed.weight
    net = nn.Sequential(embed, head)
    with al.record(net) as rec:
        net(torch.tensor([1, 2])).sum().backward()

    leaves = [node for node in rec.recording.nodes if node.leaf is not None]
    assert [rec.recording.tensors[node.leaf].name for node in leaves] == ["0.weight"]


def test_in_place_calls_are_marked():
    x = batch()
    with al.record() as rec:
        y = x * 1
        y += 1
        y.mul_(2)
        y[0] = 3
        F.relu(y, inplace=True)
        torch.exp(y, out=y)
        y.tanh()

    marks = [(op.name, op.is_inplace) for op in rec.recording.ops]
    assert [mark for _, mark in marks] == [False, True, True, True, True, True, False], marks


def test_tensor_that_is_first_met_where_it_is_written_has_both_values():
    x = torch.ones(3)
    with al.record() as rec:
        x.mul_(5)

    (event,) = rec.recording.events_of(OpCalled)
    before, after = event.inputs[0], event.outputs[0]
    assert [before.values.array.tolist(), after.values.array.tolist()] == [[1] * 3, [5] * 3]
    assert (before.tensor, after.version) == (after.tensor, before.version + 1)
    assert names(rec.recording, [before.tensor]) == ["x"]


def test_assignment_to_an_item_is_a_call_with_the_new_value():
    x = torch.zeros(2)
    with al.record() as rec:
        x[0] = 7

    (event,) = rec.recording.events_of(OpCalled)
    assert event.outputs[0].values.array.tolist() == [7, 0]


def test_place_of_backward_is_the_users_line():
    x = batch(requires_grad=True)
    with al.record() as rec:
        x.sum().backward()

    (started,) = rec.recording.events_of(BackwardStarted)
    assert started.source.text == "x.sum().backward()"


def test_source_text_holds_the_recorded_lines():
    x = batch()
    with al.record() as rec:
        x.sin()

    source = op_named(rec.recording, "sin").source
    (text,) = [one for one in rec.recording.sources if one.function == source.function]
    assert text.lines[source.line - text.first_line].strip() == "x.sin()"


def test_calls_of_other_threads_never_claim_nodes_of_this_one():
    x, out = batch(requires_grad=True), []
    with al.record() as rec:
        start = torch.autograd._get_sequence_nr()
        y = x.sin().cos().exp()

        def forward():
            while torch.autograd._get_sequence_nr() < start:
                x.detach().requires_grad_().neg()
            out.append(x.tanh().sigmoid().square())

        thread = threading.Thread(target=forward)
        thread.start()
        thread.join()
        (out[0].sum() + y.sum()).backward()

    recording = rec.recording
    made = {n.short_name: n.made_by for n in recording.nodes if n.leaf is None}
    mine = ("SinBackward0", "CosBackward0", "ExpBackward0")
    assert [recording.ops[made[name]].name for name in mine] == ["sin", "cos", "exp"]
    theirs = [made[name] for name in ("TanhBackward0", "SigmoidBackward0", "PowBackward0")]
    assert theirs == [None, None, None]
    assert "unseen calls" in reasons(recording)


CELLS = [
    "import torch, autograd_lab as al",
    "def f(x):\n    return x.exp()",
    "x = torch.ones(2, requires_grad=True)\n"
    "with al.record() as rec:\n"
    "    y = f(x) * 3\n"
    "    y.sum().backward()",
    "import json\n"
    "print(json.dumps([[op.name, op.source.place, op.source.text] for op in rec.recording.ops]))\n"
    "print([s.file for s in rec.recording.sources])\n"
    "path = rec.recording.save('step.json')\n"
    "print('ipykernel' in path.read_text(), '/tmp' in path.read_text())",
]


def test_notebook_cells_are_named_by_their_number(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])

    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=60, kernel_name="python3", resources=where).execute()

    places, sources, leaks = notebook.cells[-1].outputs[0].text.splitlines()
    assert json.loads(places) == [
        ["exp", "In[2] line 2", "return x.exp()"],
        ["mul", "In[3] line 3", "y = f(x) * 3"],
        ["sum", "In[3] line 4", "y.sum().backward()"],
    ]
    assert sorted(ast.literal_eval(sources)) == ["In[2]", "In[3]"]
    assert leaks == "False False"


def test_checkpoint_hands_its_function_the_arguments_after_it():
    block, x = nn.Sequential(nn.Linear(3, 3), nn.ReLU()), torch.randn(5, 3)
    with al.record() as rec:
        checkpoint(block, x, use_reentrant=False).sum().backward()
    linear = rec.recording.ops[0]
    assert rec.recording.tensors[linear.inputs[0]].name == "x"
    assert linear.module == "block.0"


def test_a_custom_op_goes_by_its_name_at_the_users_line():
    @al.custom_op("capture_places::twice")
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.impl_save_for_backward(lambda inputs, output: None)
    twice.impl_backward()(lambda ctx, saved, grad: {"x": grad * 2})
    x = torch.ones(3, requires_grad=True)
    with al.record() as rec:
        twice(x).sum().backward()
    op = rec.recording.ops[0]
    assert (op.name, op.qualname) == ("twice", "torch.ops.capture_places.twice")
    assert op.source.text == "twice(x).sum().backward()"
    assert rec.recording.tensors[op.inputs[0]].name == "x"
