"""Moving through a recording in the Stepper's view: buttons, keys, timeline, graph, source."""

import re

import pytest

from tests.browser.stepper_pages import pack_as_dict, page_of_pack, stepper_page
from tests.show import recordings

sync_api = pytest.importorskip("playwright.sync_api")
expect = sync_api.expect
pytestmark = pytest.mark.browser

LISTEN = (
    "() => { window.reached = [];"
    " document.addEventListener('keydown', event => reached.push(event.key)) }"
)


@pytest.fixture
def scalar(open_stepper):
    """The view of `y = x * x + x`, with the focus inside."""
    tab = open_stepper(stepper_page(recordings.scalar()))
    tab.locator(".al-stepper").focus()
    return tab


def button(tab, name):
    return tab.get_by_role("button", name=name, exact=True)


def step(tab):
    return int(tab.evaluate("() => host.dataset.step"))


def press(tab, *keys):
    for key in keys:
        tab.keyboard.press(key)


def box(tab, label):
    return tab.locator(f".al-box:has(text:text-is('{label}'))")


def test_a_step_is_told_in_all_parts_of_the_view(scalar):
    for _ in range(4):
        button(scalar, "Step").click()
    expect(scalar.locator(".al-place")).to_have_text("4 / 11")
    expect(scalar.locator(".al-status")).to_contain_text("AddBackward0 starts")
    expect(scalar.locator(".al-current .al-first")).to_have_text("AddBackward0")
    expect(scalar.locator(".al-twin .al-first")).to_have_text("add")
    expect(scalar.locator(".al-title").first).to_contain_text("AddBackward0")
    expect(scalar.locator(".al-line[aria-current]")).to_contain_text("y = x * x + x")
    expect(scalar.locator(".al-line[aria-current]")).to_have_class(re.compile("al-b"))
    assert scalar.evaluate("() => [model.get('step'), model.sent.at(-1)]") == [4, 4]


def test_back_stops_at_the_start_and_step_at_the_end(scalar):
    button(scalar, "Back").click(force=True)
    assert step(scalar) == 0
    button(scalar, "End").click()
    button(scalar, "Step").click(force=True)  # it says that it is disabled, and keeps the focus
    assert step(scalar) == 11
    button(scalar, "Restart").click()
    assert step(scalar) == 0


@pytest.mark.parametrize(
    ("keys", "reached"),
    [
        ("ArrowRight", 1),
        ("ArrowRight ArrowRight ArrowLeft", 1),
        ("End", 11),
        ("End Home", 0),
        ("n", 1),
        ("n n", 3),
        ("n n n", 11),
    ],
)
def test_keys_move(scalar, keys, reached):
    press(scalar, *keys.split())
    assert step(scalar) == reached


def test_keys_with_the_focus_outside_do_nothing(scalar):
    scalar.evaluate("() => document.activeElement.blur()")
    press(scalar, "ArrowRight", "End", "n")
    assert step(scalar) == 0


def test_keys_that_act_never_reach_the_notebook(scalar):
    scalar.evaluate(LISTEN)
    press(scalar, "ArrowRight", "n", "p", "f", "?", "Escape", "o", "v", "+", "-", "/", "a", "x")
    assert scalar.evaluate("() => reached") == []


def test_other_keys_are_left_to_the_notebook(scalar):
    scalar.evaluate(LISTEN)
    press(scalar, "Control+s", "j")
    assert "j" in scalar.evaluate("() => reached")


def test_the_timeline_scrubs_and_says_where(scalar):
    timeline = scalar.get_by_role("slider", name="Timeline")
    timeline.fill("9")
    assert step(scalar) == 9
    assert "x.grad gains 7" in timeline.get_attribute("aria-valuetext")
    timeline.focus()
    press(scalar, "ArrowRight")
    assert step(scalar) == 10


