"""The Stepper's view with what is missing, damaged, hostile or shown many times."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.browser.stepper_pages import pack_as_dict, page_of_pack, stepper_page
from tests.show import recordings

sync_api = pytest.importorskip("playwright.sync_api")
expect = sync_api.expect
pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]


def test_a_browser_that_cannot_unpack_is_told_which_can(open_stepper):
    tab = open_stepper(
        stepper_page(recordings.scalar(), before="delete globalThis.DecompressionStream;")
    )
    expect(tab.get_by_role("alert")).to_contain_text("no DecompressionStream. Use Chrome")
    assert "DecompressionStream" in tab.evaluate("() => model.get('fault')")


@pytest.mark.parametrize("pack", [b"", b"no zlib"], ids=["empty", "damaged"])
def test_a_pack_that_cannot_be_read_is_words(open_stepper, pack):
    tab = open_stepper(page_of_pack(pack))
    expect(tab.get_by_role("alert")).to_contain_text("Run its cell again.")


def test_what_python_revealed_before_the_view_was_shown_is_revealed(open_stepper):
    pack = {**pack_as_dict(recordings.scalar()), "hide": "values"}
    tab = open_stepper(page_of_pack(pack, hide="", step=1))
    expect(tab.locator(".al-number").first).to_be_visible()


def test_an_empty_recording_says_so_in_the_place_of_the_picture(open_stepper):
    tab = open_stepper(stepper_page(recordings.Recording()))
    expect(tab.locator(".al-instead")).to_contain_text("nothing to draw")
    tab.locator(".al-stepper").focus()
    for key in ("ArrowRight", "End", "n", "p", "o", " ", "Escape"):
        tab.keyboard.press(key)
    assert tab.evaluate("() => host.dataset.step") == "0"


def test_a_recording_that_is_too_large_says_what_to_do(open_stepper):
    pack = {**pack_as_dict(recordings.Recording()), "empty": "Record one training step."}
    tab = open_stepper(page_of_pack(pack))
    expect(tab.locator(".al-instead")).to_have_text("Record one training step.")


@pytest.mark.parametrize("name", ["hostile", "unprintable"])
def test_names_of_the_program_are_text_and_nothing_else(open_stepper, name):
    tab = open_stepper(stepper_page(recordings.ALL[name]))
    tab.locator(".al-stepper").focus()
    for _ in range(9):
        tab.keyboard.press("ArrowRight")
    assert tab.locator(".al-stepper script, .al-stepper img").count() == 0
    if name == "hostile":
        expect(tab.locator(".al-status")).to_contain_text("<script>alert")


def test_an_error_in_the_view_is_shown_and_told_to_python(open_stepper):
    pack = pack_as_dict(recordings.scalar())
    pack["steps"]["panels"][2] = [["outputs", [99999], None], 7]
    tab = open_stepper(page_of_pack(pack))
    tab.evaluate("() => model.set('step', 2)")
    expect(tab.locator(".al-message")).to_contain_text("The view has an error: TypeError")
    assert "TypeError" in tab.evaluate("() => model.get('fault')")


def test_the_device_is_named_when_it_is_not_the_cpu(open_stepper):
    tab = open_stepper(page_of_pack({**pack_as_dict(recordings.scalar()), "device": "cuda:0"}))
    expect(tab.locator(".al-device")).to_have_text("on cuda:0")


def test_two_views_of_one_model_move_together(open_stepper):
    tab = open_stepper(stepper_page(recordings.scalar()))
    tab.evaluate(
        "() => { const el = document.body.appendChild(document.createElement('div'));"
        " return view.render({ model, el }) && null }"
    )
    expect(tab.locator(".al-stepper")).to_have_count(2)
    tab.get_by_role("button", name="Step", exact=True).first.click()
    expect(tab.locator(".al-place").last).to_have_text("1 / 11")


def test_fifty_views_opened_and_closed_leave_nothing(open_stepper):
    tab = open_stepper(stepper_page(recordings.scalar()))
    session = tab.context.new_cdp_session(tab)
    counted = []
    for _ in range(2):
        tab.evaluate("""async () => {
          for (let times = 0; times < 25; times++) {
            const el = document.body.appendChild(document.createElement('div'));
            const close = await view.render({ model, el });
            await new Promise(requestAnimationFrame);
            model.set('step', 1 + times % 9);
            el.querySelector('button[aria-pressed]').click();
            close();
            el.remove();
          }
        }""")
        session.send("HeapProfiler.collectGarbage")
        counters = session.send("Memory.getDOMCounters")
        listening = tab.evaluate("() => [...heard.values()].flat().length")
        counted.append((counters["jsEventListeners"], counters["nodes"], listening))
    session.detach()
    (listeners, nodes, heard), later = counted
    assert heard == later[2] == 4
    assert later[0] <= listeners
    assert later[1] <= nodes + 50


def test_the_script_keeps_its_types():
    tsc = shutil.which("tsc")
    if tsc is None:
        assert not (os.environ.get("CI") and shutil.which("npm")), (
            "CI has npm, so it has to have tsc"
        )
        pytest.skip("no TypeScript on this machine: npm install --global typescript")
    checked = subprocess.run(
        [tsc, "--project", str(ROOT / "jsconfig.json")], capture_output=True, text=True, check=False
    )
    assert checked.stdout == ""
