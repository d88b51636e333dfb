"""The Stepper from Python: its moves, traits, text and static forms; the view has its own tests."""

import base64
import html
import json
import re
import subprocess
import sys
from pathlib import Path

import ipywidgets
import pytest
import traitlets

from autograd_lab.errors import NodeNotFoundError, RecordingError, StepError
from autograd_lab.recording import Recording
from autograd_lab.replay import Cursor
from autograd_lab.show import Stepper, module, pack, pack_of
from tests.show import recordings

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def stepper(monkeypatch):
    for name in ("AUTOGRAD_LAB_STATIC", "AUTOGRAD_LAB_VIEW"):
        monkeypatch.delenv(name, raising=False)
    stepper = Stepper(recordings.scalar())
    yield stepper
    stepper.close()


def test_it_stands_before_anything_and_goes_both_ways(stepper):
    assert stepper.step == 0
    assert stepper.go(6).index == 6
    assert stepper.step(2).index == 8
    assert stepper.back().index == 7
    assert (stepper.step(), stepper.step)[1] == 8


def test_moves_stop_at_both_ends(stepper):
    assert stepper.step(99).index == 11
    assert stepper.back(99).index == 0


def test_the_step_is_a_number_for_everything_that_takes_one(stepper):
    stepper.step = 3
    assert (stepper.step + 1, f"{stepper.step:03}", json.dumps(stepper.step)) == (4, "003", "3")
    assert stepper.get_state("step") == {"step": 3}


@pytest.mark.parametrize("wrong", [99, -1, "3", 2.5, None, True])
@pytest.mark.parametrize("set_step", [Stepper.go, lambda s, i: setattr(s, "step", i)])
def test_a_step_that_is_none_is_refused_and_nothing_is_lost(stepper, set_step, wrong):
    stepper.go(4)
    with pytest.raises(StepError, match="step"):
        set_step(stepper, wrong)
    assert (stepper.step, stepper.frame.index) == (4, 4)


def test_a_wrong_step_of_several_changes_at_once_is_refused_too(stepper):
    with pytest.raises(StepError), stepper.hold_trait_notifications():
        stepper.step = 99
    assert (stepper.step, stepper.frame.index) == (0, 0)


def test_run_until_goes_where_a_cursor_goes(stepper):
    assert stepper.run_until("Mul*").index == Cursor(recordings.scalar()).run_until("Mul*").index
    assert stepper.step == 6
    assert stepper.run_until(accumulate=True).index == 9


def test_a_search_in_vain_is_raised_and_said_in_the_view(stepper):
    stepper.go(7)
    with pytest.raises(NodeNotFoundError, match=r"stepper\.go\(0\)"):
        stepper.run_until("Mul*")
    assert (stepper.step, "No later step has" in stepper.message) == (7, True)
    assert repr(stepper).splitlines()[-2].startswith("It held at step 6, behind the Stepper")
    stepper.go(0)
    assert stepper.message == ""


def test_observers_hear_every_move_and_see_its_frame(stepper):
    heard = []
    stepper.observe(lambda change: heard.append((change.new, stepper.frame.index)), "step")
    stepper.go(3)
    stepper.step()
    stepper.run_until("Mul*")
    assert heard == [(3, 3), (4, 4), (6, 6)]


def test_a_slider_beside_it_can_be_linked(stepper):
    slider = ipywidgets.IntSlider(max=11)
    ipywidgets.jslink((slider, "value"), (stepper, "step"))
    traitlets.link((slider, "value"), (stepper, "step"))
    slider.value = 5
    assert stepper.step == 5
    assert ipywidgets.HBox([slider, stepper]).children[1] is stepper


def test_an_error_of_an_observer_is_shown_when_the_view_moves(stepper):
    stepper.observe(lambda change: 1 / 0, "step")
    stepper.set_state({"step": 2})
    assert stepper.message == "ZeroDivisionError: division by zero"
    assert stepper.step == 2


def test_an_error_of_the_view_is_in_the_text(stepper):
    stepper.set_state({"fault": "TypeError: no boxes"})
    assert repr(stepper).splitlines()[-1] == "! The view failed: TypeError: no boxes"


def test_a_wrong_step_from_the_view_is_shown_and_not_taken(stepper):
    stepper.set_state({"step": 99})
    assert (stepper.step, "There is no step 99" in stepper.message) == (0, True)


def test_its_text_is_that_of_its_frame(stepper):
    frame = stepper.go(6)
    assert repr(stepper) == f"Stepper at s{repr(frame)[1:]}"
    assert repr(stepper).startswith("Stepper at step 6 of 11, backward 1: MulBackward0 starts\n")


def test_hidden_values_read_question_marks_until_revealed():
    stepper = Stepper(recordings.scalar(), hide="values")
    stepper.go(9)
    hidden = repr(stepper)
    assert "  Values are hidden; .reveal() shows them." in hidden
    assert "added    scalar ?" in hidden
    assert not re.search(r"\b[37]\b", hidden.replace("pass 1", "").partition("\n")[2])
    picture = re.search(r"svg\+xml;base64,([^\"]+)", stepper._repr_mimebundle_()[0]["text/html"])
    assert "3" not in re.findall(r">x( = 3)?<", base64.b64decode(picture[1]).decode())
    for frame in (
        stepper.frame,
        stepper.go(9),
        stepper.back(),
        stepper.go(0),
        stepper.run_until("mul"),
    ):
        assert not re.search(r"\b[37]\b", repr(frame).replace("pass 1", "").partition("\n")[2])
    stepper.reveal()
    assert repr(stepper) == f"Stepper at s{repr(stepper.frame)[1:]}"
    assert stepper.go(9).event.added.norm == 7


