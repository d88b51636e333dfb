"""Every call and node has a box of its own in some view, and every fold opens one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograd_lab.recording import Recording
from autograd_lab.replay import layout_graph, layout_views
from tests.replay.building import Builder, chain
from tests.replay.test_layout import crossed_boxes, overlaps, programs


def own_boxes(layouts, what):
    boxes = (box for layout in layouts for box in layout.nodes if box.kind != "fold")
    return sorted(member for box in boxes for member in getattr(box, what))


def test_a_small_recording_is_one_view():
    (view,) = layout_views(chain(20))
    assert (view.title, view.parent, dict(view.opens)) == ("whole recording", -1, {})
    assert view.layout == layout_graph(chain(20))


@pytest.mark.parametrize("length", [400, 2000])
def test_a_chain_opens_down_to_every_call_and_node(length):
    recording = chain(length)
    views = layout_views(recording)
    whole = layout_graph(recording, max_nodes=None)
    for what in ("ops", "nodes"):
        assert own_boxes([view.layout for view in views], what) == own_boxes([whole], what)
    assert max(len(view.layout.nodes) for view in views) <= 300


def test_folds_of_both_lanes_open_the_same_inside_whose_parent_is_theirs():
    views = layout_views(chain(400))
    for number, view in enumerate(views):
        folds = [box.key for box in view.layout.nodes if box.kind == "fold"]
        assert sorted(view.opens) == sorted(folds)
        assert {views[inside].parent for inside in view.opens.values()} <= {number}
    assert len(set(views[0].opens.values())) < len(views[0].opens)


def test_repeats_are_named_with_their_number():
    titles = [view.title for view in layout_views(chain(400))]
    assert titles[:2] == ["whole recording", "sin x 400"]


def test_the_inside_has_only_the_lanes_in_which_something_stands():
    build = Builder()
    for _ in range(6):
        y = build.tensor("x", leaf=True)
        for _ in range(60):
            y = build.op("sin", y)
        build.backward(y)
    views = layout_views(build.recording())
    assert len(views[0].layout.lanes) == 7
    inner = [view for view in views if view.parent == 0]
    assert all(len(view.layout.lanes) <= 3 for view in inner)
    lane = inner[-1].layout.lanes[-1]
    assert lane.x == inner[-1].layout.lanes[0].width + 24


def test_a_fold_over_several_training_steps_whose_leaves_stand_outside_is_laid_out():
    build = Builder()
    w, x = build.parameter("w"), build.tensor("x")
    for _ in range(120):
        build.backward(build.op("sum", build.op("mul", x, w)))
    views = layout_views(build.recording())
    assert len(views) > 1
    for view in views:
        assert overlaps(view.layout) == []


def test_an_empty_recording_is_one_empty_view():
    (view,) = layout_views(Recording())
    assert view.layout.nodes == ()


def test_one_call_with_very_many_nodes_is_drawn_as_it_is():
    build = Builder()
    y = build.op("custom", build.tensor("x", leaf=True), extra_nodes=400)
    build.backward(y)
    views = layout_views(build.recording())
    assert {node.id for node in build.recording().nodes} == set(
        own_boxes([view.layout for view in views], "nodes")
    )


@given(programs(), st.sampled_from([300, 8, 2]))
@settings(max_examples=60, deadline=None)
def test_any_program_opens_down_to_all_of_it(recording, max_nodes):
    views = layout_views(recording, max_nodes=max_nodes)
    whole = layout_graph(recording, max_nodes=None)
    for what in ("ops", "nodes"):
        shown = own_boxes([view.layout for view in views], what)
        assert set(shown) == set(own_boxes([whole], what))
    for view in views:
        assert overlaps(view.layout) == crossed_boxes(view.layout) == []
