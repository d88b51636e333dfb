"""The exported pages: nothing is fetched, the Stepper lives in them, the index leads to all."""

import re
from html.parser import HTMLParser

import pytest

from autograd_lab import cli, commands
from tests.notebooks.lessons import LESSONS

# What a browser fetches by itself; a link that a reader may click is none of it.
FETCHED = {
    "a file": r"""(?:src|srcset|poster|data|action)\s*=\s*["']?\s*(?:https?:)?//""",
    "a linked style or font": r"""<link[^>]*href\s*=\s*["']?\s*(?:https?:)?//""",
    "inside a style": r"""(?:url\(\s*|@import\s+)["']?\s*(?:https?:)?//""",
    "a module": r"""(?:\bfrom|\bimport\s*\(?|\bfetch\s*\()\s*["'`]\s*(?:https?:)?//""",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Every lesson and the demo, trained for a few steps only."""
    place = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commands.demos, "STEPS", 6)
        assert cli.main(["pages", str(place)]) == 0
    return place


def pages(folder):
    return sorted(folder.rglob("*.html"))


class Frames(HTMLParser):
    """Collects the pages that a page's frames hold."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        if tag == "iframe":
            self.found.append(dict(attributes)["srcdoc"])


def frames(page):
    parser = Frames()
    parser.feed(page.read_text("utf-8"))
    return parser.found


def all_text(page):
    """The page and the pages that its frames hold."""
    return "\n".join([page.read_text("utf-8"), *frames(page)])


def test_there_is_a_page_for_each_lesson_and_each_recording(folder):
    names = {page.relative_to(folder).as_posix() for page in pages(folder)}
    recordings = {f"demo/{model}/replay.html" for model in ("convnet", "transformer")}
    assert names == {"index.html", *recordings, *(f"{path.stem}.html" for path in LESSONS)}


@pytest.mark.parametrize("pattern", FETCHED.values(), ids=FETCHED)
def test_no_page_fetches_anything(folder, pattern):
    for page in pages(folder):
        assert re.findall(f".{{0,40}}{pattern}.{{0,60}}", all_text(page)) == [], page.name


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://a.b/c.js">',
        "<img src=//a.b/c.png>",
        '<link rel="stylesheet" href="https://a.b/c.css">',
        "@import 'https://a.b/c.css'",
        "background: url(https://a.b/c.png)",
        'import x from "https://a.b/c.js"',
        'await import("https://a.b/c.js")',
    ],
)
def test_what_is_fetched_would_be_noticed(text):
    assert any(re.search(pattern, text) for pattern in FETCHED.values())


@pytest.mark.parametrize(("lesson", "count"), [("00_start", 3), ("02_backprop_by_hand", 3)])
def test_the_stepper_lives_in_the_pages_of_lessons(folder, lesson, count):
    found = frames(folder / f"{lesson}.html")
    assert len(found) == count
    assert all('<script type="module">' in page for page in found)


def test_the_index_leads_to_every_page(folder):
    links = re.findall(r'<a href="([^"]+)">([^<]+)</a>', (folder / "index.html").read_text("utf-8"))
    places = {page.relative_to(folder).as_posix() for page in pages(folder)} - {"index.html"}
    assert {place for place, _ in links} == places
    assert ("00_start.html", "00 Start here") in links


def test_a_page_says_its_title_and_holds_no_widget_without_a_view(folder):
    text = (folder / "02_backprop_by_hand.html").read_text("utf-8")
    assert "<title>02 Backprop by hand, then stepped</title>" in text
    assert "widget-view+json" not in text


@pytest.mark.parametrize("name", ["index", *(path.stem for path in LESSONS)])
def test_a_page_says_that_it_is_one(folder, name):
    text = (folder / f"{name}.html").read_text("utf-8")
    assert "the Steppers work, the cells don't run. <code>make lab</code> or Binder" in text


class Open(HTMLParser):
    """Collects the text that stands outside every fold."""

    def __init__(self):
        super().__init__()
        self.depth, self.text = 0, []

    def handle_starttag(self, tag, attributes):
        self.depth += tag == "details"

    def handle_endtag(self, tag):
        self.depth -= tag == "details"

    def handle_data(self, data):
        if not self.depth:
            self.text.append(data)


@pytest.mark.parametrize("lesson", [path.stem for path in LESSONS])
def test_no_answer_stands_open(folder, lesson):
    parser = Open()
    parser.feed((folder / f"{lesson}.html").read_text("utf-8"))
    text = "".join(parser.text)
    assert parser.depth == 0
    assert "What you can explain now" in text
    assert not re.findall(r".{40}(?:no guess yet; it is|\breveal\().{20}", text)


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("lesson", [path.stem for path in LESSONS])
def test_all_text_in_columns_is_in_a_font_of_one_width(open_page, folder, lesson, theme):
    page, _ = open_page(folder / f"{lesson}.html", theme=theme)
    fonts = page.evaluate(
        "[...document.querySelectorAll('pre')].map(e => getComputedStyle(e).fontFamily)"
    )
    assert len(fonts) > 10
    assert not [font for font in fonts if not font.endswith("monospace")]


@pytest.mark.browser
def test_a_stepper_in_a_fold_lives_when_it_is_opened(open_page, folder):
    page, wrong = open_page(folder / "02_backprop_by_hand.html")
    fold = page.locator("details.al-fold:has(iframe)").last
    fold.locator("> summary").click()
    stepper = fold.locator("iframe").content_frame.locator(".al-stepper")
    stepper.wait_for()
    assert "Step 8 of 10" in stepper.inner_text()
    widths = "svgs => svgs.map(svg => svg.getBoundingClientRect().width)"
    assert max(stepper.locator("svg").evaluate_all(widths)) > 100  # the graph, beside icons
    assert wrong == []


BRIGHTNESS = """selector => {
  const style = getComputedStyle(document.querySelector(selector));
  const green = colour => Number(colour.match(/\\d+/g)[1]);
  return [green(style.backgroundColor), green(style.color)];
}"""


@pytest.mark.browser
@pytest.mark.parametrize(("theme", "is_dark"), [("light", False), ("dark", True)])
@pytest.mark.parametrize("lesson", [path.stem for path in LESSONS])
def test_a_page_follows_the_readers_theme_and_its_text_has_contrast(
    open_page, folder, lesson, theme, is_dark
):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page, wrong = open_page(folder / f"{lesson}.html", theme=theme)
    assert wrong == []
    background, text = page.evaluate(BRIGHTNESS, ".jp-Notebook")
    assert (background < text) == is_dark
    rules = {"runOnly": ["color-contrast"]}
    assert axe.run(page, options=rules).response["violations"] == []


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_stepper_in_a_page_follows_the_theme_too(open_page, folder, theme):
    page, wrong = open_page(folder / "00_start.html", theme=theme)
    stepper = page.frames[1].locator(".al-stepper").first
    stepper.wait_for()
    background = stepper.evaluate("e => getComputedStyle(e).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 27)"}[theme]
    assert wrong == []