@pytest.mark.parametrize("hide", ["value", None, True])
def test_only_values_can_be_hidden(hide):
    with pytest.raises(traitlets.TraitError, match="values"):
        Stepper(recordings.scalar(), hide=hide)


def test_a_recorder_in_place_of_a_recording_is_named():
    class Recorder:
        recording = None

    with pytest.raises(RecordingError, match=r"Stepper needs a Recording.*\n.*\n.*rec\.recording"):
        Stepper(Recorder())


@pytest.mark.parametrize("name", list(recordings.ALL))
def test_every_recording_has_a_stepper(name):
    stepper = Stepper(recordings.ALL[name])
    data, _ = stepper._repr_mimebundle_()
    assert data["text/plain"] == repr(stepper)
    assert stepper.pack == pack_of(recordings.ALL[name])
    stepper.close()


def test_the_bundle_has_the_view_and_what_stands_in_for_it(stepper):
    stepper.go(3)
    data, _ = stepper._repr_mimebundle_()
    assert data[WIDGET]["model_id"] == stepper.model_id
    shown = data["text/html"]
    assert "Picture of step 3 of 11. Run this cell to step." in shown
    assert not re.search(r"<svg|<style|<script|<iframe", shown)
    assert html.escape(repr(stepper)) in shown
    assert "<table" in shown
    assert stepper.model_id not in shown + data["text/plain"]


def test_static_leaves_the_view_out(stepper, monkeypatch):
    monkeypatch.setenv("AUTOGRAD_LAB_STATIC", "1")
    assert set(stepper._repr_mimebundle_()[0]) == {"text/plain", "text/html"}
    monkeypatch.setenv("AUTOGRAD_LAB_STATIC", "0")
    assert WIDGET in stepper._repr_mimebundle_()[0]


def test_a_hub_without_the_extension_gets_the_page_in_a_sandbox(stepper, monkeypatch):
    monkeypatch.setenv("AUTOGRAD_LAB_VIEW", "page")
    stepper.go(4)
    data, _ = stepper._repr_mimebundle_()
    assert WIDGET not in data
    frame = re.search(
        r'<iframe [^>]*sandbox="allow-scripts"[^>]*srcdoc="([^"]+)"', data["text/html"]
    )
    page = html.unescape(frame[1])
    state = json.loads(re.search(r'id="al-stepper-data">(.*?)</script>', page)[1])
    assert state["state"]["step"] == 4
    assert base64.b64decode(state["pack"]) == stepper.pack


def test_a_large_recording_sends_little_beside_its_pack():
    stepper = Stepper(recordings.chain(1000))
    still = stepper._repr_mimebundle_()[0]["text/html"]
    wire = len(stepper.pack) + len(stepper._esm) + len(stepper._css) + len(still)
    assert wire <= 300_000


def test_it_writes_its_page_at_its_step(stepper, tmp_path):
    stepper.go(5)
    path = stepper.to_html(tmp_path / "deep" / "replay.html")
    assert isinstance(path, Path)
    assert '"step": 5' in path.read_text(encoding="utf-8")


def test_closing_twice_is_closing_once(stepper):
    stepper.close()
    stepper.close()
    assert stepper.comm is None


def test_fifty_opened_and_closed_leave_no_widget_behind():
    before = len(ipywidgets.widgets.widget._instances)
    for _ in range(50):
        stepper = Stepper(recordings.scalar())
        stepper.step()
        stepper.close()
    assert len(ipywidgets.widgets.widget._instances) == before
    assert stepper.pack == b""


def test_the_module_joins_every_script_once_and_keeps_one_export():
    folder = Path(module.__file__).parent / "static"
    assert sorted(module.SCRIPTS) == sorted(path.name for path in folder.glob("*.js"))
    assert {*module.SHEETS, "page.css"} == {path.name for path in folder.glob("*.css")}
    assert module.module_js().count("export default") == 1
    assert not re.search(r"^\s*(//|/\*)", module.module_js(), re.MULTILINE)


WITHOUT = """
import sys
sys.modules["anywidget"] = None
from tests.show import recordings
from autograd_lab.show import Stepper
stepper = Stepper(recordings.scalar())
stepper.go(3)
stepper.step = 4
print(repr(stepper))
data, _ = stepper._repr_mimebundle_()
print(sorted(data), "Picture of step 4 of 11" in data["text/html"])
stepper.close()
"""
LIGHT = """
import sys
from tests.show import recordings
from autograd_lab.show import Stepper
stepper = Stepper(recordings.scalar())
stepper._repr_mimebundle_()
print("matplotlib" in sys.modules, "torch" in sys.modules)
"""


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_without_anywidget_text_and_picture_say_what_to_install():
    out = run(WITHOUT)
    assert "Stepper at step 4 of 11, backward 1: AddBackward0 starts" in out
    assert "! The interactive view needs anywidget" in out
    assert "pip install anywidget" in out
    assert "['text/html', 'text/plain'] True" in out


def test_it_loads_neither_matplotlib_nor_torch():
    assert run(LIGHT) == "False False\n"


def test_an_empty_recording_has_words_in_place_of_the_picture():
    stepper = Stepper(Recording())
    assert repr(stepper).splitlines()[-1].startswith("! There is nothing to draw")
    shown = stepper._repr_mimebundle_()[0]["text/html"]
    assert "Picture of step" not in shown
    assert "There is nothing to draw" in shown


def test_one_that_is_too_large_says_what_to_do(monkeypatch):
    monkeypatch.setattr(pack, "MOST_NODES", 100)
    stepper = Stepper(recordings.chain(200))
    stepper.go(300)
    shown = stepper._repr_mimebundle_()[0]["text/html"]
    assert "the Stepper draws up to 100" in shown
    assert "<img" not in shown
    assert "Stepper at step 300 of 605" in repr(stepper)
