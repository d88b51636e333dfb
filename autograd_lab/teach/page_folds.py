"""Turn a lesson that was run into what a reader without a kernel gets: guess first, then open.

A page shows every output at once, so the answer to a question would stand right below it.
"""

from __future__ import annotations

import re
from itertools import groupby

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from autograd_lab.teach.lessons import solution_source

__all__ = ["FOLD_END", "FOLD_START", "fold_answers"]

# Metadata of the first and the last cell of a fold; the first one holds the words to click.
FOLD_START, FOLD_END = "fold_start", "fold_end"

ANSWER = "The answer: guess first, then open"
SOLUTION = "One solution"
TABLE = "The progress table, with the answers"
_REVEALS = re.compile(r"\blesson\.\w+\.reveal\(")
_EXERCISE = re.compile(r"exercise:(\w+)")


def fold_answers(notebook: NotebookNode) -> NotebookNode:
    """Mark which cells a page folds, and add the solution after each exercise.

    Neighbours fold together: a cell that reveals a prediction, and those that the lesson's author
    tagged `answer`.
    """
    cells = [part for cell in notebook.cells for part in (cell, *_solutions(cell))]
    for summary, group in groupby(cells, key=_summary):
        if summary:
            first, *_, last = [*group] * 2  # of one cell: twice the same
            first.metadata[FOLD_START], last.metadata[FOLD_END] = summary, True
    notebook.cells = cells
    return notebook


def _summary(cell: NotebookNode) -> str | None:
    """The words on the fold that a cell belongs to, or None."""
    tags = cell.metadata.get("tags", [])
    if "solution" in tags:
        return SOLUTION
    is_code = cell.cell_type == "code"
    if "answer" in tags or (is_code and _REVEALS.search(cell.source)):
        return ANSWER
    return TABLE if is_code and "teach.progress(" in cell.source else None


def _solutions(cell: NotebookNode) -> list[NotebookNode]:
    """The written solution of the exercise in a cell, as a cell that was not run."""
    names = _EXERCISE.findall(" ".join(cell.metadata.get("tags", [])))
    sources = filter(None, map(solution_source, names))
    return [new_code_cell(source, metadata={"tags": ["solution"]}) for source in sources]
