"""Turn the lessons into pages that need no kernel and no network: run, with living Steppers.

This file needs what JupyterLab brings along (nbclient, nbconvert) and is loaded only by the command
that writes pages.
"""

from __future__ import annotations

import html
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter
from nbformat import NotebookNode

from autograd_lab.errors import LessonError
from autograd_lab.teach.lessons import find_lessons
from autograd_lab.teach.page_folds import fold_answers
from autograd_lab.teach.syllabus import syllabus

__all__ = ["write_index", "write_lesson_pages"]

# The stock template links require.js, MathJax and mermaid from the network; no lesson needs them.
# It has one theme: here JupyterLab's dark one follows it, for a reader whose system is dark.
TEMPLATE = """\
{%- extends 'lab/index.html.j2' -%}
{%- block html_head_js_requirejs -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_js_mermaidjs -%}{%- endblock -%}
{%- block html_head_css -%}
{{ resources.include_css("static/theme-dark.css")
   | replace("<style", '<style media="(prefers-color-scheme:dark)"') }}
<style>{{ resources.style }}</style>
{%- endblock -%}
{%- block body_header -%}
{{ super() }}<p class="al-note" role="note">{{ resources.note }}</p>
{%- endblock -%}
{%- block any_cell scoped -%}
{%- if cell.metadata.fold_start -%}
<details class="al-fold"><summary>{{ cell.metadata.fold_start }}</summary>
{%- endif -%}
{{ super() }}
{%- if cell.metadata.fold_end -%}</details>{%- endif -%}
{%- endblock -%}
"""
NOTE = (
    "You are reading a page: the Steppers work, the cells don't run. "
    "<code>make lab</code> or Binder runs them. Answers are folded: guess first, then open."
)
# JupyterLab's own have a contrast of 3.4 to 4.4 on a cell, and its pale prompts 2.2; with these all
# text has 4.5 or more.
COLOURS = (
    ":root{color-scheme:light dark;--jp-cell-prompt-not-active-opacity:1;"
    "--jp-mirror-editor-comment-color:#2f6f6f;--jp-mirror-editor-number-color:#006f00;"
    "--jp-mirror-editor-operator-color:#8a1bd6;--jp-mirror-editor-meta-color:#8a1bd6}"
    "@media (prefers-color-scheme:dark){:root{"
    "--jp-mirror-editor-comment-color:#6fb3b3;--jp-mirror-editor-number-color:#7fcf82;"
    "--jp-mirror-editor-operator-color:#c58aff;--jp-mirror-editor-meta-color:#c58aff}}"
)
# The words of a step stand in columns: JupyterLab's style for HTML would inherit the font of prose.
LOOK = (
    ".jp-Notebook pre,.jp-Notebook code{font-family:var(--jp-code-font-family)!important}"
    ".jp-Notebook pre{font-size:var(--jp-code-font-size);line-height:var(--jp-code-line-height)}"
    ".al-note,.al-fold>summary{font:var(--jp-content-font-size1)/1.5 var(--jp-content-font-family);"
    "color:var(--jp-content-font-color1);margin:0 0 1em var(--jp-cell-prompt-width);"
    "border-left:4px solid #6b7f94;padding:4px 12px}"
    ".al-fold>summary{cursor:pointer;font-weight:600}"
)
VIEW = {"AUTOGRAD_LAB_VIEW": "page", "AUTOGRAD_LAB_STATIC": ""}
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:18px/1.5 system-ui,sans-serif;max-width:40em;margin:3em auto;padding:0 1em}"
    "li{margin:.4em 0}"
)


def write_lesson_pages(
    folder: Path, *, say: Callable[[str], object] = print
) -> list[tuple[str, Path]]:
    """Run every lesson, write it as a page into `folder`, and return the titles and pages.

    Raises LessonError when a lesson can't be run, OSError when a page can't be written.
    """
    pages = []
    for file, lesson in zip(find_lessons(), syllabus(), strict=True):
        name = file.name.removesuffix(".ipynb")
        notebook = nbformat.reads(file.read_text(encoding="utf-8"), as_version=4)
        page = folder / f"{name}.html"
        page.write_text(_html(_run(notebook, name), lesson.title), encoding="utf-8")
        say(f"{page}: written")
        pages.append((lesson.title, page))
    return pages


def write_index(
    folder: Path, title: str, parts: Sequence[tuple[str, Sequence[tuple[str, Path]]]]
) -> Path:
    """Write index.html with a list of links for each part: (heading, [(words, page), ...])."""
    lines = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head><body>",
        f"<h1>{html.escape(title)}</h1><p>{NOTE}</p>",
    ]
    for heading, links in parts:
        lines.append(f"<h2>{html.escape(heading)}</h2><ul>")
        for words, page in links:
            place = html.escape(page.relative_to(folder).as_posix())
            lines.append(f'<li><a href="{place}">{html.escape(words)}</a></li>')
        lines.append("</ul>")
    index = folder / "index.html"
    index.write_text("\n".join([*lines, "</body></html>", ""]), encoding="utf-8")
    return index


def _run(notebook: NotebookNode, name: str) -> NotebookNode:
    """Run all cells in an empty folder; widgets without a page of their own stay as text."""
    with tempfile.TemporaryDirectory() as place:
        client = NotebookClient(
            notebook,
            timeout=120,
            kernel_name="python3",
            store_widget_state=False,
            resources={"metadata": {"path": place}},
        )
        try:
            client.execute(env={**os.environ, **VIEW})
        except CellExecutionError as error:
            message = f"Lesson {name} was not written. One of its cells failed: {error.ename}."
            raise LessonError(message, lesson=name) from error
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET_VIEW, None)
    return notebook


def _html(notebook: NotebookNode, title: str) -> str:
    exporter = HTMLExporter(raw_template=TEMPLATE)
    resources = {"metadata": {"name": title}, "style": COLOURS + LOOK, "note": NOTE}
    body, _ = exporter.from_notebook_node(fold_answers(notebook), resources)
    return body
