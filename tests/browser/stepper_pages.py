"""Pages that hold the view of a Stepper and a model like anywidget's, for tests to reach."""

import base64
import json
import zlib

from autograd_lab.show.module import module_css, module_js
from autograd_lab.show.pack import pack_of

EXPORT = "export default { render };"
SHIM = """
const state = JSON.parse(document.getElementById("state").textContent);
state.pack = new DataView(Uint8Array.from(atob(state.pack), (c) => c.charCodeAt(0)).buffer);
const heard = new Map();
const model = {
  sent: [],
  get: (name) => state[name],
  set(name, value) {
    if (state[name] === value) return;
    state[name] = value;
    for (const listen of [...(heard.get(`change:${name}`) ?? [])]) listen();
  },
  on(name, listen) { heard.set(name, [...(heard.get(name) ?? []), listen]); },
  off(name, listen) { heard.set(name, heard.get(name).filter((one) => one !== listen)); },
  save_changes() { this.sent.push(state.step); },
};
const host = document.getElementById("host");
Object.assign(window, { model, heard, host, view, state });
window.closeView = await view.render({ model, el: host });
window.isRendered = true;
"""


def stepper_page(recording, *, before="", **state):
    """The page of a recording; `before` is script that runs before the view's."""
    return page_of_pack(pack_of(recording, hide=state.get("hide", "")), before=before, **state)


def page_of_pack(pack, *, before="", **state):
    """The page of a pack's bytes, or of a pack as a dict."""
    if isinstance(pack, dict):
        pack = zlib.compress(json.dumps(pack).encode())
    blank = {"step": 0, "hide": "", "height": 0, "message": "", "fault": ""}
    held = {"pack": base64.b64encode(pack).decode(), **blank, **state}
    module = module_js()
    assert module.count(EXPORT) == 1
    script = module.replace(EXPORT, "const view = { render };") + SHIM
    script = script.replace("</", r"<\/")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Stepper</title>'
        '<meta name="color-scheme" content="light dark">'
        f"<style>body{{margin:8px}}{module_css()}</style></head>"
        '<body><main id="host"></main>'
        f'<script type="application/json" id="state">{json.dumps(held)}</script>'
        f'<script>{before}</script><script type="module">{script}</script>'
        "</body></html>"
    )


def pack_as_dict(recording):
    """What the page would inflate."""
    return json.loads(zlib.decompress(pack_of(recording)))
