"""The Stepper's view can be read: at every width, in both themes, hidden or not, by axe too."""

import pytest

from tests.browser.stepper_pages import pack_as_dict, page_of_pack, stepper_page
from tests.show import recordings

sync_api = pytest.importorskip("playwright.sync_api")
expect = sync_api.expect
pytestmark = pytest.mark.browser

# Every text that is shown: its size on the screen, and its contrast to what is painted below it.
TEXTS = """() => {
  const probe = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = colour => {
    probe.clearRect(0, 0, 1, 1); probe.fillStyle = colour; probe.fillRect(0, 0, 1, 1);
    return [...probe.getImageData(0, 0, 1, 1).data];
  };
  const light = colour => rgba(colour).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const found = [];
  for (const element of document.querySelectorAll('.al-stepper *')) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || element.closest('title, datalist, option')) continue;
    if (!element.checkVisibility({visibilityProperty: true})) continue;
    const style = getComputedStyle(element), svg = element.closest('.al-svg');
    let area = null, size = parseFloat(style.fontSize);
    if (svg) {
      const box = element.parentElement.querySelector('.al-rect');
      const below = box ?? svg.querySelector('.al-lane');
      area = getComputedStyle(below).fill;
      size *= svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    }
    for (let e = element; e && !area; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (rgba(colour)[3] > 0) area = colour;
    }
    const [ink, paper] = [light(svg ? style.fill : style.color), light(area)];
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    found.push({text: element.textContent.slice(0, 40), size, contrast});
  }
  return found;
}"""
# What stands outside the view's own box and is not in a pane that scrolls.
OUTSIDE = """() => {
  const root = document.querySelector('.al-stepper').getBoundingClientRect();
  return [...document.querySelectorAll('.al-stepper *')]
    .filter(e => e.checkVisibility() && !e.closest('.al-sheet, .al-code, .al-inspector, .al-marks'))
    .filter(e => {
      const r = e.getBoundingClientRect(), [right, bottom] = [root.right + 1, root.bottom + 1];
      return r.width && (r.left < root.left - 1 || r.right > right || r.bottom > bottom);
    })
    .map(e => e.outerHTML.slice(0, 90));
}"""
SPILLING = """() => [...document.querySelectorAll('.al-box text')].filter(text => {
  const box = text.parentElement.querySelector('.al-rect:last-of-type').getBoundingClientRect();
  const words = text.getBoundingClientRect();
  return words.left < box.left - 1 || words.right > box.right + 1;
}).map(text => text.textContent)"""
SIZES = """() => [
  ...[...document.querySelectorAll('.al-status, .al-phase, .al-line, .al-legend')]
    .map(element => parseFloat(getComputedStyle(element).fontSize)),
  document.querySelector('.al-first').getBoundingClientRect().height,
]"""
SHOWN = {"scalar": 9, "problems": 14, "nan": 8, "failed": 7, "chain": 900}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", SHOWN)
def test_all_words_are_readable(open_stepper, name, theme):
    html = stepper_page(recordings.ALL[name], step=SHOWN[name])
    texts = open_stepper(html, theme=theme).evaluate(TEXTS)
    assert len(texts) > 30
    assert [one for one in texts if one["size"] < 11.99] == []
    assert [one for one in texts if one["contrast"] < 4.5] == []


@pytest.mark.parametrize("width", [340, 606, 1024, 1920])  # 606: the view itself is 590 px wide
@pytest.mark.parametrize("name", ["problems", "chain"])
def test_nothing_is_cut_off_and_no_text_is_small(open_stepper, name, width):
    html = stepper_page(recordings.ALL[name], step=SHOWN[name])
    tab = open_stepper(html, width=width)
    assert tab.evaluate(OUTSIDE) == []
    assert [one for one in tab.evaluate(TEXTS) if one["size"] < 11.99] == []


def test_panes_stack_below_900_px(open_stepper):
    tab = open_stepper(stepper_page(recordings.scalar()), width=906)
    beside = "() => ['.al-graph', '.al-side'].map(q => document.querySelector(q).offsetTop)"
    top, lower = tab.evaluate(beside)
    assert lower > top
    tab.set_viewport_size({"width": 1000, "height": 768})
    tab.wait_for_function(f"() => {{ const [a, b] = ({beside})(); return a === b }}")


@pytest.mark.parametrize("name", ["scalar", "nan", "chain", "unprintable", "hostile"])
def test_labels_stay_inside_their_boxes(open_stepper, name):
    tab = open_stepper(stepper_page(recordings.ALL[name], step=9))
    assert tab.evaluate(SPILLING) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["problems", "chain", "failed", "empty"])
