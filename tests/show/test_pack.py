"""The pack says in strict JSON what frames, pictures and tables say, and stays small."""

import base64
import json
import math
import zlib
from dataclasses import replace

import numpy as np
import pytest

from autograd_lab.errors import RecordingError
from autograd_lab.recording import (
    BackwardStarted,
    Detail,
    Histogram,
    OpCalled,
    OpId,
    Recording,
    Snapshot,
    TensorId,
    Values,
)
from autograd_lab.replay import Cursor
from autograd_lab.show import pack, pack_of
from autograd_lab.show.recording_text import recording_text
from tests.replay.building import Builder
from tests.show import recordings


def unpacked(recording, **options):
    def refuse(word):
        raise AssertionError(word)

    return json.loads(zlib.decompress(pack_of(recording, **options)), parse_constant=refuse)


def panel(packed, step, head):
    _, cards, text = next(one for one in packed["steps"]["panels"][step] if one[0] == head)
    return text if cards is None else [packed["cards"][card] for card in cards]


def box(packed, label, view=0):
    return next(one for one in packed["views"][view]["boxes"] if one["label"] == label)


@pytest.mark.parametrize("name", list(recordings.ALL))
def test_the_same_recording_gives_the_same_strict_json(name):
    recording = recordings.ALL[name]
    assert pack_of(recording) == pack_of(recording)
    packed = unpacked(recording)
    assert packed["version"] == 1
    assert packed["title"] == recording_text(recording).splitlines()[0].encode().decode()


@pytest.mark.parametrize("name", [name for name in recordings.ALL if name != "unprintable"])
def test_each_step_is_told_in_the_words_of_its_frame(name):
    recording = recordings.ALL[name]
    cursor, text = Cursor(recording), unpacked(recording)["steps"]["text"]
    if recording.events:
        first_lines = [repr(cursor.seek(step)).splitlines()[0] for step in range(len(cursor))]
        assert text == first_lines


def test_columns_have_one_entry_a_step_and_phases_cover_all():
    packed = unpacked(recordings.with_problems())
    steps = len(recordings.with_problems().events)
    assert {len(column) for column in packed["steps"].values()} == {steps + 1}
    covered = [step for one in packed["phases"] for step in range(one["first"], one["last"] + 1)]
    assert covered == list(range(1, steps + 1))


def test_the_end_of_a_pass_belongs_to_it():
    phases = unpacked(recordings.scalar())["phases"]
    assert [(one["name"], one["kind"], one["last"]) for one in phases] == [
        ("forward", "f", 2),
        ("backward 1", "b", 11),
    ]


def test_subjects_name_calls_nodes_and_passes():
    subjects = unpacked(recordings.scalar())["steps"]["subject"]
    assert subjects[:5] == ["", "o0", "o1", "b1", "n0@1"]
    assert subjects[-4:] == ["n2@1", "g2@1", "m2@1", "e1"]


def test_a_call_shows_what_it_took_and_returned():
    packed = unpacked(recordings.scalar())
    (x,) = panel(packed, 1, "inputs")
    (product,) = panel(packed, 1, "outputs")
    assert (x["name"], x["numbers"]) == ("x", [["3"]])
    assert (product["name"], product["numbers"]) == ("#1", [["9"]])


def test_a_later_call_shows_its_inputs_too():
    names = [card["name"] for card in panel(unpacked(recordings.scalar()), 2, "inputs")]
    assert names == ["#1", "x"]


def test_a_node_shows_what_it_receives_its_rule_what_it_returns_and_keeps():
    packed = unpacked(recordings.scalar())
    assert [head for head, _, _ in packed["steps"]["panels"][7]] == [
        "receives",
        "returns",
        "saved",
        "torch",
    ]
    assert panel(packed, 7, "torch") == "self: g * other\nother: g * self"
    assert [card["name"] for card in panel(packed, 7, "returns")] == ["to x.grad +="] * 2
    saved = panel(packed, 6, "saved")[0]
    assert (saved["name"], saved["lines"]) == ("self = x", ["4 bytes", "version 0"])
    assert saved["numbers"] == [["3"]]


