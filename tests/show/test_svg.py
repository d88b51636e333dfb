import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from autograd_lab.recording import OpCalled, ProblemSeen, TensorId
from autograd_lab.show import graph_svg
from autograd_lab.show.numbers import format_number
from tests.replay.building import Builder
from tests.show import recordings

NAMESPACE = "{http://www.w3.org/2000/svg}"


def drawn(recording, step=None, **options):
    return ET.fromstring(graph_svg(recording, step, **options))


def words(root, name="text"):
    return ["".join(element.itertext()) for element in root.iter(f"{NAMESPACE}{name}")]


@pytest.mark.parametrize("name", list(recordings.ALL))
@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
def test_every_recording_is_drawn_as_strict_xml(name, theme):
    root = drawn(recordings.ALL[name], theme=theme)
    assert root.get("role") == "graphics-document"
    assert root.get("aria-label").startswith("Graph of forward and backward")


def test_loss_first_gradient_and_values_stand_in_the_picture():
    shown = words(drawn(recordings.scalar()))
    assert "y = 12 · gradient starts at 1" in shown
    assert "x = 3" in shown
    assert "grad 7" in shown
    assert shown[shown.index("x.grad") + 1] == "+= 7"


def test_a_line_that_is_gone_twice_says_so_and_one_to_a_fold_does_not():
    assert words(drawn(recordings.scalar())).count("\u00d72") == 2
    assert "\u00d72" not in words(drawn(recordings.scalar(), max_nodes=1))


def test_lines_are_gone_when_a_call_has_taken_and_a_node_has_sent():
    def gone(step):
        paths = drawn(recordings.scalar(), step=step).iter(f"{NAMESPACE}path")
        kinds = [path.get("class") for path in paths if path.get("marker-end")]
        return kinds.count("e f"), kinds.count("e r")

    assert [gone(step) for step in (0, 1, 2, 6, 7)] == [(0, 0), (1, 0), (3, 0), (3, 3), (3, 4)]


def test_what_a_pass_starts_from_is_told_once_it_is_known():
    def told(step):
        shown = words(drawn(recordings.scalar(), step=step))
        return next((one for one in shown if "gradient starts" in one or "y = 12" in one), "")

    assert told(1) == ""
    assert told(3) == "y = 12 · gradient starts at 1"


def test_a_node_with_all_its_gradients_is_ready_not_waiting():
    root = drawn(recordings.scalar(), step=7)
    classes = [group.get("class") for group in root.iter(f"{NAMESPACE}g")]
    assert "r ready" in classes
    assert "ready to run" in words(root)
    assert "has all its gradients, runs soon" in "".join(words(root, "title"))


@pytest.mark.parametrize("norm", [3.581, 1.236e-5, 123.4, 0.01236])
def test_a_leaf_of_few_letters_has_room_for_the_norm_of_its_gradient(norm):
    build = Builder()
    x = build.tensor("x", leaf=True, shape=(3,))
    build.grads[x] = norm - 1
    build.backward(build.op("exp", x))
    assert f"grad {format_number(norm)}" in words(drawn(build.recording()))


def test_a_step_says_in_words_and_styles_what_runs_and_what_waits():
    root = drawn(recordings.scalar(), step=6)
    classes = [
        group.get("class")
        for group in root.iter(f"{NAMESPACE}g")
        if group.find(f"{NAMESPACE}title") is not None
    ]
    assert classes.count("r now") == 1
    assert classes.count("r wait") == 1
    assert "Step 6 of 11: MulBackward0 starts" in words(root)
    assert "1 of 3 gradients" in words(root)
    assert any(tip.endswith("running now") for tip in words(root, "title"))


def test_before_the_first_step_nothing_has_run():
    shown = graph_svg(recordings.scalar(), 0)
    assert "nothing has run yet" in shown
    assert shown.count('class="f later"') == 2
    assert shown.count('class="r later"') == 3


def test_tooltips_tell_call_rule_and_numbers():
    tips = words(drawn(recordings.scalar()), "title")
    assert any("rule: self: g * other" in tip and "receives = 1" in tip for tip in tips)
    assert any(tip.startswith("y = add(#1, x)") and "lesson.py:2" in tip for tip in tips)


def test_a_bad_box_says_nan_and_not_only_by_colour():
    root = drawn(recordings.with_nan())
    assert "returns NaN" in words(root)
    assert "NaN or Inf" in words(root)


def test_nodes_that_an_exception_kept_from_running_are_marked():
    root = drawn(recordings.failed())
    assert "did not run" in words(root)


def groups(root):
    """The groups of boxes by their label; of two with the same label the last."""
    found = [one for one in root.iter(f"{NAMESPACE}g") if words(one, "title")]
    return {words(group)[0]: group for group in found if group.find(f"{NAMESPACE}rect") is not None}


def labelled(root):
    """The label and the tooltip of each box."""
    return [
        (words(group)[0], words(group, "title")[0])
        for group in root.iter(f"{NAMESPACE}g")
        if group.find(f"{NAMESPACE}title") is not None
    ]


def badges(group):
    return [path for path in group.iter(f"{NAMESPACE}path") if path.get("class") == "badge"]


def test_a_node_that_raised_is_marked_by_word_badge_and_colour():
    root = drawn(recordings.failed())
    raised = groups(root)["MulBackward0"]
    assert raised.get("class") == "r x"
    assert len(badges(raised)) == 1
    assert words(raised)[1] in ("raised RuntimeError", "raised")
    assert "raised RuntimeError: saved tensor was modified" in words(raised, "title")[0]
    assert "raised" in words(root)


