"""The headless browser of `tests/browser`, for the lessons' pages."""

from tests.browser.conftest import browser, open_page

__all__ = ["browser", "open_page"]
