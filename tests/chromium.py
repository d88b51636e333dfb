"""A headless Chromium for the tests of what people see: the system's, one for all tests.

Playwright's sync API can be started once in a process, so no other room starts its own.
"""

import os
import shutil

import pytest

__all__ = ["browser", "leaves", "open_page"]

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


@pytest.fixture(scope="session")
def browser():
    """The browser; without one the tests are skipped, but not where CI says that it runs."""
    executable = (
        os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    )
    sync_api = pytest.importorskip("playwright.sync_api")
    if executable is None:
        if os.environ.get("CI"):
            pytest.fail("CI is set, but there is no chromium: apt-get install chromium")
        pytest.skip("no chromium on this machine: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, headless=True, args=ARGUMENTS
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """A function that opens a file and returns (page, errors and requests that leave)."""
    contexts = []

    def open_file(path, width=1024, height=768, theme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme
        )
        contexts.append(context)
        page = context.new_page()
        wrong = []
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("request", lambda sent: wrong.append(sent.url) if leaves(sent.url) else None)
        page.goto(path.resolve().as_uri())
        return page, wrong

    yield open_file
    for context in contexts:
        context.close()


def leaves(url):
    """The request goes to a network."""
    return not url.startswith(("file:", "data:", "blob:", "about:"))