def test_a_node_has_raised_only_once_the_pass_has_stopped():
    before, after = (groups(drawn(recordings.failed(), step=step)) for step in (6, 7))
    assert before["MulBackward0"].get("class") == "r now"
    assert after["MulBackward0"].get("class") == "r x"


def test_a_node_runs_until_it_has_finished_whatever_happens_meanwhile():
    failed = recordings.failed()
    problem = ProblemSeen(kind="non-finite backward", text="planted", node=1, pass_id=1)
    seen = replace(failed, events=(*failed.events[:6], problem, failed.events[6]))
    assert groups(drawn(seen, step=7))["MulBackward0"].get("class") == "r now"


def test_a_node_that_raised_before_it_started_is_marked():
    build = Builder()
    y = build.op("sin", build.op("exp", build.tensor("x", leaf=True)))
    one = build.start_pass(build.node_of[y])
    build.run(one, build.node_of[y])
    node = build.nodes[build.node_of[y]].edges[0].node
    build.events.append(ProblemSeen(kind="exception", text="planted", node=node, pass_id=one))
    build.finish_pass(one, "RuntimeError: planted")
    recording = build.recording()
    last = len(recording.events)
    assert groups(drawn(recording, step=last))["ExpBackward0"].get("class") == "r x"
    assert groups(drawn(recording))["ExpBackward0"].get("class") == "r x"
    assert groups(drawn(recording, step=last - 2))["ExpBackward0"].get("class") == "r ready"


def test_two_passes_from_one_loss_have_a_label_each():
    build = Builder()
    y = build.op("exp", build.tensor("x", leaf=True, shape=()))
    build.events[-1] = OpCalled(op=0, outputs=(build.snapshot(y, 8.0),))
    build.backward(y, retain_graph=True)
    build.backward(y)
    places = [
        float(element.get("x"))
        for element in drawn(build.recording()).iter(f"{NAMESPACE}text")
        if "gradient starts at" in "".join(element.itertext())
    ]
    assert len(places) == 2
    assert places[1] - places[0] > 150


def test_where_nan_begins_has_a_badge_and_what_carries_it_has_none():
    root = drawn(recordings.with_nan())
    assert len(badges(groups(root)["MulBackward0"])) == 1
    assert badges(groups(root)["AddBackward0"]) == []
    assert "NaN or Inf begins" in words(root)
    assert "NaN or Inf begins" not in words(drawn(recordings.scalar()))


def test_a_call_that_makes_nan_of_finite_inputs_has_the_badge():
    build = Builder()
    y = build.op("log", build.tensor("x", leaf=True))
    build.events[-1] = OpCalled(op=0, outputs=(build.snapshot(y, math.nan),))
    z = build.op("mul", y)
    build.events[-1] = OpCalled(op=1, outputs=(build.snapshot(z, math.nan),))
    shown = groups(drawn(build.recording()))
    assert (len(badges(shown["log"])), len(badges(shown["mul"]))) == (1, 0)
    assert [shown[name].get("class") for name in ("log", "mul")] == ["f p birth", "f p"]


def test_leaves_of_the_same_last_name_look_different():
    build = Builder()
    h = build.tensor("x")
    for layer in (
        "decoder.layers.0.attention.out_projection",
        "decoder.layers.1.attention.out_projection",
    ):
        h = build.op("linear", h, build.parameter(f"{layer}.weight"))
    build.backward(h)
    root = drawn(build.recording())
    tips = {tip.splitlines()[0]: label for label, tip in labelled(root)}
    twins = [label for tip, label in tips.items() if tip.startswith("AccumulateGrad")]
    assert twins == ["…0…weight.grad", "…1…weight.grad"]


def test_the_plain_rule_comes_before_torchs_formula():
    build = Builder()
    x = build.tensor("x", leaf=True)
    build.op("sin", x)
    build.nodes[-1] = replace(build.nodes[-1], rule="dx = g * cos(x)", formula="self: grad * a")
    build.backward(TensorId(1))
    tips = words(drawn(build.recording()), "title")
    assert any("rule: dx = g * cos(x)\nin torch: self: grad * a" in tip for tip in tips)


def test_names_from_the_program_are_escaped():
    shown = graph_svg(recordings.ALL["hostile"])
    assert "<script" not in shown
    assert "</svg>" not in shown[: -len("</svg>")]


def test_no_label_is_smaller_than_twelve_pixels():
    sizes = re.findall(r"font(?:-size)?:[^;}]*?(\d+)px", graph_svg(recordings.scalar()))
    assert sizes
    assert min(map(int, sizes)) >= 12


def test_nothing_is_loaded_or_run():
    shown = graph_svg(recordings.chain(50))
    assert not re.search(r"<script|href|src=|@import|url\((?!#)", shown)


def test_a_long_chain_is_folded():
    assert len(graph_svg(recordings.chain(2000))) < 20_000
    root = drawn(recordings.chain(2000))
    assert "are folded" in root.get("aria-label")


def test_one_theme_has_no_media_query():
    assert "prefers-color-scheme" in graph_svg(recordings.scalar())
    assert "prefers-color-scheme" not in graph_svg(recordings.scalar(), theme="dark")


def test_a_scalar_that_is_not_finite_is_written_as_every_scalar():
    build = Builder()
    y = build.op("sum", build.tensor("x", leaf=True))
    build.tensors[y] = replace(build.tensors[y], name="loss", shape=())
    build.events[-1] = OpCalled(op=0, outputs=(recordings.held(y, -math.inf, shape=()),))
    build.backward(y)
    assert "loss = -Inf" in words(drawn(build.recording()))
