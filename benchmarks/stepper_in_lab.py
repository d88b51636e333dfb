"""Measure the Stepper in JupyterLab: from the run of its cell to its picture, and from key to key.

Run it by itself, `python -m benchmarks.stepper_in_lab`, on a machine that does nothing else: it
starts a JupyterLab and a headless Chromium of its own.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.browser import lab

NODES = (1000, 5000)
MOST_SHOWN_MS = {1000: 400, 5000: 1500}
MOST_STEP_MS = 30
ROUNDS = 5
STEPS = 60
SETUP = """import time
import autograd_lab as al
from benchmarks.models import chain
recording = al.record_step(lambda: chain({half}).backward())
print(len(recording.nodes))"""
SHOW = "al.Stepper(recording)"
PYTHON = """start = time.perf_counter()
al.Stepper(recording)._repr_mimebundle_()
print(time.perf_counter() - start)"""
# a frame is on the screen when the message sent in its callback comes back
PAINTED = """
window.afterPaint = (done) => requestAnimationFrame(() => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => done(performance.now());
  port2.postMessage(0);
});
window.delays = [];
addEventListener('keydown', ({ timeStamp }) => {
  afterPaint((now) => delays.push(now - timeStamp));
}, true);
"""
RUN = """() => new Promise((resolve) => {
  const start = performance.now();
  const look = () => {
    const view = document.querySelector('.al-stepper');
    if (view?.parentElement.dataset.painted) afterPaint((now) => resolve(now - start));
    else requestAnimationFrame(look);
  };
  look();
  jupyterapp.commands.execute('notebook:run-cell');
})"""


def main() -> None:
    """Print medians and worst cases for each size."""
    with tempfile.TemporaryDirectory() as folder:
        notebooks, server = Path(folder, "notebooks"), Path(folder, "server")
        for place in (notebooks, server):
            place.mkdir()
        with lab.jupyter_lab(server, notebooks) as address, sync_playwright() as play:
            browser = play.chromium.launch(
                executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
            )
            for nodes in NODES:
                name = f"chain{nodes}.ipynb"
                lab.write_notebook(notebooks / name, SETUP.format(half=nodes // 2), SHOW, PYTHON)
                _measure(browser, address(name), nodes)
            browser.close()


def _measure(browser: Any, address: str, nodes: int) -> None:  # noqa: ANN401 (playwright's)
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.add_init_script(PAINTED)
    lab.open_notebook(page, address)
    lab.run_cell(page, 0)
    python = float(lab.run_cell(page, 2))
    shown = [_shown(page) for _ in range(ROUNDS)]
    page.locator(".al-stepper").focus()
    page.keyboard.press("n")
    delays = []
    for key in ("ArrowRight", "ArrowLeft"):
        page.evaluate("() => { delays.length = 0; }")
        for _ in range(STEPS):
            page.keyboard.press(key)
            page.wait_for_timeout(100)
        delays += page.evaluate("() => delays.slice(3)")
    late = statistics.quantiles(delays, n=20)[-1]
    print(
        f"{nodes} nodes: cell run to painted {statistics.median(shown):.0f} ms "
        f"({min(shown):.0f} to {max(shown):.0f}), Python's part alone {1e3 * python:.0f} ms "
        f"(target <= {MOST_SHOWN_MS[nodes]} ms); step painted after "
        f"{statistics.median(delays):.1f} ms, 95 % within {late:.1f}, "
        f"worst {max(delays):.1f} (target <= {MOST_STEP_MS} ms)"
    )


def _shown(page: Any) -> float:  # noqa: ANN401 (playwright's)
    page.locator(".jp-CodeCell").nth(1).locator(".jp-InputArea-editor").click()
    page.evaluate("() => jupyterapp.commands.execute('notebook:clear-cell-output')")
    page.wait_for_selector(".al-stepper", state="detached")
    took = page.evaluate(RUN)
    page.wait_for_function(lab.IDLE)
    return took


if __name__ == "__main__":
    main()
