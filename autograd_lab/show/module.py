"""Join the files of the Stepper's view: one ES module and one style sheet, as they are.

No bundler: what is read in `static/` is what runs.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from .palette import DARK, LIGHT, css_variables

__all__ = ["SCRIPTS", "SHEETS", "module_css", "module_js"]

SCRIPTS = (  # in this order; the last one has the export
    "elements.js",
    "pack.js",
    "search.js",
    "boxes.js",
    "drawing.js",
    "camera.js",
    "graph.js",
    "timeline.js",
    "inspector.js",
    "cards.js",
    "code.js",
    "tools.js",
    "keys.js",
    "sight.js",
    "stepper.js",
)
SHEETS = ("stepper.css",)
COMMENT = re.compile(r"^[ \t]*(?://.*|/\*[\s\S]*?\*/[ \t]*)$", re.MULTILINE)


@cache
def module_js() -> str:
    """The ES module; its default export has `render({model, el})`.

    Comments on lines of their own and indentation stay behind: a third of what every widget sends.
    """
    text = COMMENT.sub("", "\n".join(map(_read, SCRIPTS)))
    return "\n".join(line for line in map(str.strip, text.splitlines()) if line)


@cache
def module_css() -> str:
    """The style sheet after the palette; the view itself finds out whether it is dark."""
    light = f".al-stepper{{{css_variables(LIGHT)}}}"
    dark = f'.al-stepper[data-theme="dark"]{{{css_variables(DARK)}}}'
    return "\n".join([light + dark, *map(_read, SHEETS)])


def _read(name: str) -> str:
    return files("autograd_lab.show").joinpath("static", name).read_text(encoding="utf-8")
