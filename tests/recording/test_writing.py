"""Saving leaves whole files: the new ones or the old ones, and never another's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autograd_lab.errors import DamagedFileError, OutputError
from autograd_lab.recording import Recording, load_recording
from tests.recording import samples


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def failing(monkeypatch, name, suffix):
    """Let the disk fail at one step of writing the files of one kind."""
    really = getattr(Path, name)

    def fail(self, *arguments):
        if suffix in self.name:
            message = "no space left on device"
            raise OSError(message)
        return really(self, *arguments)

    monkeypatch.setattr(Path, name, fail)


@pytest.mark.parametrize("step", ["write_bytes", "replace"])
@pytest.mark.parametrize("suffix", [".safetensors", ".json"], ids=["values", "JSON"])
@pytest.mark.parametrize("old", [samples.small, samples.large])
def test_a_failure_leaves_the_old_recording_whole(old, suffix, step, tmp_path, monkeypatch):
    path = old().save(tmp_path / "step.json")
    before = contents(tmp_path)
    failing(monkeypatch, step, suffix)
    newer = samples.large().events

    with pytest.raises(OSError, match="no space"):
        samples.small(events=newer + newer[:1]).save(path)

    monkeypatch.undo()
    assert contents(tmp_path) == before
    assert load_recording(path) == old()


@pytest.mark.parametrize("suffix", [".safetensors", ".json"], ids=["values", "JSON"])
def test_a_failure_of_the_first_save_leaves_nothing(suffix, tmp_path, monkeypatch):
    failing(monkeypatch, "replace", suffix)
    with pytest.raises(OSError, match="no space"):
        samples.large().save(tmp_path / "step.json")
    assert contents(tmp_path) == {}


def test_a_recording_that_cannot_be_stored_leaves_the_old_one(tmp_path):
    path = samples.small().save(tmp_path / "step.json")
    before = contents(tmp_path)
    with pytest.raises(TypeError, match=r"Recording\.nodes holds a set"):
        samples.small(nodes=({1, 2},)).save(path)
    assert contents(tmp_path) == before


def test_saving_twice_changes_nothing(tmp_path):
    samples.large().save(tmp_path / "step.json")
    before = contents(tmp_path)
    samples.large().save(tmp_path / "step.json")
    assert contents(tmp_path) == before


def test_saving_over_a_recording_removes_the_values_of_the_old_one(tmp_path):
    path = samples.large().save(tmp_path / "step.json")
    samples.small().save(path)
    assert list(tmp_path.iterdir()) == [path]
    assert load_recording(path) == samples.small()


def test_a_values_file_that_is_not_surely_ours_is_never_removed(tmp_path):
    path = samples.large().save(tmp_path / "step.json")
    document = json.loads(path.read_bytes())
    (tmp_path / document["values"]["file"]).rename(tmp_path / "weights.safetensors")
    document["values"]["file"] = "weights.safetensors"
    path.write_text(json.dumps(document))

    samples.small().save(path)

    assert sorted(contents(tmp_path)) == ["step.json", "weights.safetensors"]


@pytest.mark.parametrize("name", ["model.json", "model", "model.safetensors.json"])
def test_the_users_own_weights_beside_it_stay_untouched(name, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"the user's weights")
    samples.large().save(tmp_path / name)
    assert (tmp_path / "model.safetensors").read_bytes() == b"the user's weights"
    assert load_recording(tmp_path / name) == samples.large()


def test_recordings_whose_names_share_a_stem_keep_their_values(tmp_path):
    names = ["lr0.1", "lr0.01", "lr0.json", "lr0.safetensors"]
    for number, name in enumerate(names):
        snapshot = samples.snapshot(samples.LARGE["int64"] + number)
        event = samples.small().events[0]
        samples.small(events=(type(event)(op=event.op, outputs=(snapshot,)),)).save(tmp_path / name)

    firsts = [
        load_recording(tmp_path / name).events[0].outputs[0].values.array[0] for name in names
    ]

    assert firsts == [0, 1, 2, 3]


@pytest.mark.parametrize("names", [("step.json", "step"), ("step", "step.json")], ids=" ".join)
def test_saving_over_a_recording_leaves_the_equal_values_of_another(names, tmp_path):
    for name in names:
        samples.large().save(tmp_path / name)
    samples.small().save(tmp_path / names[1])
    assert load_recording(tmp_path / names[0]) == samples.large()
    assert load_recording(tmp_path / names[1]) == samples.small()


def test_both_files_can_move_together(tmp_path):
    samples.large().save(tmp_path / "step.json")
    moved = tmp_path.rename(tmp_path.with_name("elsewhere"))
    (moved / "step.json").rename(moved / "renamed.json")
    assert load_recording(moved / "renamed.json") == samples.large()


@pytest.mark.parametrize("name", ["with space.json", "schrïtt ∇ 步.json", "no_suffix", ".hidden"])
@pytest.mark.parametrize("kind", [str, Path])
def test_any_file_name_is_fine(name, kind, tmp_path):
    path = samples.large().save(kind(tmp_path / name))
    assert path == tmp_path / name
    assert load_recording(kind(path)) == samples.large()
    assert len(contents(tmp_path)) == 2


def test_a_relative_path_is_relative_to_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    samples.large().save("step.json")
    assert load_recording("step.json") == samples.large()


@pytest.mark.parametrize("make", [samples.small, samples.large])
def test_a_folder_that_does_not_exist_is_named_and_not_made(make, tmp_path):
    with pytest.raises(OutputError, match=r"there is no folder .*nowhere"):
        make().save(tmp_path / "nowhere" / "step.json")
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("make", [samples.small, samples.large])
def test_a_folder_in_the_place_of_the_file_stays_as_it_is(make, tmp_path):
    (tmp_path / "step.json").mkdir()
    with pytest.raises(OSError, match=r"step\.json"):
        make().save(tmp_path / "step.json")
    assert list(tmp_path.iterdir()) == [tmp_path / "step.json"]


def test_saving_over_a_foreign_file_replaces_it_whole(tmp_path):
    (tmp_path / "step.json").write_bytes(b'{"values": {"file": "../other", "sha256": ""}}')
    path = samples.small().save(tmp_path / "step.json")
    assert load_recording(path) == samples.small()


def test_no_damage_goes_unnoticed_where_two_saves_were_mixed(tmp_path):
    path = samples.large().save(tmp_path / "step.json")
    values = next(tmp_path.glob("*.safetensors"))
    blob = values.read_bytes()
    samples.small().save(path)
    values.write_bytes(blob[::-1])
    assert load_recording(path) == samples.small()
    samples.large().save(path)
    values.write_bytes(blob[::-1])
    with pytest.raises(DamagedFileError, match=values.name):
        load_recording(path)


def test_the_empty_recording_is_small(tmp_path):
    path = Recording().save(tmp_path / "step.json")
    assert path.stat().st_size < 400
