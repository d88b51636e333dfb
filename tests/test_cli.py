"""autograd-lab at the shell: what it prints and writes, its exit codes, and its refusals."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import autograd_lab as al
from autograd_lab import cli, commands, doors
from autograd_lab.errors import UnsupportedTorchError
from autograd_lab.recording import GradAccumulated, OpCalled

ROOT = Path(__file__).parents[1]
ONE_STEP = """
import torch

def one_step():
    w = torch.ones(3, requires_grad=True)
    (w * 2).sum().backward()
"""

OTHERS = """
number, nothing, model = 3, None, torch.nn.Linear(2, 2)

def needs(x, y=2): pass

async def later(): pass

def each(): yield 1
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Write a module into an empty working directory; forget it after the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)

    def write(text=ONE_STEP, file="my_training.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text, "utf-8")

    yield write
    for name in set(sys.modules) - known:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]


@pytest.fixture
def short_demo(monkeypatch):
    monkeypatch.setattr(commands.demos, "STEPS", 6)
    monkeypatch.delenv(doors.VARIABLE, raising=False)


def shell(*arguments, cwd, **environment):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-m", "autograd_lab.cli", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


# what the shell itself sees


def test_a_user_records_a_function_from_the_folder_it_lies_in(tmp_path):
    (tmp_path / "my_training.py").write_text(ONE_STEP, "utf-8")
    run = shell("record", "my_training:one_step", "--html", "a page.html", cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert "MulBackward0" in run.stdout
    assert run.stdout.endswith("Wrote a page.html.\n")
    assert (tmp_path / "a page.html").is_file()


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["record", "--help"], ["paint"]])
def test_what_needs_no_torch_loads_none(arguments, tmp_path):
    code = (
        "import sys; from autograd_lab import cli\n"
        "try: cli.main(sys.argv[1:])\n"
        "finally: print('loaded:', *sys.modules)"
    )
    command = [sys.executable, "-c", code, *arguments]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    loaded = run.stdout.rpartition("loaded:")[2].split()
    assert "argparse" in loaded
    assert not {"torch", "numpy", "matplotlib", "ipywidgets", "IPython"} & set(loaded)


