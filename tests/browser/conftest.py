"""One tab for the tests of the Stepper's view."""

import pytest

from tests.chromium import leaves


@pytest.fixture(scope="session")
def stepper_tab(browser):
    """One tab for all tests of the Stepper: a new one takes two seconds on a busy machine."""
    context = browser.new_context()
    tab = context.new_page()
    tab.wrong = []
    tab.on("pageerror", lambda error: tab.wrong.append(f"error: {error}"))
    tab.on("console", lambda said: tab.wrong.append(said.text) if said.type == "error" else None)
    tab.on("request", lambda sent: tab.wrong.append(sent.url) if leaves(sent.url) else None)
    yield tab
    context.close()


@pytest.fixture
def open_stepper(stepper_tab, tmp_path):
    """A function that shows a page of `stepper_pages` and returns the tab, painted once.

    Errors and requests that leave fail the test.
    """

    def show(html, *, width=1024, height=768, theme="light"):
        path = tmp_path / "stepper.html"
        path.write_text(html, encoding="utf-8")
        stepper_tab.set_viewport_size({"width": width, "height": height})
        stepper_tab.emulate_media(color_scheme=theme, reduced_motion="reduce")
        stepper_tab.goto(path.as_uri())
        stepper_tab.wait_for_function(
            "() => window.isRendered"
            " && (host.dataset.painted || host.querySelector('[role=alert]'))"
        )
        return stepper_tab

    stepper_tab.wrong.clear()
    yield show
    assert stepper_tab.wrong == []
    stepper_tab.goto("about:blank")
