from dataclasses import replace

import pytest

from autograd_lab.show import to_html
from tests.show import recordings

pytestmark = pytest.mark.browser

# Every piece of text: its size, and its contrast to the nearest painted area below it. The Stepper
# draws itself later and has tests of its own.
TEXTS = """() => {
  const rgb = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const found = [];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || ['STYLE', 'TITLE', 'title', 'style'].includes(element.tagName)) continue;
    if (element.closest('.al-stepper')) continue;
    const style = getComputedStyle(element), svg = element.closest('svg');
    let area = null;
    if (svg) {
      const box = element.closest('g')?.querySelector('rect.b');
      area = getComputedStyle(box || svg.querySelector('rect.lane')).fill;
    } else {
      for (let e = element; e && !area; e = e.parentElement) {
        const colour = getComputedStyle(e).backgroundColor;
        if ((rgb(colour)[3] ?? 1) > 0) area = colour;
      }
    }
    const ink = light(rgb(svg ? style.fill : style.color)), paper = light(rgb(area));
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    const size = parseFloat(style.fontSize);
    found.push({text: element.textContent.slice(0, 40), size, contrast});
  }
  return found;
}"""
WIDTHS = "() => [document.documentElement.scrollWidth, window.innerWidth]"
UNNAMED = """() => [...document.querySelectorAll('[tabindex],[role=region],nav,img,svg,section')]
  .filter(e => !e.closest('[aria-hidden=true]') && !(e.tagName === 'BUTTON' && e.textContent))
  .filter(e => !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.alt))
  .map(e => e.outerHTML.slice(0, 80))"""
SPILLING = """() => [...document.querySelectorAll('g > text.s, g > text.l')].filter(text => {
  const box = text.parentElement.querySelector('rect.b:last-of-type').getBoundingClientRect();
  const words = text.getBoundingClientRect();
  return words.left < box.left - 0.5 || words.right > box.right + 0.5;
}).map(text => text.textContent)"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    shown = {**recordings.ALL, "long lines": with_long_lines()}
    return {name: to_html(one, folder / f"{name}.html") for name, one in shown.items()}


def with_long_lines():
    scalar = recordings.scalar()
    (text,) = scalar.sources
    first, second, third = text.lines
    lines = (first, f"        {second}  # {'a remark that goes on ' * 10}", third)
    return replace(scalar, sources=(replace(text, lines=lines),))


@pytest.mark.parametrize("name", list(recordings.ALL))
def test_nothing_leaves_the_machine_and_nothing_fails(open_page, pages, name):
    _, wrong = open_page(pages[name])
    assert wrong == []


@pytest.mark.parametrize("width", [400, 1024, 1920])
@pytest.mark.parametrize("name", list(recordings.ALL))
def test_the_body_never_scrolls_sideways(open_page, pages, name, width):
    page, _ = open_page(pages[name], width=width)
    needed, there = page.evaluate(WIDTHS)
    assert needed <= there


@pytest.mark.parametrize("width", [400, 1024])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["problems", "nan", "failed"])
def test_all_words_are_readable(open_page, pages, name, theme, width):
    page, _ = open_page(pages[name], theme=theme, width=width)
    texts = page.evaluate(TEXTS)
    assert len(texts) > 80
    assert [one for one in texts if one["contrast"] < 4.5] == []
    assert [one for one in texts if one["size"] < 12] == []


@pytest.mark.parametrize(("width", "is_wider"), [(400, True), (1024, False)])
def test_the_graph_is_never_shrunk_and_says_where_to_scroll(open_page, pages, width, is_wider):
    page, _ = open_page(pages["scalar"], width=width)
    scale = page.evaluate(
        "() => { const s = document.querySelector('svg.al-graph');"
        " return s.getBoundingClientRect().width / s.viewBox.baseVal.width }"
    )
    assert 0.99 <= scale <= 1.26
    assert page.locator("#graph .sideways").is_visible() == is_wider
    pane = page.evaluate(
        "() => { const p = document.querySelector('.pane'); return [p.scrollWidth, p.clientWidth] }"
    )
    assert (pane[0] > pane[1]) == is_wider


@pytest.mark.parametrize("width", [400, 1024, 1400])
def test_no_source_line_is_cut(open_page, pages, width):
    page, _ = open_page(pages["long lines"], width=width)
    cut = page.evaluate(
        "() => [...document.querySelectorAll('.code, .code pre')]"
        ".filter(e => e.scrollWidth > e.clientWidth).length"
    )
    assert cut == 0
    line, mark = (
        page.locator(f".code tr.called {part}").first.bounding_box() for part in ("pre", ".mark")
    )
    assert line["x"] + line["width"] <= mark["x"] or line["y"] + line["height"] <= mark["y"]


@pytest.mark.parametrize("name", ["scalar", "nan", "chain"])
def test_labels_stay_inside_their_boxes(open_page, pages, name):
    page, _ = open_page(pages[name])
    assert page.evaluate(SPILLING) == []


def test_what_can_be_reached_has_a_name(open_page, pages):
    page, _ = open_page(pages["problems"])
    assert page.evaluate(UNNAMED) == []


def test_the_skip_link_is_the_first_stop_and_shows_itself(open_page, pages):
    page, _ = open_page(pages["scalar"])
    page.keyboard.press("Tab")
    link = page.locator(":focus")
    assert link.inner_text() == "Skip to the content"
    assert link.bounding_box()["x"] >= 0


def test_the_figure_follows_the_theme(open_page, pages):
    shown = [
        open_page(pages["scalar"], theme=theme)[0].locator("img.picture").screenshot()
        for theme in ("light", "dark")
    ]
    assert shown[0] != shown[1]


def test_paper_is_always_light(open_page, pages):
    page, _ = open_page(pages["scalar"], theme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert (
        page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)"
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["problems", "failed", "chain", "empty"])
def test_axe_finds_nothing(open_page, pages, name, theme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page, _ = open_page(pages[name], theme=theme)
    page.wait_for_selector("[data-painted]", state="attached")
    found = axe.run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


def test_the_stepper_on_the_page_goes_to_the_last_step(open_page, pages):
    page, wrong = open_page(pages["scalar"])
    stepper = page.get_by_role("group", name="Autograd stepper")
    stepper.focus()
    for _ in range(11):
        page.keyboard.press("ArrowRight")
    assert stepper.locator(".al-place").inner_text() == "11 / 11"
    assert wrong == []


def test_the_style_of_the_page_leaves_the_stepper_alone(open_page, pages):
    page, _ = open_page(pages["scalar"])
    panes, graph, below = (
        page.locator(f".al-stepper .{name}").bounding_box()
        for name in ("al-main", "al-graph", "al-below")
    )
    assert graph["y"] - panes["y"] <= 1  # its border
    assert panes["y"] + panes["height"] - below["y"] - below["height"] <= 1