def test_every_command_of_the_parser_is_there_to_be_loaded(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    shown = capsys.readouterr().out
    assert sorted(re.findall(r"^    (\w+)\b", shown, re.MULTILINE)) == commands.__all__


def test_a_torch_that_is_too_old_is_one_message_on_stderr(monkeypatch, capsys):
    def load(name):
        message = "torch 1.0 is too old"
        raise UnsupportedTorchError(message, torch="1.0")

    monkeypatch.setattr(cli.importlib, "import_module", load)
    assert cli.main(["check"]) == 1
    assert capsys.readouterr().err == "autograd-lab: torch 1.0 is too old\n"


def test_a_failure_is_one_message_on_stderr_and_exit_code_1(tmp_path):
    run = shell("record", "absent:step", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("autograd-lab: 'absent:step' can't be called: there is no module")
    assert "Traceback" not in run.stderr


# how it is called


def test_version(capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"autograd-lab {al.__version__}\n"


def test_help_mentions_every_command(capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main(["--help"])
    words = capsys.readouterr().out.split()
    assert {"demo", "record", "lab", "notebooks", "pages", "check", "--version"} <= set(words)


@pytest.mark.parametrize(
    ("command", "phrases"),
    [
        ("demo", ["--out DIR", "default: demo-out", "gradient_flow.png", "are replaced"]),
        (
            "demo",
            [
                "--device wins over the environment variable AUTOGRAD_LAB_DEVICE",
                "without either it is cpu",
            ],
        ),
        ("record", ["MODULE:FUNCTION", "--html FILE", "--json FILE", "train:one_step"]),
        ("record", ["none = shapes and norms", "If FUNCTION raises"]),
        ("notebooks", ["DIR", "--with-outputs", "No file is overwritten", "jupyter lab DIR"]),
        ("lab", ["DIR", "default: learn", "--no-browser", "--port=8890", "as `notebooks` does"]),
        ("pages", ["DIR", "default: pages", "neither Python nor a network", "are replaced"]),
        ("check", ["what would not work", "exit code is 1"]),
    ],
)
def test_help_of_a_command_names_its_options(capsys, command, phrases):
    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main([command, "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert [phrase for phrase in phrases if phrase not in text] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["paint"],
        ["record"],
        ["record", "a:b", "--values", "some"],
        ["record", "a:b", "--html", ""],
        ["notebooks"],
        ["notebooks", ""],
        ["demo", "--out", " "],
        ["demo", "--steps", "3"],
        ["check", "everything"],
        ["check", "--no-browser"],
        ["lab", ""],
        ["pages", ""],
    ],
    ids=" ".join,
)
def test_a_wrong_call_is_exit_code_2_and_shows_how(capsys, arguments):
    with pytest.raises(SystemExit, match=r"^2$"):
        cli.main(arguments)
    assert "usage: autograd-lab" in capsys.readouterr().err


def test_without_a_command_the_help_is_shown_with_an_example_and_nothing_is_wrong(capsys):
    assert cli.main([]) == 0
    shown, errors = capsys.readouterr()
    assert errors == ""
    assert "See PyTorch's backward happen" in shown
    assert "autograd-lab record train:one_step --html step.html" in shown
    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main(["--help"])
    assert capsys.readouterr().out == shown


def test_an_interrupt_is_exit_code_130_without_a_traceback(program, capsys):
    program("def step():\n    raise KeyboardInterrupt")
    assert cli.main(["record", "my_training:step"]) == 130
    assert capsys.readouterr().err == "autograd-lab: interrupted.\n"


# record


def test_record_prints_the_recording_and_writes_what_was_asked_for(program, tmp_path, capsys):
    program()
    arguments = ["record", "my_training:one_step", "--html", "new/p.html", "--json", "s.json"]
    assert cli.main(arguments) == 0
    recording = al.load_recording("s.json")
    wrote = f"Wrote {Path('new/p.html')}.\nWrote s.json.\n"
    assert capsys.readouterr().out == f"{recording!r}\n{wrote}"
    assert (tmp_path / "new/p.html").read_text("utf-8").startswith("<!doctype html>")


def test_record_writes_nothing_that_was_not_asked_for(program, tmp_path):
    program()
    assert cli.main(["record", "my_training:one_step"]) == 0
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["my_training.py"]


@pytest.mark.parametrize("values", ["none", "auto", "all"])
def test_record_keeps_as_much_of_tensors_as_it_is_told(program, values):
    program()
    cli.main(["record", "my_training:one_step", "--values", values, "--json", "s.json"])
    recording = al.load_recording("s.json")
    details = [event.outputs[0].detail for event in recording.events_of(OpCalled)]
    assert recording.meta.values == values
    assert [detail is None for detail in details] == [values == "none"] * len(details)


@pytest.mark.parametrize(
    ("file", "text", "name"),
    [
        ("lab/train.py", ONE_STEP, "lab.train:one_step"),
        (
            "train.py",
            f"{ONE_STEP}\nclass Run:\n    step = staticmethod(one_step)",
            "train:Run.step",
        ),
        ("train.py", f"{ONE_STEP}\ndef step(times=1, *rest, **options): one_step()", "train:step"),
    ],
    ids=["in a package", "in a class", "with defaults"],
)
def test_record_finds_a_function(program, file, text, name):
    program(text, file)
    assert cli.main(["record", name]) == 0


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("my_training", "it names no function.\nWrite MODULE:FUNCTION."),
        ("my_training:", "it names no function."),
        (":one_step", "it names no function."),
        ("my_training.one_step", "Put a colon before the function: my_training:one_step."),
        ("my_training.py", "Write MODULE:FUNCTION."),
        ("../lab/my_training:one_step", "Run in the folder ../lab and write my_training:one_step."),
        ("my-training:one_step", "Rename the file, for example my_training.py."),
        ("my-training.py:one_step", "Rename the file, for example my_training.py."),
        ("first.ipynb:one_step", "A notebook can't be imported: write `with al.record()"),
        ("my_training.py:one_step", "Write it as in an import: my_training:one_step."),
        ("lab/my_training.py:one_step", "Write it as in an import: lab.my_training:one_step."),
        (".my_training:one_step", "'.my_training' is not a module's name"),
        (".my_training:one_step", "Write it as in an import: my_training:one_step."),
        ("my_trainign:one_step", "there is no module 'my_trainign' in "),
        ("my_trainign:one_step", "Nearest: my_training."),
        ("zzz:one_step", "Run from the folder that holds it."),
        ("absent.part:one_step", "there is no module 'absent' in "),
        ("lab.absent:one_step", "there is no module 'lab.absent' in "),
        ("my_training:one_stop", "has no 'one_stop'.\nNearest: one_step."),
        ("my_training:zzz", "has no 'zzz'.\nLook at its spelling."),
        ("my_training:number", "it is of type int, not a function."),
        ("my_training:nothing", "it is None, not a function."),
        ("my_training:later", "it is async, so that a call runs nothing."),
        ("my_training:each", "it is a generator, so that a call runs nothing."),
        ("my_training:model", "it needs arguments: model(input: torch.Tensor)"),
        ("my_training:needs", "it needs arguments: needs(x, y=2)."),
    ],
)
def test_a_function_that_cannot_be_called_is_refused(program, capsys, name, phrase):
    program(ONE_STEP + OTHERS)
    program("", "lab/__init__.py")
    assert cli.main(["record", name]) == 1
    message = capsys.readouterr().err
    assert message.startswith(f"autograd-lab: '{name}' can't be called: ")
    assert phrase in message


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("import absent_package", ModuleNotFoundError),
        ("def step(: pass", SyntaxError),
        ("raise OSError('while importing')", OSError),
        ("def step(): open('absent.txt')", FileNotFoundError),
        ("def step(): return 1 / 0", ZeroDivisionError),
        ("import torch\ndef step(): torch.ones(1).backward()", RuntimeError),
        ("def step(): raise SystemExit(7)", SystemExit),
    ],
    ids=["missing import", "syntax", "file at import", "file", "division", "torch", "exit"],
)
def test_an_exception_of_the_user_passes_through_unchanged(program, text, error):
    program(text)
    with pytest.raises(error) as caught:
        cli.main(["record", "my_training:step", "--html", "page.html"])
    assert caught.type is error