def test_a_node_that_waits_says_how_many_gradients_it_has(scalar):
    press(scalar, "n", "n", "ArrowRight", "ArrowRight")
    waiting = scalar.locator(".al-box.al-waiting")
    expect(waiting.locator(".al-second")).to_have_text("1 of 3 gradients")
    assert "waits for more gradients" in waiting.get_attribute("aria-label")


def test_the_loss_and_the_first_gradient_are_drawn(scalar):
    turn = scalar.locator(".al-turn")
    expect(turn).to_have_class(re.compile("al-later"))
    press(scalar, "n", "n")
    expect(turn).to_have_class(re.compile("al-b"))
    expect(turn).to_contain_text("y = 12")
    expect(turn).to_contain_text("gradient")


def test_a_click_on_a_box_goes_to_its_next_step_and_round(scalar):
    box(scalar, "MulBackward0").click()
    assert step(scalar) == 6
    box(scalar, "MulBackward0").click()
    assert step(scalar) == 7
    box(scalar, "MulBackward0").click()
    assert step(scalar) == 6


def test_a_drag_moves_the_graph_and_clicks_nothing(open_stepper):
    tab = open_stepper(stepper_page(recordings.scalar(), height=340))
    for _ in range(6):
        button(tab, "Zoom in").click()
    where = box(tab, "MulBackward0").bounding_box()
    x, y = where["x"] + 20, where["y"] + 15
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.mouse.move(x - 40, y - 30, steps=4)
    before = tab.evaluate("() => document.querySelector('.al-scroll').scrollTop")
    tab.mouse.up()
    assert before > 0
    assert step(tab) == 0


def test_a_line_of_source_goes_to_its_next_step(scalar):
    line = scalar.locator(".al-line", has_text="y.backward()")
    line.click()
    assert step(scalar) == 3
    expect(line).to_have_attribute("aria-current", "true")


def test_the_current_line_is_in_sight_in_a_long_source(open_stepper):
    pack = pack_as_dict(recordings.scalar())
    pack["files"][0]["text"] += [f"a = {number}" for number in range(90)]
    pack["lines"][1]["line"] = 80
    tab = open_stepper(page_of_pack(pack, step=3))
    expect(tab.locator(".al-line[aria-current]")).to_have_text("80a = 76")
    expect(tab.locator(".al-line[aria-current]")).to_be_in_viewport()
    tab.evaluate("() => model.set('step', 4)")
    expect(tab.locator(".al-line[aria-current]")).to_be_in_viewport()


def test_boxes_can_be_walked_with_the_keyboard(scalar):
    graph = scalar.locator(".al-scroll")
    graph.focus()
    press(scalar, "ArrowDown", "ArrowDown", "ArrowDown")
    picked = scalar.locator(f"[id='{graph.get_attribute('aria-activedescendant')}']")
    label = picked.get_attribute("aria-label").split(",")[0]
    assert label == scalar.locator(".al-picked .al-first").text_content()
    press(scalar, "Enter")
    assert step(scalar) > 0


@pytest.mark.parametrize(
    ("typed", "reached"),
    [
        ("MulBackward0", 6),
        ("Mul*", 6),
        ("mulback*", 6),
        ("x", 8),
        ("add", 2),
        ("y", 2),
        ("x.grad", 8),
        ("x.grad +=", 8),
    ],
)
def test_run_to_takes_names_and_globs(scalar, typed, reached):
    press(scalar, "/")
    scalar.keyboard.type(typed)
    press(scalar, "Enter")
    assert step(scalar) == reached


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("Tanh", 'Nothing in this recording is called "Tanh". Names here: '),
        ("MulBakward", "Nearest names: MulBackward0"),
        ("first NaN or Inf", "No step of this recording has a NaN or an Inf"),
        ("", "Type a node, call, variable, leaf or module"),
    ],
)
def test_run_to_says_what_there_is_not(scalar, typed, words):
    scalar.get_by_role("combobox", name="Name of a node").fill(typed)
    button(scalar, "Run to").click()
    expect(scalar.locator(".al-message")).to_contain_text(words)
    expect(scalar.locator(".al-status")).to_contain_text("Step 0 of 11")
    assert step(scalar) == 0


