"""The README's code runs and prints what it shows; its commands, links and picture exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from autograd_lab import cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
CODE = [text for language, text in BLOCKS if language == "python"]
SHOWN = [text for language, text in BLOCKS if language == "text"]
COMMANDS = "".join(text for language, text in BLOCKS if language == "sh") + "\n".join(
    re.findall(r"`([^`\n]+)`", README)
)


def test_the_python_blocks_run_one_after_the_other_and_print_what_is_shown(tmp_path):
    assert CODE
    (tmp_path / "first.py").write_text("".join(CODE), "utf-8")
    run = subprocess.run(
        [sys.executable, "first.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "PATH": ""},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == "".join(SHOWN)
    assert {path.name for path in tmp_path.iterdir()} >= {"step.json", "step.html"}


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\bmake ([a-z]+)\b", COMMANDS))))
def test_a_make_target_exists(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("command", sorted(set(re.findall(r"autograd-lab ([a-z]+)\b", README))))
def test_a_command_exists(command, capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main([command, "--help"])


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)\s]+)\)", README))))
def test_a_link_inside_the_repository_leads_somewhere(link):
    headings = re.findall(r"^#+ (.+)$", README, re.MULTILINE)
    anchors = {"#" + re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings}
    assert link.startswith("https://") or link in anchors or (ROOT / link).exists()


def test_the_picture_is_small_and_has_words():
    (words, path) = re.search(r"!\[([^\]]+)\]\(([^)]+)\)", README).groups()
    assert len(words) > 100
    assert (ROOT / path).stat().st_size < 150_000


def test_code_fits_the_page():
    assert [line for _, text in BLOCKS for line in text.splitlines() if len(line) > 110] == []


def test_no_figure_is_left_to_fill_in():
    assert not re.search("FILL IN|TO MEASURE", README)
