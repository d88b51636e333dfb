"""The few lines of a step that a lesson reads: no source of PyTorch, nothing long."""

import torch

import autograd_lab as al
from autograd_lab.teach import brief


def stepper():
    x, w = torch.ones(2, 3), torch.ones(3, 2, requires_grad=True)
    with al.record() as rec:
        (x @ w).sum().backward()
    return al.Stepper(rec.recording)


def test_it_keeps_what_happens_the_rule_and_what_is_received():
    frame = stepper().run_until("MmBackward*")
    lines = brief(frame).splitlines()
    assert lines[0] == str(frame).splitlines()[0]
    assert [line.split()[0] for line in lines[1:3]] == ["rule", "receives"]


def test_it_drops_torchs_source_with_the_lines_that_go_on():
    frame = stepper().run_until("MmBackward*")
    assert "sym_sizes" in str(frame)
    assert "sym_sizes" not in brief(frame)
    assert not [word for word in ("in torch", "source", "Saved", "Done") if word in brief(frame)]


def test_it_keeps_the_lines_that_go_on_with_what_is_returned():
    moved = stepper()
    moved.run_until("MmBackward*")
    text = brief(moved.step())
    assert "returns  none\n           (3, 2)" in text
