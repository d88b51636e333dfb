"""Bad input gets a clear error or a clear line; the user's model and files stay untouched."""

from __future__ import annotations

import base64
import copy
import re
from xml.etree import ElementTree

import pytest
import torch
from torch import nn

import autograd_lab as al
from autograd_lab.errors import NodeNotFoundError, RecordingError
from autograd_lab.recording import (
    BackwardFinished,
    BackwardStarted,
    GradAccumulated,
    NodeStarted,
    OpCalled,
)
from tests.capture.running import reasons


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    """Whatever a test writes by mistake is found there."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    yield
    assert list((tmp_path / "here").iterdir()) == []


@pytest.fixture
def model():
    """A model, which is the same after the test but for its gradients."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    before = facts(model)
    yield model
    assert facts(model) == before


def facts(model):
    """What recording might change in a model: names, bytes, flags, hooks, attributes."""
    tensors = {
        name: (tensor.detach().numpy().tobytes(), tensor.requires_grad, tensor._version)
        for name, tensor in model.state_dict(keep_vars=True).items()
    }
    hooks = {
        path: {name: len(value) for name, value in vars(module).items() if "hook" in name}
        for path, module in model.named_modules()
        if all(hasattr(value, "__len__") for name, value in vars(module).items() if "hook" in name)
    }
    return tensors, hooks, [sorted(vars(module)) for module in model.modules()], model.training


def x():
    return torch.tensor([[1.0, -2.0, 0.5]])


def loss_of(model):
    return model(x()).square().sum()


def texts(recording):
    return " ".join(event.text for event in (*recording.not_seen, *recording.problems))


SETTINGS = {
    "values is no such word": ({"values": "some"}, "'none', 'auto', 'all'"),
    "values in capitals": ({"values": "ALL"}, "'ALL'"),
    "values is None": ({"values": None}, "None"),
    "values is a bool": ({"values": True}, "True"),
    "values is a list": ({"values": ["all"]}, "'all'"),
    "budget is negative": ({"max_bytes": -1}, "-1"),
    "budget is a float": ({"max_bytes": 1e6}, "1000000.0"),
    "budget is text": ({"max_bytes": "64 MB"}, "64 MB"),
    "budget is None": ({"max_bytes": None}, "None"),
    "budget is NaN": ({"max_bytes": float("nan")}, "nan"),
}


@pytest.mark.parametrize("name", list(SETTINGS))
@pytest.mark.parametrize("ask", ["record", "record_step"])
def test_wrong_settings_are_refused_before_anything_runs(ask, name, model):
    settings, words = SETTINGS[name]
    ran = []
    ways = {
        "record": lambda: al.record(model, **settings),
        "record_step": lambda: al.record_step(lambda: ran.append(1), model=model, **settings),
    }
    with pytest.raises(RecordingError) as caught:
        ways[ask]()
    assert words in str(caught.value)
    assert caught.value.facts.keys() == settings.keys()
    assert ran == []


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (lambda batch: batch, "function"),
        ([nn.Linear(1, 1)], "list"),
        (nn.Linear, "type"),
        ("model", "str"),
        (torch.ones(2), "Tensor"),
    ],
    ids=["function", "list of modules", "class", "text", "tensor"],
)
def test_a_model_that_is_no_module_is_refused_by_its_type(wrong, kind):
    with pytest.raises(RecordingError, match=f"got a {kind} as its model"):
        al.record(wrong)


def test_a_step_that_is_no_function_raises_pythons_error_and_leaves_nothing():
    with pytest.raises(TypeError, match="not callable"):
        al.record_step(3)


def test_a_step_that_wants_arguments_raises_pythons_error(model):
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        al.record_step(model)


@pytest.mark.parametrize("values", ["auto", "all"])
def test_a_budget_of_0_records_all_but_the_values_and_says_so(values, model):
    recording = al.record_step(
        lambda: loss_of(model).backward(), model=model, values=values, max_bytes=0
    )
    outputs = [snapshot for op in recording.events_of(OpCalled) for snapshot in op.outputs]
    assert all(snapshot.values is None for snapshot in outputs)
    assert all(snapshot.norm is not None for snapshot in outputs)
    assert len(list(recording.events_of(GradAccumulated))) == 4
    assert "budget of 0 bytes" in texts(recording)


