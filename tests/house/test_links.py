"""One address of the repository, and `make links` that changes it everywhere."""

import re
import subprocess
from pathlib import Path

import pytest

from tools.links import address_in, slug_of, tracked_texts, write_address

ROOT = Path(__file__).parents[2]
OLD, NEW = "https://github.com/ann/lab", "https://git.example.org/group/ben/autograd"


def addresses(texts, name):
    """Every "owner/name" that stands after a forge's address, also in the short form of badges."""
    form = re.compile(rf"(?:https://[\w.-]+|/gh|/github)/([\w.-]+/(?:{name}|autograd[_-]lab))\b")
    return {found for text in texts for found in form.findall(text)}


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "pyproject.toml").write_text(f'[project]\nurls.Repository = "{OLD}"\n')
    (tmp_path / "README.md").write_text(
        f"[code]({OLD}), [issues]({OLD}/issues), [run](https://binder.example/v2/gh/ann/lab/HEAD)\n"
        "untouched: ann/laboratory, joann/lab\n"
    )
    (tmp_path / "picture.png").write_bytes(b"\0ann/lab")
    (tmp_path / "untracked.md").write_text(OLD)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(
        ["git", "add", "pyproject.toml", "README.md", "picture.png"], cwd=tmp_path, check=True
    )
    return tmp_path


def test_no_tracked_file_has_another_address():
    slug = slug_of(address_in(ROOT))
    found = addresses(tracked_texts(ROOT).values(), re.escape(slug.split("/")[-1]))
    assert found == {slug}


def test_a_second_address_is_seen():
    texts = ["https://github.com/ann/lab", "https://binder.example/v2/gh/ben/lab/HEAD"]
    assert addresses(texts, "lab") == {"ann/lab", "ben/lab"}


def test_an_address_is_written_everywhere(checkout):
    changed = write_address(checkout, NEW)
    assert [path.name for path in changed] == ["README.md", "pyproject.toml"]
    assert address_in(checkout) == NEW
    assert (checkout / "README.md").read_text() == (
        f"[code]({NEW}), [issues]({NEW}/issues), "
        "[run](https://binder.example/v2/gh/group/ben/autograd/HEAD)\n"
        "untouched: ann/laboratory, joann/lab\n"
    )


def test_files_git_does_not_track_and_pictures_stay(checkout):
    write_address(checkout, NEW)
    assert (checkout / "untracked.md").read_text() == OLD
    assert (checkout / "picture.png").read_bytes() == b"\0ann/lab"


def test_a_second_run_changes_nothing(checkout):
    write_address(checkout, NEW + ".git")
    assert write_address(checkout, NEW + "/") == []


def test_an_address_that_contains_the_old_one_is_written_once(checkout):
    write_address(checkout, "https://git.example.org/mirror/ann/lab")
    assert address_in(checkout) == "https://git.example.org/mirror/ann/lab"


@pytest.mark.parametrize("address", ["", "ann/lab", "https://github.com", "file:///ann/lab"])
def test_what_is_no_address_is_refused_before_anything_changes(checkout, address):
    with pytest.raises(SystemExit, match="make links"):
        write_address(checkout, address)
    assert address_in(checkout) == OLD