def test_find_says_what_there_is_not(scalar):
    scalar.get_by_role("combobox", name="Name of a node").fill("MulBakward")
    button(scalar, "Find").click()
    expect(scalar.locator(".al-message")).to_have_text(
        'No box is called "MulBakward". Nearest names: MulBackward0.'
    )


@pytest.mark.parametrize("leave", ["key", "click", "step"])
def test_a_message_goes_with_the_next_key_click_or_step(scalar, leave):
    button(scalar, "Run to").click()
    expect(scalar.locator(".al-message")).to_be_visible()
    if leave == "key":
        press(scalar, "+")
        expect(scalar.locator(".al-message")).to_have_text("Text size 115 %.")
        press(scalar, "Shift")
    elif leave == "click":
        scalar.locator(".al-title").first.click()
    else:
        scalar.evaluate("() => model.set('step', 3)")
    expect(scalar.locator(".al-message")).to_be_hidden()


def test_what_can_do_nothing_says_so_before_it_is_pressed(open_stepper, scalar):
    expect(button(scalar, "Next problem")).to_have_attribute("aria-disabled", "true")
    nan = open_stepper(stepper_page(recordings.with_nan()))
    expect(button(nan, "Next problem")).not_to_have_attribute("aria-disabled", "true")
    button(nan, "End").click()
    expect(button(nan, "Next problem")).to_have_attribute("aria-disabled", "true")


def test_a_line_says_how_often_it_is_gone_and_is_solid_once_it_was(scalar):
    times = scalar.locator(".al-times")
    expect(times).to_have_text(["\u00d72", "\u00d72"])
    expect(scalar.locator(".al-edge.al-f")).to_have_count(0)
    press(scalar, "ArrowRight")
    expect(times.first).to_have_class("al-times al-f")
    scalar.evaluate("() => model.set('step', 6)")
    expect(times.last).to_have_class("al-times al-later")
    scalar.evaluate("() => model.set('step', 7)")
    expect(times.last).to_have_class("al-times al-b")


def test_what_a_pass_starts_from_is_told_once_it_is_known(scalar):
    words = scalar.locator(".al-turn")
    told = {1: "", 2: "y = 12", 3: "y = 12 · gradient starts at 1"}
    for reached, text in told.items():
        scalar.evaluate("step => model.set('step', step)", reached)
        expect(words).to_have_text(text)


def test_text_that_can_not_get_smaller_or_larger_says_so(scalar):
    smaller, larger = button(scalar, "Smaller text"), button(scalar, "Larger text")
    expect(smaller).to_have_attribute("aria-disabled", "true")
    press(scalar, *"+" * 9)
    expect(larger).to_have_attribute("aria-disabled", "true")
    expect(smaller).not_to_have_attribute("aria-disabled", "true")


def test_a_node_with_all_its_gradients_is_ready(scalar):
    scalar.evaluate("() => model.set('step', 6)")
    box = scalar.locator(".al-box", has_text="x.grad")
    expect(box).to_have_class(re.compile("al-waiting"))
    expect(box.locator(".al-second")).to_have_text("1 of 3 gradients")
    scalar.evaluate("() => model.set('step', 7)")
    expect(box).to_have_class(re.compile("al-ready"))
    expect(box.locator(".al-second")).to_have_text("3 of 3 gradients")
    assert box.locator(".al-rect").evaluate("e => getComputedStyle(e).strokeDasharray") == "none"


