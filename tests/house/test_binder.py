"""What Binder and conda install is what pyproject.toml asks for, and Binder opens lesson 00.

No Docker, no conda, no network: repo2docker says what it would build, and the scripts of `binder/`
run here, except for the one line of postBuild in which pip fetches what it builds the package with.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat.sign import NotebookNotary
from packaging.requirements import Requirement

from tools.links import address_in, slug_of

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}
SCRIPTS = ["binder/postBuild", "binder/start", ".ci/run"]


def lines_of(path):
    lines = (ROOT / path).read_text("utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def conda_packages(path):
    return yaml.safe_load((ROOT / path).read_text("utf-8"))["dependencies"]


# environment.yml and binder/environment.yml


def test_binder_installs_the_same_with_the_cpu_wheel_and_without_the_package():
    same = [
        line
        for line in lines_of("environment.yml")
        if line not in ("  - pytorch>=2.10", "      - -e .")
    ]
    wheel = [
        "      - --index-url https://download.pytorch.org/whl/cpu",
        "      - torch>=2.10",
    ]
    assert lines_of("binder/environment.yml") == same + wheel
    assert len(same) == len(lines_of("environment.yml")) - 2


def test_conda_installs_what_a_user_with_jupyterlab_needs_at_the_same_bounds():
    asked = map(Requirement, PROJECT["dependencies"] + PROJECT["optional-dependencies"]["lab"])
    wanted = {f"{CONDA_NAMES.get(one.name, one.name)}{one.specifier}" for one in asked}
    found = conda_packages("environment.yml")
    assert found[:2] == ["python=3.12", "pip"]
    assert found[-1] == {"pip": ["-e ."]}
    assert set(found[2:-1]) == wanted


def test_torch_of_binder_has_the_bound_of_the_package():
    (torch,) = (one for one in PROJECT["dependencies"] if Requirement(one).name == "torch")
    assert conda_packages("binder/environment.yml")[-1]["pip"][-1] == torch


# What repo2docker would build


def dry_run(folder):
    """The Dockerfile that repo2docker would build from a folder, without Docker."""
    command = [sys.executable, "-m", "repo2docker", "--no-build", "--debug", str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return run.stdout + run.stderr


def test_repo2docker_takes_python_scripts_and_packages_from_binder():
    said = dry_run(ROOT)
    assert "Building conda environment for python=3.12\n" in said
    assert 'env update -p ${NB_PYTHON_PREFIX} --file "binder/environment.yml"' in said
    assert "RUN ./binder/postBuild" in said
    assert 'R2D_ENTRYPOINT="${REPO_DIR}/binder/start"' in said


def packages_come_before_the_code(said):
    return said.index("env update -p") < said.index("COPY --chown=0:0 src/ ")


def test_a_commit_does_not_install_all_packages_again():
    assert packages_come_before_the_code(dry_run(ROOT))


def test_the_package_itself_among_them_would(tmp_path):
    shutil.copytree(ROOT / "binder", tmp_path / "binder")
    with (tmp_path / "binder/environment.yml").open("a") as stream:
        stream.write("      - -e ..\n")
    assert not packages_come_before_the_code(dry_run(tmp_path))


# The scripts


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_is_bash_that_git_keeps_executable(script):
    content = (ROOT / script).read_bytes()
    assert content.startswith(b"#!/usr/bin/env bash\n")
    assert b"\r" not in content
    subprocess.run(["bash", "-n", script], cwd=ROOT, check=True)
    listed = subprocess.check_output(["git", "ls-files", "-s", script], cwd=ROOT, text=True)
    assert listed.split()[:1] == ["100755"]


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """A home with the repository in it, as Binder has it, after postBuild."""
    home = tmp_path_factory.mktemp("home")
    for folder in ("autograd_lab", "notebooks", "binder"):
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, home / folder, ignore=leave)
    commands = home / "commands"
    commands.mkdir()
    for name, line in {
        "python": f'[ "$2" = pip ] && echo "$@" >> pip-calls || exec {sys.executable} "$@"',
        "autograd-lab": f'exec {sys.executable} -m autograd_lab.cli "$@"',
    }.items():
        (commands / name).write_text(f"#!/bin/sh\n{line}\n")
        (commands / name).chmod(0o755)
    others = {key: text for key, text in os.environ.items() if not key.startswith("JUPYTER")}
    path = os.pathsep.join([str(commands), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**others, "HOME": str(home), "PYTHONPATH": str(home), "PATH": path}
    subprocess.run(["binder/postBuild"], cwd=home, env=environment, check=True)
    return home


def test_post_build_installs_the_package_alone(image):
    assert (image / "pip-calls").read_text() == "-m pip install --no-deps --no-cache-dir -e .\n"


def test_post_build_writes_the_learners_copy(image):
    lessons = {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert {path.name for path in (image / "learn").iterdir()} == lessons


def test_post_build_trusts_lessons_with_and_without_outputs(image):
    (data,) = {path.parent for path in image.rglob("nbsignatures.db")}
    notary = NotebookNotary(data_dir=str(data))
    lessons = [*(image / "notebooks").glob("*.ipynb"), *(image / "learn").glob("*.ipynb")]
    trusted = [notary.check_signature(nbformat.read(path, as_version=4)) for path in lessons]
    notary.store.close()
    assert trusted
    assert all(trusted)


def test_post_build_keeps_the_question_about_news_from_the_first_lesson(image):
    (settings,) = image.rglob("notification.jupyterlab-settings")
    place = "lab/user-settings/@jupyterlab/apputils-extension"
    assert settings.parent.as_posix().endswith(place)
    assert json.loads(settings.read_text()) == {"fetchNews": "false", "checkForUpdates": False}


def test_post_build_compiles_the_package(image):
    compiled = {path.name.split(".")[0] for path in (image / "autograd_lab").rglob("*.pyc")}
    assert compiled == {path.stem for path in (ROOT / "autograd_lab").rglob("*.py")}


def test_start_hands_the_server_its_environment():
    show = "import os; print(*(os.environ[name] for name in os.sys.argv[1:]))"
    names = ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "AUTOGRAD_LAB_DEVICE"]
    command = ["binder/start", sys.executable, "-c", show, *names]
    said = subprocess.check_output(command, cwd=ROOT, env={"PATH": os.environ["PATH"]}, text=True)
    assert said == "1 1 cpu\n"


# The badge, and the workflow that builds the image


def test_the_badge_opens_a_lesson_of_the_learners_copy():
    badge = r"https://mybinder\.org/v2/gh/([\w./-]+)/HEAD\?urlpath=lab/tree/learn/(\w+\.ipynb)"
    found = set(re.findall(badge, (ROOT / "README.md").read_text("utf-8")))
    assert found == {(slug_of(address_in(ROOT)), "00_start.ipynb")}
    assert (ROOT / "notebooks/00_start.ipynb").exists()


def test_the_image_is_built_and_tried_every_week():
    text = (ROOT / ".github/workflows/binder.yml").read_text("utf-8")
    workflow = yaml.load(text, yaml.BaseLoader)  # else YAML 1.1 reads the key `on` as true
    (schedule,) = workflow["on"]["schedule"]
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", schedule["cron"])
    runs = "\n".join(step.get("run", "") for step in workflow["jobs"]["image"]["steps"])
    assert "jupyter-repo2docker --no-run" in runs
    assert "autograd-lab check" in runs
    assert "nbconvert --to notebook --execute" in runs