def test_axe_finds_nothing(open_stepper, name, theme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    tab = open_stepper(stepper_page(recordings.ALL[name], step=SHOWN.get(name, 0)), theme=theme)
    if name == "problems":
        tab.get_by_role("button", name="? Keys").click()
    rules = {"rules": {"page-has-heading-one": {"enabled": False}}}  # the view is part of a page
    found = axe.run(tab, options=rules).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


def test_the_view_follows_a_switch_of_the_theme(open_stepper):
    tab = open_stepper(stepper_page(recordings.scalar()))
    root = tab.locator(".al-stepper")
    expect(root).to_have_attribute("data-theme", "light")
    tab.emulate_media(color_scheme="dark", reduced_motion="reduce")
    expect(root).to_have_attribute("data-theme", "dark")
    tab.evaluate("() => { document.body.dataset.jpThemeLight = 'true' }")
    expect(root).to_have_attribute("data-theme", "light")


def test_a_heat_map_is_painted_anew_in_the_dark(open_stepper):
    pack = pack_as_dict(recordings.scalar())
    pixels = {"rows": 1, "cols": 3, "data": "gIEA", "scale": "±2", "note": "1 x 3"}
    pack["cards"][pack["steps"]["panels"][4][0][1][0]] = {
        **{"name": "g", "shape": "(3,)", "dtype": "", "lines": []},
        "pixels": pixels,
    }
    tab = open_stepper(page_of_pack(pack, step=4))
    read = (
        "() => [...document.querySelector('canvas').getContext('2d').getImageData(0, 0, 3, 1).data]"
    )
    light = tab.evaluate(read)
    assert light[:4] == [255, 0, 255, 255]  # -128 is NaN or Inf: magenta
    assert light[4:8] == [0, 114, 178, 255]  # -127 is the lower end
    assert light[8:12] == [255, 255, 255, 255]  # 0 is the background
    tab.emulate_media(color_scheme="dark", reduced_motion="reduce")
    expect(tab.locator(".al-stepper")).to_have_attribute("data-theme", "dark")
    assert tab.evaluate(read)[8:12] == [18, 22, 27, 255]


def test_hidden_values_show_as_question_marks_until_revealed(open_stepper):
    tab = open_stepper(stepper_page(recordings.scalar(), hide="values", step=9))
    view = tab.locator(".al-stepper")
    expect(tab.locator(".al-box.al-op .al-second").first).to_have_text("= ?")
    expect(tab.locator(".al-number")).to_have_count(0)
    expect(tab.locator(".al-status")).to_contain_text("x.grad gains ?")
    assert "12" not in tab.locator(".al-svg").text_content()
    tab.get_by_role("button", name="Reveal").click()
    expect(tab.locator(".al-number").first).to_be_visible()
    expect(tab.locator(".al-status")).to_contain_text("x.grad gains 7")
    view.focus()
    tab.keyboard.press("v")
    expect(tab.locator(".al-number")).to_have_count(0)
    tab.evaluate("() => model.set('hide', '')")
    expect(tab.locator(".al-number").first).to_be_visible()
    expect(tab.get_by_role("button", name="Reveal")).to_be_hidden()


def test_text_grows_and_shrinks_but_not_below_the_start(open_stepper):
    tab = open_stepper(stepper_page(recordings.scalar()), width=400)
    usual = tab.evaluate(SIZES)
    tab.locator(".al-stepper").focus()
    tab.keyboard.press("+")
    larger = tab.evaluate(SIZES)
    assert all(after > before for before, after in zip(usual, larger, strict=True))
    tab.keyboard.press("-")
    tab.keyboard.press("-")
    assert tab.evaluate(SIZES) == usual


def test_the_height_is_dragged_and_moved_by_keys(open_stepper):
    tab = open_stepper(stepper_page(recordings.scalar(), height=500))
    root, grip = tab.locator(".al-stepper"), tab.get_by_role("separator", name="Height")
    assert root.bounding_box()["height"] == 500
    where = grip.bounding_box()
    tab.mouse.move(where["x"] + 90, where["y"] + 4)
    tab.mouse.down()
    tab.mouse.move(where["x"] + 90, where["y"] + 84, steps=3)
    tab.mouse.up()
    dragged = root.bounding_box()["height"]
    assert 570 <= dragged <= 590
    grip.focus()
    tab.keyboard.press("ArrowUp")
    assert root.bounding_box()["height"] < dragged


def test_full_screen_fills_the_window_and_comes_back(open_stepper):
    tab = open_stepper(stepper_page(recordings.scalar()))
    root = tab.locator(".al-stepper")
    before = root.bounding_box()
    root.focus()
    tab.keyboard.press("f")
    tab.wait_for_function(
        "() => document.querySelector('.al-stepper').clientHeight === innerHeight"
    )
    tab.keyboard.press("f")
    tab.wait_for_function("() => document.querySelector('.al-stepper').clientHeight < innerHeight")
    assert root.bounding_box() == before
