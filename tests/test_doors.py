"""device() on machines with and without an accelerator; the probes of torch are stood in for."""

import re

import pytest
import torch

import autograd_lab as al
from autograd_lab import doors
from autograd_lab.errors import DeviceError


@pytest.fixture
def machine(monkeypatch):
    """Pretend that this machine has `count` accelerators of a kind, or none."""
    monkeypatch.delenv(doors.VARIABLE, raising=False)

    def pretend(kind=None, count=0):
        there = torch.device(kind) if kind else None
        monkeypatch.setattr(
            torch.accelerator, "current_accelerator", lambda check_available=False: there
        )
        monkeypatch.setattr(torch.accelerator, "device_count", lambda: count)

    pretend()
    return pretend


def test_the_cpu_is_the_default(machine):
    machine("cuda", 2)
    assert doors.device() == torch.device("cpu")


def test_the_cpu_is_chosen_without_a_look_at_the_accelerator(monkeypatch):
    def refuse(check_available=False):
        raise AssertionError

    monkeypatch.setattr(torch.accelerator, "current_accelerator", refuse)
    assert doors.device("cpu") == torch.device("cpu")


def test_auto_without_an_accelerator_is_the_cpu(machine):
    assert doors.device("auto") == torch.device("cpu")


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
def test_auto_takes_the_accelerator(machine, kind):
    machine(kind, 1)
    assert doors.device("auto") == torch.device(kind)


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:1"])
def test_a_device_that_is_there_is_returned_as_named(machine, name):
    machine("cuda", 2)
    assert doors.device(name) == torch.device(name)


@pytest.mark.parametrize(
    ("kind", "count", "asked", "there"),
    [
        ("cuda", 1, "cuda:1", "cpu, cuda:0"),
        ("cuda", 2, "cuda:2", "cpu, cuda:0, cuda:1"),
        ("mps", 1, "cuda", "cpu, mps:0"),
        (None, 0, "cuda", "cpu"),
        (None, 0, "mps", "cpu"),
        (None, 0, "meta", "cpu"),
        (None, 0, "cpu:1", "cpu"),
    ],
)
def test_a_device_that_is_not_there_is_refused_and_what_is_there_is_named(
    machine, kind, count, asked, there
):
    machine(kind, count)
    with pytest.raises(DeviceError, match=re.escape(f"It has: {there}.\n")) as caught:
        doors.device(asked)
    assert caught.value.facts == {"asked": asked}


@pytest.mark.parametrize("asked", ["", "gpu", "CPU", "cuda:x", "cuda:-1", "cuda:99999999999"])
def test_a_name_that_torch_does_not_know_is_refused(machine, asked):
    with pytest.raises(DeviceError, match="no device that torch knows") as caught:
        doors.device(asked)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_the_environment_chooses_where_no_name_is_given(machine, monkeypatch):
    machine("cuda", 1)
    monkeypatch.setenv(doors.VARIABLE, " cuda \n")
    assert doors.device() == torch.device("cuda")


def test_a_name_wins_over_the_environment(machine, monkeypatch):
    monkeypatch.setenv(doors.VARIABLE, "nonsense")
    assert doors.device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_environment_variable_means_the_cpu(machine, monkeypatch, text):
    monkeypatch.setenv(doors.VARIABLE, text)
    assert doors.device() == torch.device("cpu")


@pytest.mark.parametrize("text", ["nonsense", "cuda"])
def test_a_wrong_environment_variable_is_named(machine, monkeypatch, text):
    monkeypatch.setenv(doors.VARIABLE, text)
    with pytest.raises(DeviceError, match=f"{doors.VARIABLE} asks for '{text}'"):
        doors.device()


def test_step_through_records_and_shows_what_a_function_did():
    w = torch.tensor(3.0, requires_grad=True)
    stepper = al.step_through(lambda: (w * w).backward())
    assert stepper.run_until(accumulate=True).phase == "backward 1"
    assert stepper.recording.nodes[0].short_name == "MulBackward0"
    stepper.close()


def test_step_through_names_the_parameters_of_a_model():
    model = torch.nn.Linear(2, 1)
    stepper = al.step_through(lambda: model(torch.ones(1, 2)).sum().backward(), model=model)
    assert stepper.run_until("weight").event is not None
    stepper.close()


def test_step_through_lets_an_exception_pass():
    with pytest.raises(ZeroDivisionError):
        al.step_through(lambda: 1 / 0)
