from autograd_lab.recording import Recording
from autograd_lab.show import describe, full_text
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
    assert sum("SinBackward0" in line for line in text.splitlines()) == 500
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


def parts(recording):
    names = ("events", "nodes", "ops", "tensors", "sources", "meta")
    return {name: getattr(recording, name) for name in names}