def test_what_led_to_an_exception_is_shown_and_written(program, capsys):
    program("import torch\ndef step(): (torch.ones(2, requires_grad=True) * 3).backward()")
    with pytest.raises(RuntimeError, match="scalar outputs"):
        cli.main(["record", "my_training:step", "--html", "page.html"])
    assert "mul(" in capsys.readouterr().out
    assert "scalar outputs" in Path("page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", ["--html", "--json"])
@pytest.mark.parametrize("place", [".", "my_training.py/page.html"], ids=["folder", "in a file"])
def test_a_place_that_cannot_be_written_is_refused_before_the_function_runs(
    program, capsys, option, place
):
    program("def step(): raise AssertionError")
    assert cli.main(["record", "my_training:step", option, place]) == 1
    message = capsys.readouterr().err
    assert "can't be written.\nThe reason: it is a f" in message
    assert message.endswith(("Choose another place.\n", f"for example step.{option[2:]}.\n"))


def test_one_file_for_page_and_recording_is_refused(program, capsys):
    program("def step(): raise AssertionError")
    assert cli.main(["record", "my_training:step", "--html", "a", "--json", "./a"]) == 1
    assert "--html and --json both name it.\nGive each its own file." in capsys.readouterr().err


def test_a_folder_without_write_permission_is_refused(program, monkeypatch, capsys):
    program("def step(): raise AssertionError")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    assert cli.main(["record", "my_training:step", "--html", "page.html"]) == 1
    assert "it may not be written to" in capsys.readouterr().err


def test_a_full_disk_is_told_after_the_recording_is_printed(program, monkeypatch, capsys):
    def full(path, data):
        raise OSError(28, "No space left on device")

    program()
    monkeypatch.setattr(Path, "write_bytes", full)
    assert cli.main(["record", "my_training:one_step", "--json", "s.json"]) == 1
    printed = capsys.readouterr()
    assert "MulBackward0" in printed.out
    assert "s.json can't be written.\nThe reason: No space left on device." in printed.err


# demo


def test_demo_writes_a_folder_for_each_model_and_says_what_it_saw(short_demo, tmp_path, capsys):
    out = tmp_path / "with a space"
    assert cli.main(["demo", "--out", str(out)]) == 0
    written = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    files = ["replay.html", "gradient_flow.png", "recording.json"]
    assert written == {
        str(Path(model, name)) for model in ("convnet", "transformer") for name in files
    }
    text, errors = capsys.readouterr()
    assert errors == ""  # a progress bar is for terminals
    assert text.count("accuracy on held-out images: ") == 2
    assert f"Open {out / 'convnet' / 'replay.html'} in a browser." in text
    for model in ("convnet", "transformer"):
        recording = al.load_recording(out / model / "recording.json")
        assert repr(recording).splitlines()[0] in text
        accumulated = list(recording.events_of(GradAccumulated))
        assert accumulated
        assert [event.before for event in accumulated] == [None] * len(accumulated)


