"""Layouts have no overlaps, keep lanes on common rows, and do not grow wide with depth."""

from __future__ import annotations

import gc
from itertools import combinations, pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import autograd_lab as al
from autograd_lab.recording import Edge, GradNode, NodeId, Recording
from autograd_lab.replay import layout_graph
from tests.replay.building import Builder, chain, perceptron


def box(layout, key):
    return next(node for node in layout.nodes if node.key == key)


def labels(layout, lane=0):
    return [node.label for node in layout.nodes if node.lane == lane]


def overlaps(layout):
    by_row = {}
    for node in layout.nodes:
        by_row.setdefault(node.row, []).append(node)
    return [
        (a.key, b.key)
        for row in by_row.values()
        for a, b in combinations(row, 2)
        if a.x < b.x + b.width and b.x < a.x + a.width
    ]


def crossed_boxes(layout):
    """Boxes that a vertical or horizontal stretch of a line runs through, its own ends aside."""
    return [
        (edge.source, edge.target, node.key)
        for edge in layout.edges
        for (x1, y1), (x2, y2) in zip(edge.points, edge.points[1:], strict=False)
        for node in layout.nodes
        if node.key not in (edge.source, edge.target)
        and (x1 == x2 or y1 == y2)
        and min(x1, x2) < node.x + node.width
        and node.x < max(x1, x2)
        and min(y1, y2) < node.y + node.height
        and node.y < max(y1, y2)
    ]


@st.composite
def programs(draw):
    """Up to 25 calls on any earlier tensors, some with several nodes, and up to two passes."""
    build = Builder()
    tensors = [build.tensor("x"), build.parameter("w"), build.tensor("z", leaf=True)]
    for _ in range(draw(st.integers(1, 25))):
        inputs = draw(st.lists(st.sampled_from(tensors), min_size=1, max_size=3, unique=True))
        module = draw(st.sampled_from([None, "a", "a.b", "a.c", "d.0", "d.1"]))
        extra = draw(st.sampled_from([0, 0, 0, 1, 4]))
        tensors.append(build.op("mul", *inputs, module=module, extra_nodes=extra))
    with_graph = [tensor for tensor in tensors[3:] if tensor in build.node_of]
    if with_graph:
        for root in draw(st.lists(st.sampled_from(with_graph), max_size=2)):
            build.backward(root, retain_graph=True)
    return build.recording()


@given(programs(), st.sampled_from([None, 300, 8, 1]))
@settings(deadline=None)
def test_boxes_never_overlap(recording, max_nodes):
    assert overlaps(layout_graph(recording, max_nodes=max_nodes)) == []


@given(programs(), st.sampled_from([None, 8]))
@settings(deadline=None)
def test_straight_lines_run_through_no_box(recording, max_nodes):
    assert crossed_boxes(layout_graph(recording, max_nodes=max_nodes)) == []


@given(programs(), st.integers(4, 40))
@settings(deadline=None)
def test_folding_keeps_its_bound_and_loses_nothing(recording, max_nodes):
    whole = layout_graph(recording, max_nodes=None)
    folded = layout_graph(recording, max_nodes=max_nodes)
    assert len(folded.nodes) <= max_nodes
    for kind in ("ops", "nodes", "tensors"):
        members = [
            sorted(m for node in one.nodes for m in getattr(node, kind)) for one in (whole, folded)
        ]
        assert members[0] == members[1]


@given(programs(), st.sampled_from([None, 8]))
@settings(deadline=None)
def test_everything_lies_inside_the_drawing_and_its_lane(recording, max_nodes):
    layout = layout_graph(recording, max_nodes=max_nodes)
    for node in layout.nodes:
        lane = layout.lanes[node.lane]
        assert lane.x <= node.x
        assert node.x + node.width <= lane.x + lane.width
        assert 0 <= node.y <= layout.height - node.height
    points = [point for edge in layout.edges for point in edge.points]
    assert all(0 <= x <= layout.width and 0 <= y <= layout.height for x, y in points)


@given(programs(), st.sampled_from([None, 8]))
@settings(deadline=None)
def test_no_line_has_a_point_twice_in_a_row(recording, max_nodes):
    layout = layout_graph(recording, max_nodes=max_nodes)
    for edge in layout.edges:
        assert all(one != other for one, other in pairwise(edge.points))


@pytest.mark.parametrize("is_on", [True, False])
def test_the_cycle_collector_is_left_as_it_was(is_on, request):
    request.addfinalizer(gc.enable)
    gc.enable() if is_on else gc.disable()
    layout_graph(perceptron(2))
    assert gc.isenabled() == is_on


