"""The Stepper in JupyterLab: keys in command mode, what the kernel knows, a reload, the theme."""

import pytest

from tests.browser import lab

sync_api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("jupyterlab")
expect = sync_api.expect
pytestmark = [pytest.mark.browser, pytest.mark.slow]

SHOW = """from autograd_lab.show import Stepper
from tests.show import recordings
w = Stepper(recordings.scalar())
w"""
ASK = "print(int(w.step), repr(w.fault))"
GO = "w.go(2)"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    notebooks, folder = (tmp_path_factory.mktemp(name) for name in ("notebooks", "server"))
    lab.write_notebook(notebooks / "stepper.ipynb", SHOW, ASK, GO)
    with lab.jupyter_lab(folder, notebooks) as address_of:
        yield address_of("stepper.ipynb")


@pytest.fixture
def tab(browser, address):
    """A window of 1024 by 768 with the file browser open, and the cells run."""
    context = browser.new_context(viewport={"width": 1024, "height": 768})
    tab = context.new_page()
    wrong = []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    tab.on("request", lambda sent: wrong.append(sent.url) if "127.0.0.1" not in sent.url else None)
    lab.open_notebook(tab, address)
    lab.run_all(tab)
    yield tab
    context.close()
    assert [one for one in wrong if not one.startswith(("data:", "blob:"))] == []


def test_keys_step_in_command_mode_and_kernel_and_view_agree(tab):
    view = tab.get_by_role("group", name="Autograd stepper")
    expect(view.locator(".al-place")).to_have_text("2 / 11")  # the last cell went there
    cells = tab.locator(".jp-Cell").count()
    view.focus()
    for key in ("Home", "ArrowRight", "n", "p", "o", "ArrowRight"):
        tab.keyboard.press(key)
    expect(view.locator(".al-place")).to_have_text("4 / 11")
    assert lab.run_cell(tab, 1) == "4 ''"
    assert tab.locator(".jp-Cell").count() == cells
    root = view.bounding_box()
    panel = tab.locator(".jp-NotebookPanel").bounding_box()
    assert root["x"] + root["width"] <= panel["x"] + panel["width"]


def test_larger_text_is_larger_in_the_source_and_the_list_of_keys_too(tab):
    view = tab.get_by_role("group", name="Autograd stepper")
    view.focus()

    def size(selector):
        tab.wait_for_timeout(50)
        found = view.locator(selector).first
        return found.evaluate("element => parseFloat(getComputedStyle(element).fontSize)")

    tab.keyboard.press("?")
    usual = {part: size(part) for part in (".al-line code", ".al-help kbd", ".al-button")}
    tab.keyboard.press("Escape")
    for _ in range(3):
        tab.keyboard.press("+")
    tab.keyboard.press("?")
    assert {part: size(part) / usual[part] for part in usual} == pytest.approx(
        dict.fromkeys(usual, 1.5), rel=0.03
    )


def test_a_cell_that_was_just_run_shows_the_whole_view_and_leaves_the_focus_alone(tab):
    tab.locator(".jp-CodeCell").nth(0).locator(".jp-InputArea-editor").click()
    tab.keyboard.press("Shift+Enter")
    tab.wait_for_function(lab.IDLE)
    view = tab.get_by_role("group", name="Autograd stepper")
    expect(view.locator(".al-place")).to_have_text("0 / 11")
    window = tab.locator(".jp-WindowedPanel-outer").bounding_box()
    tab.wait_for_function(
        "([top, bottom]) => { const { y, height } = document.querySelector('.al-stepper')"
        ".getBoundingClientRect(); return y >= top - 1 && y + height <= bottom + 1; }",
        arg=[window["y"], window["y"] + window["height"]],
    )
    assert tab.evaluate("() => document.activeElement.closest('.al-stepper') === null")


def test_a_reload_keeps_the_step_and_the_theme_is_followed(tab):
    view = tab.get_by_role("group", name="Autograd stepper")
    view.focus()
    tab.keyboard.press("End")
    expect(view.locator(".al-place")).to_have_text("11 / 11")
    assert lab.run_cell(tab, 1) == "11 ''"
    lab.reload_notebook(tab)
    expect(view.locator(".al-place")).to_have_text("11 / 11", timeout=20_000)
    expect(view).to_have_attribute("data-theme", "light")
    tab.evaluate(
        "() => window.jupyterapp.commands.execute("
        "'apputils:change-theme', {theme: 'JupyterLab Dark'})"
    )
    expect(view).to_have_attribute("data-theme", "dark")
