from autograd_lab.show.grouping import spaced, stretches


def labels(paths, limit):
    return [stretch.label for stretch in stretches(paths, limit)]


def test_the_deepest_names_that_are_few_enough_win():
    paths = [f"blocks.{block}.{part}" for block in range(4) for part in ("attn", "mlp")]
    assert labels(paths, 8) == paths
    assert labels(paths, 5) == ["blocks.0", "blocks.1", "blocks.2", "blocks.3"]


def test_many_layers_of_one_stack_are_joined_with_their_range():
    assert labels([f"layers.{at}" for at in range(100)], 4) == [
        "layers.0 … 24",
        "layers.25 … 49",
        "layers.50 … 74",
        "layers.75 … 99",
    ]


def test_no_axis_gets_more_labels_than_asked_for():
    assert len(labels([f"m{at}" for at in range(1000)], 14)) <= 14


def test_stretches_cover_the_axis():
    cut = stretches(["a", "a", "b", "", "c"], 10)
    assert [(one.start, one.stop) for one in cut] == [(0, 2), (2, 3), (3, 4), (4, 5)]


def test_an_empty_axis_has_no_stretch():
    assert stretches([], 5) == []


def test_labels_without_room_are_dropped_narrow_ones_first():
    cut = stretches(["a"] * 10 + ["b"] + ["c"] * 10, 10)
    assert [one.label for one in spaced(cut, 6)] == ["a", "c"]