@given(programs())
@settings(deadline=None)
def test_every_edge_of_a_pass_is_a_line(recording):
    layout = layout_graph(recording, max_nodes=None)
    ran = {(node.lane, node.nodes[0]): node.key for node in layout.nodes if node.nodes}
    expected = {
        (key, ran[lane, edge.node])
        for (lane, node), key in ran.items()
        for edge in recording.nodes[node].edges
        if edge is not None and (lane, edge.node) in ran
    }
    assert {(e.source, e.target) for e in layout.edges if e.kind == "backward"} == expected


@given(st.integers(2, 12), st.integers(2, 40))
@settings(deadline=None, max_examples=20)
def test_width_does_not_depend_on_depth(shallow, deep):
    widths = [
        layout_graph(perceptron(10 * depth, residual=True, prefix="b"), max_nodes=None).width
        for depth in (shallow, deep)
    ]
    assert abs(widths[0] - widths[1]) <= 60  # names get a digit longer


@pytest.mark.parametrize("depth", [11, 111, 555], ids=["100 nodes", "1000 nodes", "5000 nodes"])
def test_a_deep_residual_net_fits_the_screen(depth):
    layout = layout_graph(perceptron(depth, residual=True), max_nodes=None)
    assert layout.width < 1100


def test_a_recurrent_net_with_shared_weights_stays_narrow():
    build = Builder()
    w, u, h = build.parameter("w"), build.parameter("u"), build.tensor("h")
    for _ in range(300):
        h = build.op("rnn_tanh_cell", build.tensor("x"), h, w, u)
    build.backward(h)
    assert layout_graph(build.recording(), max_nodes=None).width < 1500


def test_a_node_stands_on_the_row_of_its_call_mirrored_in_its_lane():
    layout = layout_graph(perceptron(2))
    for node in layout.nodes:
        if node.kind == "node" and node.label == "ReluBackward0":
            twin = box(layout, f"op:{perceptron(2).nodes[node.nodes[0]].made_by}")
            assert (node.row, node.y) == (twin.row, twin.y)
            forward, backward = layout.lanes
            assert node.x + node.width / 2 - backward.x == pytest.approx(
                forward.x + forward.width - (twin.x + twin.width / 2), abs=0.1
            )


def test_accumulate_grad_stands_beside_its_leaf():
    layout = layout_graph(perceptron(1))
    leaf = next(node for node in layout.nodes if node.label == "blocks.0.fc.weight")
    twin = next(node for node in layout.nodes if node.label == "…0.fc.weight.grad")
    assert (twin.sublabel, twin.row, leaf.kind) == ("+=", leaf.row, "leaf")


def test_gradients_go_up_and_data_goes_down():
    layout = layout_graph(perceptron(3, residual=True))
    for edge in layout.edges:
        rise = edge.points[0][1] - edge.points[-1][1]
        assert rise > 0 if edge.kind == "backward" else rise < 0


def test_lines_begin_and_end_at_their_boxes():
    layout = layout_graph(perceptron(3, residual=True))
    for edge in layout.edges:
        for key, (x, y) in ((edge.source, edge.points[0]), (edge.target, edge.points[-1])):
            node = box(layout, key)
            assert node.x <= x <= node.x + node.width
            assert y in (node.y, node.y + node.height)


def test_leaves_stand_right_above_their_first_use():
    layout = layout_graph(perceptron(5))
    last = next(node for node in layout.nodes if node.label == "blocks.4.fc.weight")
    use = next(node for node in layout.nodes if node.kind == "op" and node.ops == (8,))
    assert use.row - last.row == 1


def test_many_parameters_of_one_call_stand_in_several_rows():
    model = nn.LSTM(8, 16, 2)
    with al.record(model, values="none") as rec:
        model(torch.randn(6, 4, 8))[0].sum().backward()
    layout = layout_graph(rec.recording)
    assert layout.width < 1500
    assert overlaps(layout) == crossed_boxes(layout) == []


def test_a_tensor_without_a_name_is_called_after_the_call_that_made_it():
    model = nn.Linear(4, 2)
    with al.record(model) as rec:
        model(torch.randn(3, 4)).sum().backward()
    assert "randn" in labels(layout_graph(rec.recording))


def test_nodes_of_one_call_stack_with_the_gradient_going_up():
    build = Builder()
    build.backward(build.op("einsum", build.tensor("x", leaf=True), extra_nodes=9))
    layout = layout_graph(build.recording())
    stack = sorted(
        (n.row, n.nodes[0])
        for n in layout.nodes
        if n.kind == "node" and not n.label.endswith(".grad")
    )
    assert [row for row, _ in stack] == list(range(stack[0][0], stack[0][0] + 10))
    assert stack[-1][1] == build.recording().ops[0].nodes[-1]