def test_a_node_that_freed_its_tensors_says_so_and_one_that_keeps_them_shows_them():
    base = recordings.scalar()
    [started] = base.events_of(BackwardStarted)
    retained = replace(started, retain_graph=True)
    kept = replace(base, events=tuple(retained if one is started else one for one in base.events))
    text = next(t for head, _, t in unpacked(base)["steps"]["panels"][7] if head == "saved")
    assert text == "freed: this pass keeps none (retain_graph=True would)"
    names = [card["name"] for card in panel(unpacked(kept), 7, "saved")]
    assert names == ["self = x", "other = x"]


def test_a_line_that_is_gone_twice_says_so():
    drawing = unpacked(recordings.scalar())["views"][0]
    named = [one["label"] for one in drawing["boxes"]]
    times = {(named[e["from"]], named[e["to"]]): e.get("times", 1) for e in drawing["edges"]}
    assert times["x", "mul"] == times["MulBackward0", "x.grad"] == 2
    assert times["x", "add"] == times["mul", "add"] == times["AddBackward0", "MulBackward0"] == 1


def test_the_plain_rule_comes_first_and_torchs_lines_last():
    base = recordings.scalar()
    node = replace(base.nodes[1], rule="da = g * b, db = g * a")
    packed = unpacked(replace(base, nodes=(base.nodes[0], node, base.nodes[2])))
    heads = [head for head, _, _ in packed["steps"]["panels"][7]]
    assert heads == ["rule", "receives", "returns", "saved", "torch"]
    assert panel(packed, 7, "rule") == "da = g * b, db = g * a"
    assert panel(packed, 7, "torch").splitlines() == ["self: g * other", "other: g * self"]


def test_an_accumulation_shows_before_added_and_after():
    packed = unpacked(recordings.scalar())
    assert panel(packed, 9, "before")[0]["lines"] == ["none"]
    assert panel(packed, 9, "added")[0]["numbers"] == [["7"]]
    assert panel(packed, 9, "after")[0]["name"] == "x.grad"


def test_a_pass_says_its_loss_and_first_gradient():
    packed = unpacked(recordings.scalar())
    assert panel(packed, 3, "receives") == "y = 12, starts with gradient 1"
    (turn,) = packed["views"][0]["turns"]
    assert (turn["loss"], turn["gradient"]) == ("y = 12", "gradient starts at 1")
    assert packed["views"][0]["boxes"][turn["from"]]["label"] == "add"
    assert packed["views"][0]["boxes"][turn["to"]]["label"] == "AddBackward0"


def test_boxes_say_what_stands_on_them_over_time():
    packed = unpacked(recordings.scalar())
    assert packed["ops"]["text"] == ["= 9", "y = 12"]
    assert packed["grads"] == [{"tensor": 0, "changes": [[1, "data 3"], [9, "3 · grad 7"]]}]
    assert box(packed, "x")["twins"] == [packed["views"][0]["boxes"].index(box(packed, "x.grad"))]


def test_a_node_that_waits_knows_when_its_gradients_come():
    run = next(one for one in unpacked(recordings.scalar())["runs"] if one["node"] == 2)
    assert (run["arrive"], run["expect"], run["start"], run["finish"]) == ([5, 7, 7], 3, 8, 10)


def test_shapes_on_boxes_are_written_as_everywhere_else():
    assert box(unpacked(recordings.scalar()), "x")["sub"] == "scalar"
    assert box(unpacked(recordings.chain(3)), "x")["sub"] == "(4,)"
    assert box(unpacked(recordings.chain(3)), "sin")["sub"] == "y (4,)"


def test_a_leaf_without_a_wish_for_a_gradient_says_so():
    build = Builder()
    build.op("mul", build.tensor("x"), build.tensor("w", leaf=True))
    build.backward(build.op("sum", len(build.tensors) - 1))
    packed = unpacked(build.recording())
    assert box(packed, "x")["note"] == "no gradient wanted"
    assert "note" not in box(packed, "w")


def test_a_pass_that_raised_has_its_error_on_the_open_node():
    packed = unpacked(recordings.failed())
    failed = [run for run in packed["runs"] if run["error"]]
    assert [run["node"] for run in failed] == [1]
    assert panel(packed, 7, "raised") == "RuntimeError: saved tensor was modified"


def test_a_node_that_never_ran_in_a_stopped_pass_still_waits():
    packed = unpacked(recordings.failed())
    run = next(one for one in packed["runs"] if one["node"] == 2)
    assert (run["arrive"], run["expect"], run["error"]) == ([5], 3, False)
    assert run["start"] > len(recordings.failed().events)