def test_the_whole_view_comes_in_sight_with_the_first_click_and_no_sooner(open_stepper):
    page = stepper_page(recordings.scalar())
    tab = open_stepper(page)
    tab.set_viewport_size({"width": 1280, "height": 620})
    tab.evaluate("() => { document.body.style.paddingTop = '400px'; scrollTo(0, 0); }")
    hidden = (
        "() => document.querySelector('.al-stepper').getBoundingClientRect().bottom > innerHeight"
    )
    tab.wait_for_timeout(200)
    assert tab.evaluate(hidden)
    button(tab, "Step").click()
    tab.wait_for_function(hidden.replace("> innerHeight", "<= innerHeight + 1"))
    assert step(tab) == 1


def test_run_to_says_that_it_lies_behind(scalar):
    press(scalar, "End", "/")
    scalar.keyboard.type("mul")
    press(scalar, "Enter")
    expect(scalar.locator(".al-message")).to_contain_text('No later step has "mul"')


def test_next_problem_goes_to_the_first_nan(open_stepper):
    tab = open_stepper(stepper_page(recordings.with_nan()))
    button(tab, "Next problem").click()
    assert step(tab) == 7
    expect(tab.locator(".al-box.al-bad .al-first").first).to_have_text("MulBackward0")


def test_a_pass_that_raised_is_shown(open_stepper):
    tab = open_stepper(stepper_page(recordings.failed(), step=7))
    expect(tab.locator(".al-box.al-failed .al-first")).to_have_text("MulBackward0")
    expect(tab.locator(".al-inspector")).to_contain_text("RuntimeError: saved tensor was modified")


def test_play_goes_on_by_itself_and_can_be_stopped(scalar):
    scalar.get_by_role("combobox", name="Speed").select_option("2")
    button(scalar, "Play").click()
    scalar.wait_for_function("() => host.dataset.step >= 2")
    button(scalar, "Pause").click()
    reached = step(scalar)
    scalar.wait_for_timeout(700)
    assert step(scalar) == reached


@pytest.mark.parametrize("take_over", ["ArrowRight", "Home", "Back"])
def test_playing_stops_when_somebody_takes_over(scalar, take_over):
    press(scalar, " ")
    scalar.wait_for_function("() => host.dataset.step >= 2")
    if take_over == "Back":
        button(scalar, "Back").click()
    else:
        press(scalar, take_over)
    reached = step(scalar)
    expect(button(scalar, "Play")).to_have_attribute("aria-pressed", "false")
    scalar.wait_for_timeout(1300)
    assert step(scalar) == reached


def test_playing_ends_at_the_end_and_home_does_not_start_it_again(scalar):
    scalar.get_by_role("combobox", name="Speed").select_option("16")
    scalar.evaluate("() => model.set('step', 8)")
    button(scalar, "Play").click()
    expect(button(scalar, "Play")).to_have_attribute("aria-pressed", "false")
    assert step(scalar) == 11
    scalar.locator(".al-stepper").focus()
    press(scalar, "Home")
    scalar.wait_for_timeout(200)
    assert step(scalar) == 0


def test_an_echo_while_playing_is_no_move(scalar):
    press(scalar, "End", " ")
    scalar.wait_for_function("() => host.dataset.step >= 1")
    scalar.evaluate("() => model.set('step', 9)")
    assert step(scalar) < 9


def test_python_moves_the_view_and_is_not_told_of_it(scalar):
    scalar.evaluate("() => model.set('step', 7)")
    assert step(scalar) == 7
    assert scalar.evaluate("() => model.sent") == []


def test_a_message_of_python_stands_in_the_view(scalar):
    scalar.evaluate("() => model.set('message', 'No node is called Foo.')")
    expect(scalar.locator(".al-message")).to_have_text("No node is called Foo.")
    press(scalar, "ArrowRight")
    expect(scalar.locator(".al-status")).to_contain_text("Step 1 of 11")


def test_the_list_of_keys_opens_and_closes(scalar):
    press(scalar, "?")
    keys = scalar.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("next phase")
    press(scalar, "Escape")
    expect(keys).to_be_hidden()
    assert scalar.evaluate("() => document.activeElement.className").startswith("al-stepper")
