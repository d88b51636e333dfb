"""What nbval does not look at: that something is stored, that it is stable, that it can be read."""

import re
from itertools import pairwise

import nbformat
import pytest

from tests.notebooks.lessons import HOME, ROOT, code_cells, each_lesson, patterns, tags, texts

BANNED = {
    r"\bOutput\(": "an Output widget: nbval sees its content as the cell's output",
    r"\binteract(ive|_manual)?\(": "it uses Output inside",
    r"\bclear_output\(": "nbval ignores it",
    r"\bdisplay_id=|\bupdate_display\(": "nbval ignores updates",
    r";\s*$": "nbval runs with store_history=False, so a closing ; hides nothing",
    r"^\s*%%?\w*time": "wall clock in the output",
    r"\bpyplot\b": "global state of matplotlib",
    r"nbval|NBVAL": "a lesson shows no markers of its test; use cell tags",
}
UNSTABLE = {
    r"0x[0-9a-f]{6,}": "an address",
    r"/(home|tmp|Users|root|work)/|site-packages": "a path",
    r"\d\.\d{9,}": "more than 8 decimals",
    r"\x1b\[": "terminal colours",
    r"-0\.0*\b(?!\d)": "a negative zero",
}
IGNORED_CELLS = 0  # the budget for outputs that are run and not compared
LONGEST_CELL = 10
LONGEST_LINE = 74  # characters, beside an open file browser
HEADING = re.compile(r"^(#+) ", re.MULTILINE)


@pytest.fixture
def notebook(path):
    return nbformat.read(path, as_version=4)


@each_lesson
def test_every_cell_was_run_once_from_top_to_bottom(notebook):
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))


@each_lesson
def test_there_is_enough_to_compare(notebook):
    cells = code_cells(notebook)
    ignored = [cell for cell in cells if "nbval-ignore-output" in tags(cell)]
    compared = [cell for cell in cells if cell.outputs and cell not in ignored]
    assert len(ignored) <= IGNORED_CELLS
    assert len(compared) >= len(cells) / 2
    assert not any("nbval-skip" in tags(cell) for cell in cells)


@each_lesson
def test_an_error_is_stored_exactly_where_it_is_expected(notebook):
    for cell in code_cells(notebook):
        has_error = any(output.output_type == "error" for output in cell.outputs)
        assert has_error == ("raises-exception" in tags(cell)), cell.source


@each_lesson
def test_no_stderr_is_stored(notebook):
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    assert not [output for output in outputs if output.get("name") == "stderr"]


@each_lesson
@pytest.mark.parametrize("pattern", BANNED, ids=BANNED.values())
def test_no_cell_uses_what_nbval_does_not_see(notebook, pattern):
    found = [c.source for c in code_cells(notebook) if re.search(pattern, c.source, re.MULTILINE)]
    assert not found


@each_lesson
@pytest.mark.parametrize("pattern", UNSTABLE, ids=UNSTABLE.values())
def test_no_output_holds_what_differs_between_runs(notebook, pattern):
    shown = [text for cell in code_cells(notebook) for text in texts(cell)]
    assert shown
    assert not [text for text in shown if re.search(pattern, text)]


@each_lesson
def test_code_cells_are_short(notebook):
    lengths = {
        cell.source: sum(bool(line.strip()) for line in cell.source.splitlines())
        for cell in code_cells(notebook)
    }
    assert not [source for source, length in lengths.items() if length > LONGEST_CELL]


@each_lesson
def test_code_lines_fit_a_window_of_1024_pixels(notebook):
    lines = [line for cell in code_cells(notebook) for line in cell.source.splitlines()]
    assert not [line for line in lines if len(line) > LONGEST_LINE]


@each_lesson
def test_widgets_are_stored_as_text_and_without_state(notebook):
    assert "widgets" not in notebook.metadata
    for cell in code_cells(notebook):
        for output in cell.outputs:
            data = output.get("data", {"text/plain": ""})
            assert "application/vnd.jupyter.widget-view+json" not in data
            assert "text/plain" in data