def test_a_budget_of_0_says_nothing_where_no_values_were_asked_for(model):
    recording = al.record_step(
        lambda: loss_of(model).backward(), model=model, values="none", max_bytes=0
    )
    assert "budget" not in reasons(recording)


def test_a_recorder_is_used_once(model):
    recorder = al.record(model)
    with recorder:
        loss_of(model)
    first = recorder.recording
    with pytest.raises(RecordingError, match="used before"), recorder:
        pytest.fail("the block ran")
    assert recorder.recording is first


def test_a_recorder_is_not_entered_inside_its_own_block(model):
    recorder = al.record(model)
    with recorder:
        with pytest.raises(RecordingError, match="used before"):
            recorder.__enter__()
        loss_of(model).backward()
    assert len(list(recorder.recording.events_of(BackwardFinished))) == 1


def test_the_recording_is_not_there_before_or_inside_the_block(model):
    recorder = al.record(model)
    with pytest.raises(RecordingError, match="no recording yet"):
        _ = recorder.recording
    with recorder:
        with pytest.raises(RecordingError, match="after the block"):
            _ = recorder.recording
        loss_of(model).backward()
    assert recorder.recording.nodes


def test_an_empty_block_says_that_nothing_ran():
    with al.record() as recorder:
        pass
    assert recorder.recording.events == (*recorder.recording.not_seen,)
    assert reasons(recorder.recording) == {"empty"}
    assert "nothing to show" in repr(recorder.recording)


def raised_by(run):
    with pytest.raises(RuntimeError) as caught:
        run()
    return str(caught.value)


def test_a_loss_that_needs_no_grad_raises_torchs_own_error(model):
    def run():
        loss_of(model).detach().backward()

    recorder = al.record(model)

    def recorded():
        with recorder:
            run()

    assert raised_by(recorded) == raised_by(run)
    assert "does not require grad" in texts(recorder.recording)
    assert "does not require grad" in repr(recorder.recording)


def test_a_loss_under_no_grad_is_recorded_up_to_the_error(model):
    recorder = al.record(model)
    with pytest.raises(RuntimeError, match="does not require grad"), recorder, torch.no_grad():
        loss_of(model).backward()
    (finished,) = recorder.recording.events_of(BackwardFinished)
    assert "does not require grad" in finished.error
    names = [op.name for op in recorder.recording.ops]
    assert names == ["tensor", "linear", "tanh", "linear", "square", "sum"]
    assert recorder.recording.nodes == ()


def test_a_loss_with_many_elements_raises_torchs_own_error(model):
    recorder = al.record(model)
    with pytest.raises(RuntimeError, match="scalar outputs"), recorder:
        model(x().repeat(2, 1)).backward()
    assert "scalar outputs" in texts(recorder.recording)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_second_backward_over_a_freed_graph_raises_torchs_own_error(model):
    def twice():
        loss = loss_of(model)
        loss.backward()
        loss.backward()

    recorder = al.record(model)

    def recorded():
        with recorder:
            twice()

    assert raised_by(recorded) == raised_by(twice)
    first, second = recorder.recording.events_of(BackwardFinished)
    assert first.error is None
    assert "second time" in second.error
    assert "saved tensor freed" in {problem.kind for problem in recorder.recording.problems}


def test_a_graph_freed_before_the_block_is_recorded_as_far_as_it_ran(model):
    loss = loss_of(model)
    loss.backward()
    recorder = al.record(model)
    with pytest.raises(RuntimeError, match="second time"), recorder:
        loss.backward()
    started = [event.node for event in recorder.recording.events_of(NodeStarted)]
    assert [recorder.recording.node(node).short_name for node in started] == ["SumBackward0"]


def test_an_error_in_forward_leaves_what_ran_before_it(model):
    recorder = al.record(model)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), recorder:
        model(torch.ones(len(model(x())), 7))
    names = [op.name for op in recorder.recording.ops]
    assert names == ["tensor", "linear", "tanh", "linear", "ones"]
    assert "shapes cannot be multiplied" in texts(recorder.recording)


@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_a_compiled_model_is_one_opaque_node_and_says_how_to_see_inside(model):
    torch._dynamo.reset()
    compiled = torch.compile(copy.deepcopy(model), backend="aot_eager")
    recording = al.record_step(lambda: loss_of(compiled).backward(), model=compiled)
    names = [node.short_name for node in recording.nodes]
    assert names.count("CompiledFunctionBackward") == 1
    assert not {"AddmmBackward0", "TanhBackward0"} & set(names)
    assert "model._orig_mod" in texts(recording)


