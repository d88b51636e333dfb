from dataclasses import replace

from autograd_lab.recording import NodeId, ProblemSeen, Recording
from autograd_lab.show import describe, full_text
from tests.replay.building import Builder
from tests.show import recordings

SCALAR = """\
Recording (on cuda:0): 2 forward calls, 3 backward steps, 1 leaf with a new gradient, 1 problem
! non-finite backward: MulBackward0 returned NaN for input 0; what it received was finite. (lesson.py:2)

Forward calls, in order
  step  call            shape   norm  place
     1  mul(x, x)       scalar   = 9  lesson.py:2
     2  y = add(#1, x)  scalar  = 12  lesson.py:2

Backward pass 1, backward() at lesson.py:3 — y = 12, starts with gradient 1
  step  node          receives  returns        of call  place
     4  AddBackward0       = 1  = 1, = 1       #2 add   lesson.py:2
     6  MulBackward0       = 1  = 3, = 3       #1 mul   lesson.py:2
     8  x.grad +=          = 7  .grad now = 7

SGD stepped at lesson.py:4: 3 torch calls wrote 1 parameter
Not seen: 2 forward calls ran on another thread; their calls are missing.

Numbers are 2-norms; "= v" is the value of a one-element tensor; #n is what step n returned."""  # noqa: E501


def test_a_small_recording_reads_as_a_story():
    assert repr(recordings.with_problems()) == SCALAR


def test_a_long_recording_is_folded_to_about_sixty_lines():
    text = describe(recordings.chain(500))
    assert len(text.splitlines()) <= 64
    assert "... " in text
    assert "full_text(recording) prints all" in text


def test_the_full_text_has_every_row():
    text = full_text(recordings.chain(500))
    rows = [line for line in text.splitlines() if line.startswith("  ")]
    assert sum("SinBackward0" in line for line in rows) == 500
    assert "..." not in text


def test_many_passes_and_problems_are_counted_not_listed():
    base = recordings.with_problems()
    text = describe(Recording(**{**parts(base), "events": base.events * 40}))
    assert "! ... 32 more" in text
    assert len(text.splitlines()) <= 70


def test_an_empty_recording_says_so():
    assert "Nothing was recorded" in describe(Recording())


def test_a_recording_without_backward_says_so():
    base = recordings.scalar()
    assert "No backward ran" in describe(Recording(**{**parts(base), "events": base.events[:2]}))


def test_a_pass_that_raised_says_what():
    text = describe(recordings.failed())
    assert "raised RuntimeError: saved tensor was modified" in text
    assert "did not finish" in text


def test_findings_are_counted_and_named_beside_the_problems():
    text = describe(recorded_with_an_unused_parameter())
    first, second, *_ = text.splitlines()
    assert first.endswith("1 leaf with a new gradient, 1 finding")
    assert second == "Findings: unused at never. gradient_flow(recording) says more."


def test_a_loss_without_a_name_is_called_by_the_call_that_made_it():
    base = recordings.scalar()
    unnamed = tuple(replace(ref, name=None) if ref.name == "y" else ref for ref in base.tensors)
    text = describe(Recording(**{**parts(base), "tensors": unnamed}))
    assert "— #2 add = 12, starts with gradient 1" in text
    assert "loss" not in text


def test_dtypes_that_are_not_float32_are_said_for_calls_and_gradients():
    base = recordings.scalar()
    double = tuple(
        replace(ref, dtype="float64") if ref.id in (2, 3) else ref for ref in base.tensors
    )
    text = describe(Recording(**{**parts(base), "tensors": double}))
    (call,) = [line for line in text.splitlines() if "y = add" in line]
    (node,) = [line for line in text.splitlines() if "MulBackward0" in line]
    assert call.split()[5:7] == ["scalar", "float64"]
    assert "float64 → float32" in node
    assert text.endswith("A tensor without a dtype is float32.")


def test_float32_alone_goes_without_saying():
    assert "float32" not in describe(recordings.scalar())


def test_a_pass_that_raised_says_in_which_node_of_which_call_and_line():
    base = recordings.failed()
    error = "RuntimeError: saved tensor was modified"
    problem = ProblemSeen(kind="exception", text=f"{error}. Mend it.", node=NodeId(1), pass_id=1)
    text = describe(Recording(**{**parts(base), "events": (*base.events, problem)}))
    assert "raised RuntimeError in MulBackward0 of #1 mul at lesson.py:2, see above" in text


def recorded_with_an_unused_parameter():
    build = Builder()
    build.parameter("never")
    build.backward(build.op("exp", build.tensor("x", leaf=True)))
    return build.recording()


def parts(recording):
    names = ("events", "nodes", "ops", "tensors", "sources", "meta")
    return {name: getattr(recording, name) for name in names}