@each_lesson
def test_images_have_alternative_text(notebook):
    for cell in code_cells(notebook):
        for output in cell.outputs:
            for kind in ("image/png", "image/jpeg"):
                if kind in output.get("data", {}):
                    assert output.metadata.get(kind, {}).get("alt"), cell.source
        assert len(re.findall("<img", "".join(texts(cell)))) == len(
            re.findall(r"<img[^>]* alt=\"[^\"]+", "".join(texts(cell)))
        )


@each_lesson
def test_there_is_one_title_and_headings_go_down_one_step_at_a_time(notebook):
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    levels = [len(marks) for marks in HEADING.findall(text)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(down - up <= 1 for up, down in pairwise(levels))


@each_lesson
def test_the_beginning_says_what_for_how_long_and_for_whom(path, notebook):
    """In the first cell; lesson 00 says it after its first picture."""
    beginning = notebook.cells[:4] if path.stem == "00_start" else notebook.cells[:1]
    text = "\n".join(cell.source for cell in beginning if cell.cell_type == "markdown")
    assert notebook.cells[0].source.startswith("# ")
    for word in ("explain", "minutes", "memory", "assumes"):
        assert word in text


@each_lesson
def test_the_first_code_cell_sets_the_seed_where_numbers_are_drawn(notebook):
    cells = [cell.source for cell in code_cells(notebook)]
    draws = re.search(r"\btorch\.(rand|normal|nn\.)|\.net\(\)", "\n".join(cells))
    assert "torch.manual_seed(" in cells[0] or not draws


def test_the_first_screen_is_a_title_a_sentence_and_six_lines_after_the_imports():
    cells = nbformat.read(HOME / "00_start.ipynb", as_version=4).cells
    title, _, sentence = cells[0].source.partition("\n\n")
    assert title == "# Start here"
    assert len(sentence) < 200
    assert all(
        words in sentence for words in ("Shift+Enter", "up to 30 s", "click", "**→**", "reaches x")
    )
    lines = [line for line in cells[1].source.splitlines() if line and "import" not in line]
    assert len(lines) == 6


@each_lesson
def test_a_prediction_is_asked_before_it_is_revealed(notebook):
    source = "\n".join(cell.source for cell in code_cells(notebook))
    asked = re.findall(r"(\w+)\.ask\(\)", source)
    assert asked
    for name in asked:
        assert source.index(f"{name}.ask()") < source.index(f"{name}.reveal(")


@each_lesson
def test_every_code_cell_that_shows_something_has_words_before_or_after_it(notebook):
    kinds = [cell.cell_type for cell in notebook.cells]
    assert not re.search("(code,){4,}", ",".join(kinds) + ",")


@each_lesson
def test_the_readme_names_the_lesson(path):
    assert f"]({path.name})" in (HOME / "README.md").read_text(encoding="utf-8")


def sanitised(text):
    for regex, replacement in patterns():
        text = re.sub(regex, replacement, text)
    return text


@pytest.mark.parametrize(
    "text",
    [
        "step 3 of 17: gradient norm 0.5673, MulBackward",
        "[64.0, 32.0] 1e-06 nan inf (2, 3)",
        "<table><tr><td>12</td></tr></table>",
        "line 7 of cell",
    ],
)
def test_sanitising_keeps_plain_numbers(text):
    assert sanitised(text) == text


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("MulBackward0, 3", "MulBackward, 3"),
        ("In[12] line 7", "In[n] line 7"),
        ("<style>a{b:1}</style>5", "<style></style>5"),
    ],
)
def test_sanitising_folds_what_it_is_for(text, folded):
    assert sanitised(text) == folded


def test_there_are_lessons_and_each_has_source_and_solutions():
    names = {path.stem for path in HOME.glob("*.ipynb")}
    assert names
    assert names == {path.stem for path in (HOME / "src").glob("*.py")}
    assert names == {path.stem for path in (HOME / "solutions").glob("*.py")}
    assert (ROOT / "LICENSE-text").exists()