@pytest.mark.filterwarnings("ignore")  # torch.jit.script is deprecated and says so
def test_a_scripted_model_gives_its_gradients_and_says_what_was_not_seen(model):
    scripted = torch.jit.script(copy.deepcopy(model))
    recording = al.record_step(lambda: loss_of(scripted).backward(), model=scripted)
    assert len(list(recording.events_of(GradAccumulated))) == 4
    assert "scripted" in texts(recording)
    assert all(parameter.grad is not None for parameter in scripted.parameters())


def hostile_recording():
    name = "<img src=x onerror=alert(1)>"
    model = nn.Module()
    model.register_parameter(name, nn.Parameter(torch.ones(2)))
    model.add_module("<script>", nn.Tanh())
    weight = getattr(model, name)
    return al.record_step(
        lambda: getattr(model, "<script>")(weight * 2).sum().backward(), model=model
    )


def test_html_in_a_name_is_escaped_on_the_page(tmp_path):
    page = al.to_html(hostile_recording(), tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<img src=x" not in page
    assert "<script>" not in page  # its own have attributes
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


def picture_of(data):
    """The parsed SVG of a data address: an unescaped name would make it no XML, or an element."""
    root = ElementTree.fromstring(base64.b64decode(data))
    assert not {element.tag.rpartition("}")[2] for element in root.iter()} & {"img", "script"}
    return root


def test_html_in_a_name_is_escaped_in_the_notebook():
    data, _ = hostile_recording()._repr_mimebundle_()
    html = data["text/html"]
    pictures = re.findall(r'src="data:image/svg\+xml[^,]*,([^"]+)"', html)
    names = [element.text for element in picture_of(pictures[0]).iter() if element.text]
    assert "<img src=x" not in html
    assert "<script" not in html
    assert any("<img src=x" in name for name in names)
    assert "<img src=x onerror=alert(1)>" in data["text/plain"]


def test_names_that_are_html_go_through_a_file_unchanged(tmp_path):
    recording = hostile_recording()
    loaded = al.load_recording(recording.save(tmp_path / "step.json"))
    assert loaded == recording
    assert loaded.tensors[0].name == recording.tensors[0].name


@pytest.mark.parametrize("target", ["AddmBackward0", "TanBackward", "2.wieght"])
def test_run_until_without_a_match_offers_near_names_and_stays(target, model):
    cursor = al.Cursor(al.record_step(lambda: loss_of(model).backward(), model=model))
    with pytest.raises(NodeNotFoundError, match="Nearest names") as caught:
        cursor.run_until(target)
    near = {"AddmBackward0": "AddmmBackward0", "TanBackward": "TanhBackward0"}
    assert near.get(target, "2.weight") in caught.value.facts["near"]
    assert cursor.index == 0


@pytest.mark.parametrize("run", [lambda: None, lambda: x().sum()], ids=["empty", "forward only"])
def test_the_flow_of_a_recording_without_a_backward_says_so(run):
    flow = al.gradient_flow(al.record_step(run))
    assert "no backward pass" in repr(flow)


def test_a_backward_that_stopped_at_once_has_a_flow_that_can_be_shown(model):
    recorder = al.record(model)
    with pytest.raises(RuntimeError, match="scalar outputs"), recorder:
        model(x().repeat(2, 1)).backward()
    assert len(list(recorder.recording.events_of(BackwardStarted))) <= 1
    assert repr(al.gradient_flow(recorder.recording))


@pytest.mark.parametrize("path", ["file/page.html", "folder"], ids=["below a file", "a folder"])
def test_a_page_that_cannot_be_written_leaves_nothing_behind(path, model, tmp_path):
    (tmp_path / "file").write_text("the user's")
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OSError, match=path.split("/")[0]):
        al.to_html(al.record_step(lambda: loss_of(model)), tmp_path / path)
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "file").read_text() == "the user's"


def test_a_recording_that_cannot_be_written_leaves_nothing_behind(model, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(Exception, match="nowhere"):
        al.record_step(lambda: loss_of(model)).save(tmp_path / "nowhere" / "step.json")
    assert sorted(tmp_path.rglob("*")) == before