def test_nan_is_marked_where_it_begins():
    packed = unpacked(recordings.with_nan())
    assert (box(packed, "MulBackward0")["birth"], box(packed, "MulBackward0")["bad"]) == (7, 7)
    assert panel(packed, 7, "returns")[0]["bad"] is True
    assert [one["step"] for one in packed["marks"] if one["kind"] == "nonfinite"] == [7]


def test_an_inf_that_a_mask_put_there_is_no_beginning_of_a_fault():
    base = recordings.scalar()
    masked = recordings.held(1, -math.inf, shape=())
    first = replace(base.events[0], outputs=(masked,))
    packed = unpacked(replace(base, events=(first, *base.events[1:])))
    assert box(packed, "mul")["bad"] == 1
    assert "birth" not in box(packed, "mul")
    assert [one for one in packed["marks"] if one["kind"] == "nonfinite"] == []


def test_nan_as_the_very_first_value_is_packed():
    base = recordings.scalar()
    nan = recordings.held(0, math.nan, shape=())
    first = replace(base.events[0], inputs=(nan,), outputs=(replace(nan, tensor=TensorId(1)),))
    packed = unpacked(replace(base, events=(first, *base.events[1:])))
    assert panel(packed, 1, "inputs")[0]["numbers"] == [["NaN"]]
    assert box(packed, "x")["birth"] == 1


def test_source_lines_know_their_steps_and_their_text():
    packed = unpacked(recordings.scalar())
    line = packed["lines"][packed["steps"]["source"][7]]
    assert (line["line"], line["steps"]) == (2, [1, 2, 4, 5, 6, 7])
    assert packed["files"][line["file"]]["text"][1] == "y = x * x + x"


def test_a_line_without_its_source_text_stands_alone():
    packed = unpacked(recordings.with_nan())
    assert packed["files"][packed["lines"][0]["file"]] == {
        "name": "lesson.py",
        "first": 2,
        "text": ["y = x * x + x"],
    }


def test_run_to_finds_whole_names():
    packed = unpacked(recordings.scalar())
    names = packed["names"]
    assert [names[at] for at in packed["nodes"]["names"][2]] == [
        "torch::autograd::AccumulateGrad",
        "AccumulateGrad",
        "x",
        "x.grad",
    ]
    assert [names[at] for at in packed["ops"]["names"][0]] == ["mul", "torch.Tensor.mul"]


def test_hostile_names_are_plain_text():
    packed = unpacked(recordings.ALL["hostile"])
    name = recordings.ALL["hostile"].tensors[0].name
    assert panel(packed, 1, "inputs")[0]["name"] == name


def test_names_that_no_encoding_takes_are_written_with_their_numbers():
    packed = unpacked(recordings.ALL["unprintable"])
    assert panel(packed, 1, "inputs")[0]["name"] == r"\udc80 \x00\x1b[1m"


def test_an_empty_recording_says_so():
    packed = unpacked(Recording())
    assert packed["empty"].startswith("There is nothing to draw")
    assert packed["steps"]["text"] == ["Before anything"]


def test_a_recording_without_a_backward_has_its_forward_alone():
    base = recordings.scalar()
    packed = unpacked(replace(base, events=base.events[:2], nodes=()))
    assert [lane["title"] for lane in packed["views"][0]["lanes"]] == ["forward ↓"]
    assert packed["empty"] is None


def test_too_many_nodes_are_refused_in_words(monkeypatch):
    monkeypatch.setattr(pack, "MOST_NODES", 100)
    packed = unpacked(recordings.chain(200))
    assert packed["empty"].startswith("This recording has 201 nodes; the Stepper draws up to 100.")
    assert "Record one training step" in packed["empty"]
    assert (packed["cards"], packed["views"]) == ([], [])


def test_a_recorder_in_place_of_a_recording_is_named():
    class Recorder:
        recording = None

    with pytest.raises(RecordingError, match=r"Use rec\.recording"):
        pack_of(Recorder())


def test_the_device_and_what_was_not_seen_are_told():
    packed = unpacked(recordings.with_problems(), hide="values")
    assert (packed["device"], packed["hide"]) == ("cuda:0", "values")
    assert packed["problems"][0]["step"] == 12
    assert "another thread" in packed["not_seen"][0]


