"""Turn `src/*.py` (jupytext percent format) into notebooks with outputs, the same bytes each time.

    python notebooks/build.py build          run every source and write its notebook
    python notebooks/build.py --check        fail if a notebook's cells differ from its source
    python notebooks/build.py --sync-back    take cells edited in JupyterLab back into the source

Add names to do only some: `build.py build 01_tape`. The outputs are what nbval compares with, so
whatever differs between two runs or two machines is dropped here or pinned in the environment.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

HERE = Path(__file__).resolve().parent
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
# A Stepper is stored as picture, tables and text: its view would need the widget's model.
WITHOUT_VIEWS = {"AUTOGRAD_LAB_STATIC": "1"}
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# The same as in conftest.py: what a stored output may depend on.
PINNED = {
    "AUTOGRAD_LAB_DEVICE": "cpu",
    "AUTOGRAD_LAB_VARIANT": "0",
    "COLUMNS": "100",
    "CUDA_VISIBLE_DEVICES": "",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code is the number of notebooks out of step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", nargs="?", choices=["build"], help="run and write (default)")
    parser.add_argument("--check", action="store_true", help="compare sources, run nothing")
    parser.add_argument("--sync-back", action="store_true", help="write sources from notebooks")
    parser.add_argument("--only", metavar="NAME", action="append", help="for example 01_tape")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the notebooks")
    options = parser.parse_args(arguments)
    sources = sorted((HERE / "src").glob("*.py"))
    out_of_step = 0
    for source in sources:
        if options.only and source.stem not in options.only:
            continue
        notebook = options.out / f"{source.stem}.ipynb"
        if options.check:
            same = is_in_step(source, notebook)
            out_of_step += not same
            print(f"{notebook.name}: {'in step' if same else 'OUT OF STEP, run `make notebooks`'}")
        elif options.sync_back:
            cells = nbformat.read(notebook, as_version=4)
            source.write_text(to_source(cells, like=source), encoding="utf-8")
            print(f"{source.name}: written from {notebook.name}")
        else:
            if not is_in_step(
                source, notebook
            ):  # teach.progress() reads the tasks of lessons there
                nbformat.write(load(source), notebook)
            nbformat.write(run(load(source)), notebook)
            print(f"{notebook.name}: built")
    return out_of_step


def load(source: Path) -> NotebookNode:
    """Read a source as a notebook without outputs; cell ids follow from its name and places."""
    notebook = jupytext.read(source, fmt="py:percent")
    for place, cell in enumerate(notebook.cells):
        cell["id"] = hashlib.sha256(f"{source.stem}/{place}".encode()).hexdigest()[:12]
        cell["metadata"] = {"tags": tags} if (tags := cell.metadata.get("tags")) else {}
    notebook.metadata = METADATA
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def run(notebook: NotebookNode) -> NotebookNode:
    """Run all cells in a fresh kernel and an empty folder, and return the notebook normalised."""
    os.environ.update(PINNED)
    paths = [str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            notebook,
            timeout=120,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        ).execute(env={**os.environ, **WITHOUT_VIEWS})
    return normalised(notebook)


def normalised(notebook: NotebookNode) -> NotebookNode:
    """Drop what no two runs share: widget models, timestamps, versions, paths in tracebacks."""
    notebook.metadata = METADATA
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                output["traceback"] = [f"{output.ename}: {output.evalue}"]
            output.get("data", {}).pop(WIDGET_VIEW, None)
    return notebook


def is_in_step(source: Path, notebook: Path) -> bool:
    """Whether a stored notebook has the cells, tags and ids that its source would give."""
    if not notebook.exists():
        return False
    stored = nbformat.read(notebook, as_version=4)
    return _cells(stored) == _cells(load(source))


def to_source(notebook: NotebookNode, *, like: Path) -> str:
    """Return the percent-format text of a notebook: cells and tags, no header, no outputs.

    Cells that are also in the source `like` keep the blank lines that stand after them there.
    """
    old = jupytext.read(like, fmt="py:percent").cells if like.exists() else []
    spacing = {cell.source: cell.metadata.get("lines_to_next_cell") for cell in old}
    for cell in notebook.cells:
        cell["metadata"] = {"tags": tags} if (tags := cell.metadata.get("tags")) else {}
        if (lines := spacing.get(cell.source)) is not None:
            cell.metadata["lines_to_next_cell"] = lines
    notebook.metadata = {
        "jupytext": {"notebook_metadata_filter": "-all", "cell_metadata_filter": "tags,-all"}
    }
    return jupytext.writes(notebook, fmt="py:percent")


def _cells(notebook: NotebookNode) -> list[tuple[str, str, str, list[str]]]:
    return [
        (cell.id, cell.cell_type, cell.source, cell.metadata.get("tags", []))
        for cell in notebook.cells
    ]


if __name__ == "__main__":
    sys.exit(main())