def test_demo_refuses_a_file_as_its_folder_before_it_trains(short_demo, tmp_path, capsys):
    (tmp_path / "taken").write_text("mine", "utf-8")
    assert cli.main(["demo", "--out", str(tmp_path / "taken")]) == 1
    message = capsys.readouterr().err
    assert f"{tmp_path / 'taken' / 'convnet'} can't be written." in message
    assert f"{tmp_path / 'taken'} is a file, not a folder." in message
    assert (tmp_path / "taken").read_text("utf-8") == "mine"


@pytest.mark.parametrize("device", ["nonsense", "cuda:99"])
def test_demo_refuses_a_device_that_is_not_there(tmp_path, monkeypatch, capsys, device):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo", "--device", device]) == 1
    assert f"asks for '{device}'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_demo_names_a_wrong_environment_variable(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(doors.VARIABLE, "nonsense")
    assert cli.main(["demo"]) == 1
    assert f"{doors.VARIABLE} asks for 'nonsense'" in capsys.readouterr().err


# notebooks and check


def test_notebooks_writes_the_learners_copy(tmp_path, capsys):
    assert cli.main(["notebooks", str(tmp_path / "learn")]) == 0
    lesson = json.loads((tmp_path / "learn/01_tape.ipynb").read_text("utf-8"))
    assert [cell["outputs"] for cell in lesson["cells"] if cell.get("outputs")] == []
    assert f"{Path('learn', '01_tape.ipynb')}: written" in capsys.readouterr().out


def test_notebooks_keeps_outputs_where_asked(tmp_path):
    assert cli.main(["notebooks", str(tmp_path / "read"), "--with-outputs"]) == 0
    lesson = json.loads((tmp_path / "read/01_tape.ipynb").read_text("utf-8"))
    assert any(cell.get("outputs") for cell in lesson["cells"])


def test_notebooks_refuses_a_file_as_its_folder(tmp_path, capsys):
    (tmp_path / "taken").write_text("mine", "utf-8")
    assert cli.main(["notebooks", str(tmp_path / "taken")]) == 1
    assert "taken can't be used: it is a file." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "folder", "handed_on"),
    [
        ([], "learn", []),
        (["mine"], "mine", []),
        (["--no-browser", "--port=8890"], "learn", ["--no-browser", "--port=8890"]),
        (["mine", "--allow-root"], "mine", ["--allow-root"]),
        (["--allow-root", "mine"], "mine", ["--allow-root"]),
    ],
)
def test_lab_opens_jupyterlab_and_hands_other_options_on(monkeypatch, arguments, folder, handed_on):
    opened = []
    monkeypatch.setattr(
        commands.lessons.teach, "open_lab", lambda *given: opened.append(given) or 7
    )
    assert cli.main(["lab", *arguments]) == 7
    assert opened == [(Path(folder), handed_on)]


def test_pages_without_what_jupyterlab_brings_along_says_what_to_install(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, "nbconvert", None)
    monkeypatch.delitem(sys.modules, "autograd_lab.teach.pages", raising=False)
    assert cli.main(["pages", str(tmp_path / "out")]) == 1
    message = capsys.readouterr().err
    assert "nbconvert is not installed, which comes with JupyterLab" in message
    assert "pip install 'autograd-lab[lab]'" in message
    assert not (tmp_path / "out").exists()


def test_pages_refuses_a_file_as_its_folder(tmp_path, capsys):
    (tmp_path / "taken").write_text("mine", "utf-8")
    assert cli.main(["pages", str(tmp_path / "taken")]) == 1
    assert "taken can't be written.\nThe reason: it is a file" in capsys.readouterr().err


def test_check_says_that_this_machine_is_ready(monkeypatch, capsys):
    monkeypatch.delenv(doors.VARIABLE, raising=False)
    assert cli.main(["check"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("setup: ok\n")
    assert re.search(r"^torch \d", text, re.MULTILINE)


def test_check_fails_where_the_device_is_wrong(monkeypatch, capsys):
    monkeypatch.setenv(doors.VARIABLE, "nonsense")
    assert cli.main(["check"]) == 1
    assert "asks for 'nonsense'" in capsys.readouterr().out