def test_a_node_without_a_call_gets_rows_of_its_own_between_its_neighbours():
    build = Builder()
    x = build.op("exp", build.tensor("x", leaf=True))
    hidden = build.tensor(requires_grad=True)
    build.node_of[hidden] = build.node("OwnBackward", [build.node_of[x]])
    build.backward(build.op("sum", hidden))
    layout = layout_graph(build.recording())
    rows = {node.label: node.row for node in layout.nodes}
    assert rows["exp"] < rows["OwnBackward"] < rows["sum"]


def test_a_pass_that_stopped_shows_what_it_would_have_run():
    build = Builder()
    y = build.op("sin", build.op("exp", build.tensor("x", leaf=True)))
    build.backward(y, stop_after=1)
    assert labels(layout_graph(build.recording()), lane=1) == [
        "x.grad",
        "ExpBackward0",
        "SinBackward0",
    ]


def test_each_pass_has_a_lane():
    build = Builder()
    y = build.op("exp", build.tensor("x", leaf=True))
    build.backward(y, retain_graph=True)
    build.backward(y)
    layout = layout_graph(build.recording())
    assert [lane.title for lane in layout.lanes] == ["forward", "backward 1", "backward 2"]
    assert labels(layout, 1) == labels(layout, 2) == ["x.grad", "ExpBackward0"]


def test_calls_that_feed_no_graph_are_left_out():
    build = Builder()
    x = build.op("div", build.tensor("x"), grad=False)
    y = build.op("mul", x, build.parameter("w"))
    build.op("argmax", y, grad=False)
    build.backward(y)
    assert labels(layout_graph(build.recording())) == ["x", "div", "w", "mul"]


def test_a_later_step_stands_below_an_earlier_one():
    build = Builder()
    w = build.parameter("w")
    for _ in range(2):
        build.backward(build.op("mul", build.tensor("x"), w))
    layout = layout_graph(build.recording())
    assert box(layout, "op:1").row > box(layout, "op:0").row


def test_a_graph_with_a_cycle_is_drawn_all_the_same():
    nodes = tuple(
        GradNode(id=NodeId(n), name="A", edges=(Edge(node=NodeId(1 - n), input=0),)) for n in (0, 1)
    )
    build = Builder()
    build.nodes += nodes
    one = build.start_pass(NodeId(0))
    build.run(one, NodeId(0))
    build.run(one, NodeId(1))
    assert len(layout_graph(build.recording()).nodes) == 2


def test_modules_are_folded_by_their_path():
    layout = layout_graph(perceptron(20), max_nodes=60)
    assert "blocks.3 x 2 ops" in labels(layout)
    assert "blocks.3 x 4 nodes" in labels(layout, 1)


def test_blocks_that_do_not_fit_are_folded_as_repeats():
    layout = layout_graph(perceptron(200, residual=True), max_nodes=50)
    fold = next(node for node in layout.nodes if node.kind == "fold")
    assert (fold.label, fold.sublabel) == ("blocks.* x 200", "600 ops")


def test_a_long_chain_is_folded_into_a_stretch():
    layout = layout_graph(chain(3000))
    assert labels(layout) == ["sin x 3000"]
    assert labels(layout, 1) == ["SinBackward0 x 3000"]
    assert layout.hidden == 3000 + 3001 + 1


def test_calls_without_a_pattern_are_folded_into_equal_stretches():
    build = Builder()
    h = build.tensor("x", leaf=True)
    for number in range(200):
        h = build.op("ab"[(number * number // 7) % 2] * (1 + number % 23), h)
    build.backward(h)
    layout = layout_graph(build.recording(), max_nodes=20)
    assert 10 <= len(layout.nodes) <= 20


def test_none_folds_nothing():
    layout = layout_graph(chain(1000), max_nodes=None)
    assert (len(layout.nodes), layout.hidden) == (2002, 0)


def test_an_empty_recording_has_an_empty_forward_lane():
    layout = layout_graph(Recording())
    assert (layout.nodes, layout.edges, len(layout.lanes)) == ((), (), 1)


def test_a_double_backward_stands_beside_the_nodes_that_made_it():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with al.record() as rec:
        y = x.sin()
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        g.sum().backward()
    layout = layout_graph(rec.recording)
    made = next(n for n in rec.recording.nodes if n.made_in_node is not None)
    maker = box(layout, f"node:{made.made_in_node}@1")
    assert box(layout, f"node:{made.id}@2").row - maker.row in range(3)
    assert overlaps(layout) == crossed_boxes(layout) == []


@pytest.mark.parametrize("max_nodes", [None, 60])
def test_a_real_transformer_is_laid_out_without_overlaps(max_nodes):
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    with al.record(model, values="none") as rec:
        model(torch.randn(2, 5, 16)).mean().backward()
    layout = layout_graph(rec.recording, max_nodes=max_nodes)
    assert overlaps(layout) == crossed_boxes(layout) == []
    drawn = {n for node in layout.nodes for n in node.nodes}
    assert drawn == {node.id for node in rec.recording.nodes}
