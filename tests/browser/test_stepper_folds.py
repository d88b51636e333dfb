"""Large graphs in the Stepper's view: folds open and close, and only what is in sight is drawn."""

import pytest

from tests.browser.stepper_pages import stepper_page
from tests.show import recordings

sync_api = pytest.importorskip("playwright.sync_api")
expect = sync_api.expect
pytestmark = pytest.mark.browser


@pytest.fixture
def chain(open_stepper):
    """The view of 400 calls, folded, with the focus inside."""
    tab = open_stepper(stepper_page(recordings.chain(400)))
    tab.locator(".al-stepper").focus()
    return tab


def test_a_fold_says_how_much_of_it_is_done(chain):
    chain.evaluate("() => model.set('step', 12)")
    expect(chain.locator(".al-op .al-second").first).to_have_text("12 of 400")


def test_a_click_opens_a_fold_and_the_path_leads_back(chain):
    whole = chain.locator(".al-box").count()
    chain.locator(".al-box.al-fold").first.click()
    path = chain.get_by_role("navigation", name="Folds that are open")
    expect(path).to_contain_text("Whole graph")
    path.get_by_role("button", name="Whole graph").click()
    expect(path).to_be_hidden()
    assert chain.locator(".al-box").count() == whole


def test_keys_open_a_fold_and_leave_it(chain):
    chain.keyboard.press("ArrowRight")
    chain.keyboard.press("o")
    path = chain.get_by_role("navigation", name="Folds that are open")
    expect(path).to_be_visible()
    chain.keyboard.press("Escape")
    expect(path).to_be_hidden()


def test_inside_a_fold_the_way_to_a_step_elsewhere_is_offered(chain):
    chain.keyboard.press("ArrowRight")
    while chain.locator(".al-box.al-current.al-fold").count():
        chain.keyboard.press("o")
    chain.evaluate("() => model.set('step', 300)")
    there = chain.get_by_role("button", name="Step 300 is elsewhere: show it")
    there.click()
    expect(chain.locator(".al-box.al-current").first).to_be_visible()


def test_find_shows_a_box_without_a_step(chain):
    chain.get_by_role("combobox", name="Name of a node").fill("SinBack")
    chain.get_by_role("button", name="Find", exact=True).click()
    expect(chain.locator(".al-picked .al-first")).to_contain_text("SinBackward0")
    assert chain.evaluate("() => host.dataset.step") == "0"


def test_only_what_is_in_sight_is_in_the_page(open_stepper):
    tab = open_stepper(stepper_page(recordings.chain(120)))
    boxes = tab.locator(".al-box")
    assert 0 < boxes.count() < 80
    tab.evaluate("() => model.set('step', 125)")
    expect(tab.locator(".al-box.al-current")).to_be_in_viewport()
    assert boxes.count() < 80
