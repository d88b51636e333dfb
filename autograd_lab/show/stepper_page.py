"""Turn a pack into HTML in which the Stepper runs: no kernel, no network, works from a file.

The view's own module and style travel deflated, as the pack does: a browser that can't inflate
could draw nothing anyway, and gets words.
"""

from __future__ import annotations

import base64
import html
import json
import zlib
from functools import cache

from .module import module_css, module_js

__all__ = ["framed_stepper", "stepper_html"]

HOST = "al-stepper-host"
DATA = "al-stepper-data"
TITLE = "Autograd stepper"
FRAME_HEIGHT, FRAME_EXTRA = 600, 4  # the Stepper's own, and its rim
NO_SCRIPT = "The Stepper needs JavaScript, which is off here."
# `model` is what anywidget's is to the view: a change tells those who listen.
START = """
const data = JSON.parse(document.getElementById("%(data)s").textContent);
const host = document.getElementById("%(host)s");
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const state = { ...data.state, pack: new DataView(bytes(data.pack).buffer) };
const heard = new Map();
const model = {
  get: (name) => state[name],
  set(name, value) {
    if (state[name] === value) return;
    state[name] = value;
    for (const listen of [...(heard.get(`change:${name}`) ?? [])]) listen();
  },
  on(name, listen) { heard.set(name, [...(heard.get(name) ?? []), listen]); },
  off(name, listen) { heard.set(name, (heard.get(name) ?? []).filter((one) => one !== listen)); },
  save_changes() {},
};
try {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser has no DecompressionStream; any of 2023 or later has");
  }
  const inflate = new DecompressionStream("deflate");
  const packed = new Blob([bytes(data.view)]).stream().pipeThrough(inflate);
  const view = await new Response(packed).json();
  const style = document.createElement("style");
  style.textContent = view.css;
  document.head.append(style);
  const url = URL.createObjectURL(new Blob([view.js], { type: "text/javascript" }));
  const module = await import(url);
  URL.revokeObjectURL(url);
  await module.default.render({ model, el: host });
} catch (error) {
  host.textContent = `The Stepper did not start: ${error.message ?? error}.`;
}
"""


def stepper_html(pack: bytes, *, step: int = 0, hide: str = "", height: int = 0) -> str:
    """The place where the Stepper draws, its data and what starts it; once in a page."""
    state = {"step": step, "hide": hide, "height": height, "message": "", "fault": ""}
    data = {"state": state, "pack": base64.b64encode(pack).decode(), "view": _view()}
    text = json.dumps(data).replace("<", "\\u003c")
    start = START % {"data": DATA, "host": HOST}
    return (
        f'<div id="{HOST}"></div><noscript><p>{NO_SCRIPT}</p></noscript>'
        f'<script type="application/json" id="{DATA}">{text}</script>'
        f'<script type="module">{start}</script>'
    )


def framed_stepper(pack: bytes, *, step: int, hide: str, height: int) -> str:
    """The Stepper in an iframe of its own: its script runs, but reaches nothing around it."""
    height = height or FRAME_HEIGHT
    body = stepper_html(pack, step=step, hide=hide, height=height)
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{TITLE}</title></head>"
        f'<body style="margin:0">{body}</body></html>'
    )
    return (
        f'<iframe title="{TITLE}" sandbox="allow-scripts"'
        f' style="width:100%;height:{height + FRAME_EXTRA}px;border:0"'
        f' srcdoc="{html.escape(page)}"></iframe>'
    )


@cache
def _view() -> str:
    view = json.dumps({"js": module_js(), "css": module_css()})
    return base64.b64encode(zlib.compress(view.encode(), 9)).decode()
