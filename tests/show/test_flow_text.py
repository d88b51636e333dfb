import math

import pytest

from autograd_lab.recording import NodeId, PassId
from autograd_lab.replay import GradientFlow
from autograd_lab.show.flow_text import flow_headline, flow_table, flow_text, trend
from tests.show import flows


def through(*rms, module="fc{}", name="AddmmBackward0"):
    """A flow along nodes that receive these rms; its layers are the first and the last."""
    rows = tuple(
        flows.node(at, here, after, module=module.format(at) if module else None, name=name)
        for at, (here, after) in enumerate(zip(rms, (*rms[1:], rms[-1]), strict=True))
    )
    path = tuple(row.node for row in rows)
    return GradientFlow(
        pass_id=PassId(1),
        rows=rows,
        parameters=(flows.leaf(0, "fc0.weight", 0.25),),
        path=path,
        layers=(path[0], path[-1]) if len(path) > 1 else path,
        product=rms[-1] / rms[0] if len(path) > 1 and rms[0] else None,
    )


@pytest.mark.parametrize(
    ("rms", "words"),
    [
        ((1.0, 0.1), "gradient shrinks 1.0 decades from fc0 to fc1 (rms 1 to 0.1)"),
        ((1.0, 100.0), "gradient grows 2.0 decades from fc0 to fc1 (rms 1 to 100)"),
        ((1.0, 0.9), "gradient keeps its size from fc0 to fc1 (rms 1 to 0.9)"),
        (
            (1.0, 0.01, 1.0),
            "gradient keeps its size from fc0 to fc2, lower between "
            "(rms 1 to 1; lowest 0.01 at fc1)",
        ),
        (
            (1.0, 50.0, 0.01, 1.0),
            "gradient keeps its size from fc0 to fc3, lower and higher between "
            "(rms 1 to 1; lowest 0.01 at fc2; highest 50 at fc1)",
        ),
        ((1.0, 0.5, 0.0), "gradient is exactly 0 from AddmmBackward0 in fc1 on"),
        ((1.0, math.nan, 1.0), "gradient is NaN or Inf from AddmmBackward0 in fc0 on"),
        ((1.0,), "largest gradient of a leaf is that of fc0.weight, rms 0.25"),
    ],
)
def test_the_headline_says_which_two_nodes_are_compared_and_what_lies_between(rms, words):
    assert flow_headline(through(*rms)).endswith(f", 1 leaf: {words}")


def test_modules_that_are_numbers_are_said_to_be_modules():
    assert "from module 0 to module 1" in trend(through(1.0, 0.1, module="{}"))


def test_nodes_of_one_name_are_told_apart_by_their_row():
    assert "from AddmmBackward0, #1 to AddmmBackward0, #2" in trend(through(1.0, 0.1, module=None))


def test_a_trend_fits_above_a_figure():
    long = "model.encoder.layers.{}.self_attention.out_proj"
    assert len(trend(through(1.0, 1e-9, 1e9, 1.0, module=long))) <= 105


def test_gain_follows_from_the_two_columns_beside_it():
    table = flow_table(through(1.0, 0.5, 0.125))
    received, passed_on, gain = (
        [row[[column.title for column in table.columns].index(title)] for row in table.rows]
        for title in ("rms received", "rms passed on", "gain")
    )
    assert [float(b) / float(a) for a, b in zip(received, passed_on, strict=True)] == [
        float(one) for one in gain
    ]
    assert "gain = rms passed on / rms received" in flow_text(through(1.0, 0.5))


def test_a_flow_without_nodes_has_no_legend_of_gains():
    assert "gain" not in flow_text(GradientFlow(pass_id=PassId(1), path=(NodeId(0),)[:0]))