def one_value(array, **snapshot):
    """A recording of one call that returned this."""
    ref = recordings.ref(0, array.shape)
    values = Values(shape=array.shape, dtype="float32", data=array.astype("<f4").tobytes())
    detail = Detail(values=values, histogram=Histogram(first_exponent=-2, counts=(1, 70_000)))
    out = Snapshot(
        tensor=TensorId(0), version=0, numel=array.size, norm=1.0, finite=True, detail=detail
    )
    op = recordings.Op(id=OpId(0), name="f", qualname="f", outputs=(TensorId(0),))
    event = OpCalled(op=OpId(0), outputs=(replace(out, **snapshot),))
    return Recording(events=(event,), ops=(op,), tensors=(ref,))


def pixels_of(card):
    pixels = card["pixels"]
    data = np.frombuffer(base64.b64decode(pixels["data"]), dtype=np.int8)
    return data.reshape(pixels["rows"], pixels["cols"])


def test_heat_maps_are_signed_bytes_on_a_symmetric_scale():
    array = np.zeros((8, 8))
    array[0, :4] = [2.0, -1.0, math.nan, math.inf]
    (card,) = panel(unpacked(one_value(array)), 1, "outputs")
    assert card["pixels"]["scale"] == "±2"
    assert pixels_of(card)[0, :5].tolist() == [127, -64, -128, -128, 0]
    assert card["pixels"]["note"] == "8 x 8"
    assert card["histogram"] == {"first": -2, "counts": [1, 70_000]}


@pytest.mark.parametrize("scale", [0.0, 1e-45, 3e38])
def test_heat_maps_of_any_scale_are_finite(scale):
    (card,) = panel(unpacked(one_value(np.full((7, 7), scale))), 1, "outputs")
    assert set(pixels_of(card).flat) <= {0, 127}


def test_heat_maps_are_made_coarser_until_they_fit_and_say_so():
    array = np.random.default_rng(0).normal(size=(32, 32))
    recording = one_value(array)
    sizes = [len(pack_of(recording, budget_nbytes=budget)) for budget in (10_000, 1_500, 0)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[1] <= 1_500
    (card,) = panel(unpacked(recording, budget_nbytes=1_500), 1, "outputs")
    rows, cols = pixels_of(card).shape
    assert rows < 32
    step = {16: "2nd", 11: "3rd", 8: "4th"}[rows]
    assert rows == cols
    assert card["pixels"]["note"] == f"32 x 32, every {step} row, every {step} column"
    (bare,) = panel(unpacked(recording, budget_nbytes=0), 1, "outputs")
    assert "pixels" not in bare


def test_small_tensors_are_numbers_not_pixels():
    (card,) = panel(unpacked(one_value(np.arange(36.0).reshape(6, 6))), 1, "outputs")
    assert card["numbers"][5] == ["30", "31", "32", "33", "34", "35"]
    assert "pixels" not in card
    assert "histogram" not in card


def test_above_300_boxes_folds_open():
    packed = unpacked(recordings.chain(400))
    folds = [one for one in packed["views"][0]["boxes"] if one["kind"] == "fold"]
    assert {one["opens"] for one in folds} == {1}
    assert packed["views"][1]["parent"] == 0
    shown = {op for view in packed["views"] for one in view["boxes"] for op in one["ops"]}
    assert shown == set(range(400))


def test_twins_of_very_many_passes_stay_few():
    build = Builder()
    y = build.op("sin", build.tensor("x", leaf=True))
    for _ in range(60):
        build.backward(y, retain_graph=True)
    boxes = unpacked(build.recording())["views"][0]["boxes"]
    assert max(len(one["twins"]) for one in boxes if one["lane"]) == 1


def test_the_wire_stays_small():
    assert len(pack_of(recordings.chain(1000))) <= 200_000
    assert len(pack_of(recordings.chain(5000))) <= 1_000_000


def test_a_stack_of_images_is_drawn_slice_by_slice():
    array = np.arange(2 * 3 * 4 * 5, dtype=np.float64).reshape(2, 3, 4, 5) - 60
    (card,) = panel(unpacked(one_value(array)), 1, "outputs")
    pixels = pixels_of(card)
    assert card["pixels"]["note"] == "6 of 6 slices of 4 x 5"
    assert pixels.shape == (9, 29)  # 5 beside each other, and one below
    assert pixels[:4, :5].tolist() == np.rint((array[0, 0]) / 60 * 127).tolist()
    assert pixels[5:, :5].tolist() == np.rint((array[1, 2]) / 60 * 127).tolist()
    assert not pixels[4].any()
