import base64
import math
import re

import pytest

from autograd_lab.show import flow_figure
from autograd_lab.show.palette import DARK
from tests.show import flows


@pytest.mark.parametrize("name", list(flows.AWKWARD))
@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
def test_a_figure_never_raises(name, theme):
    assert flow_figure(flows.AWKWARD[name], theme=theme).png(30).startswith(b"\x89PNG")


def test_the_title_is_the_product_of_the_gains():
    figure = flow_figure(flows.steady(10, 0.3))
    assert (
        figure.figure.get_suptitle()
        == "Gradient shrinks 5.2 decades from layers.9.act to layers.0.linear"
    )


def test_the_text_twin_has_axes_scale_and_every_drawn_value():
    text = repr(flow_figure(flows.all_states()))
    assert "log scale" in text
    assert "order of execution" in text
    for word in ("0.01", "tied.weight", "NaN", "U: unused", "F: frozen", "0: reached"):
        assert word in text


def test_states_are_told_by_letter_and_hatch():
    axes = flow_figure(flows.all_states()).figure.axes[2]
    letters = {text.get_text() for text in axes.texts}
    assert {"0", "U", "F", "N"} <= letters
    assert len({bar.get_hatch() for bar in axes.patches}) >= 4


def test_a_node_that_returned_nan_is_marked_on_the_left():
    axes = flow_figure(flows.all_states()).figure.axes[0]
    assert [text.get_text() for text in axes.texts].count("N") == 3


@pytest.mark.parametrize("depth", [3, 40, 500])
def test_tick_labels_stay_few_and_large(depth):
    figure = flow_figure(flows.steady(depth, 0.9)).figure
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            labels = axis.get_ticklabels()
            assert len(labels) <= 26
            assert all(label.get_fontsize() >= 10 for label in labels)


def test_gradients_of_any_size_fit_the_axis():
    low, high = flow_figure(flows.AWKWARD["tiny-and-huge"]).figure.axes[0].get_ylim()
    assert math.isfinite(low)
    assert low < -308
    assert high >= 308


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_saving_twice_gives_the_same_bytes(tmp_path, suffix):
    first = flow_figure(flows.steady(4, 0.5)).save(tmp_path / f"one{suffix}")
    second = flow_figure(flows.steady(4, 0.5)).save(tmp_path / f"two{suffix}")
    assert first.read_bytes() == second.read_bytes()


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"saved as \.png or \.svg"):
        flow_figure(flows.steady(2, 0.5)).save(tmp_path / "flow.gif")


def test_the_table_is_that_of_the_flow():
    flow = flows.steady(3, 0.5)
    assert flow_figure(flow).table() == flow.table()


def test_a_notebook_gets_a_picture_with_alt_text():
    data, metadata = flow_figure(flows.steady(10, 0.3))._repr_mimebundle_()
    assert set(data) == {"text/plain", "text/html", "image/png"}
    assert "shrinks 5.2 decades" in data["text/html"]
    assert "shrinks 5.2 decades" in metadata["image/png"]["alt"]


def image_of(figure):
    return base64.b64decode(re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', figure.img())[1])


@pytest.mark.parametrize("name", ["all-states", "tiny-and-huge"])
def test_every_colour_of_the_picture_follows_the_readers_theme(name):
    svg = image_of(flow_figure(flows.AWKWARD[name])).decode()
    drawn = svg.replace(re.search("<style>.*?</style>", svg)[0], "")
    assert re.findall("#[0-9a-f]{6}", drawn) == []
    assert f"--al-text:{DARK.text}" in svg


def test_a_picture_of_one_theme_keeps_it():
    svg = image_of(flow_figure(flows.all_states(), theme="dark")).decode()
    assert "prefers-color-scheme" not in svg
    assert DARK.background in svg


def test_a_large_figure_has_pixels_for_both_themes_and_stays_small():
    svg = image_of(flow_figure(flows.steady(2000, 0.9)))
    assert svg.count(b"data:image/png") == 2
    assert len(svg) < 600_000
