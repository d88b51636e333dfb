"""The benchmarks say what they can be asked for, and refuse the rest before they measure."""

import pytest

from benchmarks.__main__ import main
from benchmarks.models import STEPS


def test_help_names_every_model(capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert [name for name in STEPS if name not in text] == []
    assert "results.json" in text


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (["tiny mlp", "nosuch"], "no model 'nosuch'"),
        (["resnet"], "Models: 'transformer', 'resnet18', 'tiny mlp'"),
        (["--rounds", "0"], "--rounds"),
        (["--out", "no_such_folder/results.json"], "there is no folder no_such_folder"),
    ],
)
def test_what_cannot_be_measured_is_refused(capsys, arguments, phrase):
    with pytest.raises(SystemExit, match=r"^2$"):
        main(arguments)
    assert phrase in capsys.readouterr().err
