"""Recording changes nothing in whole programs: each runs plain and recorded, and everything that
the two show is compared byte for byte (results, gradients, hook logs, warnings, exceptions, random
state).
"""

from __future__ import annotations

import pytest
import torch

from tests.capture import programs, programs_of_torch
from tests.capture.running import difference, plain, reasons, recorded

PROGRAMS = [*programs.ALL, *programs_of_torch.ALL]
NAMES = [program.__name__.replace("_", " ") for program in PROGRAMS]


@pytest.mark.filterwarnings("ignore")  # what a program warns of is compared by `difference`
@pytest.mark.parametrize("values", ["none", "auto"])
@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_program_runs_the_same_when_recorded(program, values):
    plain(program)  # warnings and imports that happen once per process have happened
    expected, again = plain(program), plain(program)
    found, recording = recorded(program, values=values)

    assert difference(expected, again) == "", "a program that differs from itself shows nothing"
    assert difference(expected, found) == ""
    assert "recorder failed" not in reasons(recording), recording.not_seen


def test_program_runs_the_same_in_two_nested_blocks():
    program = programs.transformer_with_two_backwards
    outcomes = []

    recorded(lambda: outcomes.append(recorded(program)[0]))

    assert outcomes == [plain(program)]


def test_recording_inside_vmap_changes_nothing():
    x = torch.linspace(-1, 1, 12).reshape(4, 3)

    found, _ = recorded(lambda: torch.func.vmap(lambda row: row.sin().sum())(x))

    assert found == plain(lambda: torch.func.vmap(lambda row: row.sin().sum())(x))
