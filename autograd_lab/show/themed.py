"""Turn a picture drawn in light colours, or in both, into SVG that follows the reader's theme.

An image has no style from the page around it, but browsers tell it which colour scheme that page
has there: JupyterLab's dark theme counts, whatever the system's setting.
"""

from __future__ import annotations

import base64
import re
from dataclasses import fields

from .palette import DARK, LIGHT, Palette, css_variables

__all__ = ["either_picture", "follow_theme"]

COLOUR = re.compile(r"#[0-9a-f]{6}\b")
ATTRIBUTE = re.compile(r'\b(fill|stroke)="(#[0-9a-f]{6})"')  # takes no variable; a style does
DARK_ONLY = "@media (prefers-color-scheme:dark)"


def follow_theme(svg: str) -> str:
    """Write the colours of the light palette as variables, which change in the dark."""
    names = {getattr(LIGHT, name): name for name in _names(LIGHT)}

    def variable(found: re.Match[str]) -> str:
        name = names.get(found[0])
        return f"var(--al-{name.replace('_', '-')})" if name else found[0]

    text = COLOUR.sub(variable, ATTRIBUTE.sub(r'style="\1:\2"', svg))
    style = f"svg{{{css_variables(LIGHT)}}}{DARK_ONLY}{{svg{{{css_variables(DARK)}}}}}"
    return _with_style(text, style)


def either_picture(light: bytes, dark: bytes, width: float, height: float) -> str:
    """Put two PNG images into one SVG of this size that shows one of them."""
    images = "".join(
        f'<image class="{name}" width="{width:g}" height="{height:g}"'
        f' href="data:image/png;base64,{base64.b64encode(png).decode()}"/>'
        for name, png in (("light", light), ("dark", dark))
    )
    style = f".dark{{display:none}}{DARK_ONLY}{{.dark{{display:inline}}.light{{display:none}}}}"
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}">'
    return _with_style(f"{opening}{images}</svg>", style)


def _names(palette: Palette) -> list[str]:
    """The fields, those for areas last: where two share a colour, the last one counts."""
    names = [field.name for field in fields(palette)]
    return sorted(names, key=lambda name: name == "background")


def _with_style(svg: str, style: str) -> str:
    start = svg.index("<svg")
    end = svg.index(">", start) + 1
    return f"{svg[:end]}<style>{style}</style>{svg[end:]}"
