"""The test of the tests: change every stored output, and nbval has to notice each change."""

import copy
import re

import nbformat
import pytest

from tests.notebooks.lessons import code_cells, each_lesson, failed_cells, patterns


def changed(text):
    """Raise the last digit that is compared by one, or append a mark where there is none."""
    folded = {
        place
        for regex, _ in patterns()
        for found in re.finditer(regex, text)
        for place in range(*found.span())
    }
    digits = [found.start() for found in re.finditer(r"\d", text) if found.start() not in folded]
    if not digits:
        return text + "!"
    last = digits[-1]
    return text[:last] + str((int(text[last]) + 1) % 10) + text[last + 1 :]


def compared_kinds(output):
    """The places in an output that nbval compares: a field of its own or a kind of its data."""
    fields = {"stream": ["text"], "error": ["evalue"]}
    return fields.get(output.output_type) or [kind for kind in output.data if "image" not in kind]


def change(output, kind):
    box = output if kind in output else output.data
    box[kind] = changed(box[kind])


@each_lesson
def test_an_unchanged_lesson_passes(path, tmp_path):
    assert failed_cells(nbformat.read(path, as_version=4), tmp_path) == set()


@pytest.mark.slow
@each_lesson
def test_a_change_in_any_stored_output_is_noticed(path, tmp_path):
    """One change in a cell at a time, else a noticed one would hide one that is not."""
    plain = nbformat.read(path, as_version=4)
    changes = [
        [
            (place, kind)
            for place, output in enumerate(cell.outputs)
            for kind in compared_kinds(output)
        ]
        for cell in code_cells(plain)
    ]
    assert any(changes)
    for turn in range(max(map(len, changes))):
        notebook = copy.deepcopy(plain)
        wanted = {number for number, cell in enumerate(changes) if turn < len(cell)}
        for number in wanted:
            place, kind = changes[number][turn]
            change(code_cells(notebook)[number].outputs[place], kind)
        assert failed_cells(notebook, tmp_path) == wanted


@each_lesson
def test_an_output_that_vanishes_or_appears_is_noticed(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    cells = code_cells(notebook)
    for cell in cells:
        new = nbformat.v4.new_output("stream", name="stdout", text="new\n")
        cell.outputs = [] if cell.outputs else [new]
    assert failed_cells(notebook, tmp_path) == set(range(len(cells)))
