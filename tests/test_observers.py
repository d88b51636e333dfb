"""Observers hear what custom ops do, in order, and only while they observe."""

import pytest
import torch

from autograd_lab.observers import Observer, observers, observing
from tests.ops.samples import scaled_op


class Heard(Observer):
    def __init__(self):
        self.steps = []

    def custom_op_called(self, op, arguments):
        self.steps.append(("called", tuple(arguments)))

    def custom_op_returned(self, op, output):
        self.steps.append(("returned", tuple(output.shape)))

    def custom_op_saved(self, op, tree, paths):
        self.steps.append(("saved", paths))

    def custom_op_unpacked(self, op, tree):
        self.steps.append(("unpacked", tuple(tree)))

    def custom_op_backward_returned(self, op, gradients):
        self.steps.append(("backward returned", tuple(gradients)))

    def custom_op_checked(self, op, gradients):
        self.steps.append(("checked", len(gradients)))


def test_one_call_is_heard_as_its_steps():
    op, x = scaled_op(save=lambda inputs, output: {"y": output}), torch.ones(3, requires_grad=True)
    with observing(Heard()) as heard:
        op(x).sum().backward()
    assert heard.steps == [
        ("called", ("x",)),
        ("returned", (3,)),
        ("saved", ("saved['y']",)),
        ("unpacked", ("y",)),
        ("backward returned", ("x",)),
        ("checked", 1),
    ]


def test_nobody_hears_after_the_block_also_after_an_exception():
    with pytest.raises(ZeroDivisionError), observing(Observer()):
        raise ZeroDivisionError
    assert observers() == ()


def test_the_same_observer_twice_leaves_one_at_a_time():
    mine, other = Observer(), Observer()
    with observing(mine), observing(other):
        with observing(mine):
            assert observers() == (mine, other, mine)
        assert observers() == (mine, other)


def test_an_observer_that_does_nothing_changes_nothing():
    op, x = scaled_op(), torch.ones(3, requires_grad=True)
    with observing(Observer()):
        op(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3
