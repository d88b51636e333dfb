import pytest

from autograd_lab.show.palette import THEMES, contrast

ROLES = ["forward", "backward", "leaf", "problem"]


@pytest.mark.parametrize("theme", list(THEMES))
@pytest.mark.parametrize("role", ROLES)
def test_words_are_readable_on_each_area_they_stand_on(theme, role):
    palette = THEMES[theme]
    text = getattr(palette, f"{role}_text")
    for area in (getattr(palette, f"{role}_fill"), palette.background, palette.surface):
        assert contrast(text, area) >= 4.5


@pytest.mark.parametrize("theme", list(THEMES))
@pytest.mark.parametrize("role", [*ROLES, "later"])
def test_outlines_stand_out(theme, role):
    palette = THEMES[theme]
    assert contrast(getattr(palette, f"{role}_stroke"), palette.background) >= 3


@pytest.mark.parametrize("theme", list(THEMES))
def test_quiet_words_and_what_runs_now_are_readable(theme):
    palette = THEMES[theme]
    assert contrast(palette.dim, palette.surface) >= 4.5
    assert contrast(palette.later_text, palette.background) >= 4.5
    assert contrast(palette.on_now, palette.forward_now) >= 4.5
    assert contrast(palette.on_now, palette.backward_now) >= 4.5
    assert contrast(palette.on_now, palette.problem_now) >= 4.5


def test_black_on_white_has_the_largest_contrast():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
