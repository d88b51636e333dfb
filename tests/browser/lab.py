"""A JupyterLab of its own for a test: a free port, a random token, nothing of the user's."""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEWS = "settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
IDLE = """() => {
  const kernel = window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel;
  return kernel?.status === 'idle' && kernel.connectionStatus === 'connected';
}"""
START_S = 60


@contextlib.contextmanager
def jupyter_lab(folder: Path, notebooks: Path):
    """Serve `notebooks`; yields the address of a notebook as a function of its name.

    folder  for all that the server writes
    """
    news = folder / NEWS  # else a dialog about news covers the page
    news.parent.mkdir(parents=True)
    news.write_text('{"fetchNews": "false", "checkForUpdates": false}')
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    places = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTER_DATA_DIR": "data",
        "IPYTHONDIR": "ipython",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    }
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": notebooks,
        "IdentityProvider.token": token,
        "LabApp.expose_app_in_browser": True,
    }
    log = folder / "server.log"
    with log.open("w") as said:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"]
            + [f"--{name}={value}" for name, value in options.items()],
            env={
                **os.environ,
                **{name: str(folder / place) for name, place in places.items()},
                "PYTHONPATH": str(ROOT),
            },
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    base = f"http://127.0.0.1:{port}"
    try:
        _wait_until_up(f"{base}/api?token={token}", server, log)
        yield lambda name: f"{base}/lab/tree/{name}?token={token}&reset"
    finally:
        os.killpg(server.pid, signal.SIGTERM)  # the server ends its kernels, if it is given time
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(15)
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _wait_until_up(address, server, log):
    end = time.monotonic() + START_S
    while time.monotonic() < end and server.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=2) as answer:
            if answer.status == 200:
                return
        time.sleep(0.2)
    message = f"JupyterLab did not start:\n{log.read_text()[-2000:]}"
    raise RuntimeError(message)


def write_notebook(path: Path, *cells: str):
    """Write a notebook of code cells without outputs."""
    blank = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {
        "cells": [
            {**blank, "id": f"cell-{at}", "source": source} for at, source in enumerate(cells)
        ],
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(book))


def open_notebook(page, address):
    """Open a notebook and wait for its kernel."""
    page.goto(address)
    _wait_for_kernel(page)


def reload_notebook(page):
    """Load the page again; the kernel lives on."""
    page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    page.reload()
    _wait_for_kernel(page)


def run_all(page):
    """Run all cells; the promise of the command ends when they have."""
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_function(IDLE)


def run_cell(page, number):
    """Run one cell and return its text."""
    cell = page.locator(".jp-CodeCell").nth(number)
    cell.locator(".jp-InputArea-editor").click()
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-cell')")
    page.wait_for_function(IDLE)
    return cell.locator(".jp-OutputArea-output").last.inner_text().strip()


def _wait_for_kernel(page):
    page.wait_for_function("() => window.jupyterapp", timeout=60_000)
    page.evaluate("() => window.jupyterapp.restored")
    page.wait_for_selector("#jupyterlab-splash", state="detached")
    page.wait_for_selector(".jp-NotebookPanel .jp-Cell")
    page.wait_for_function(IDLE, timeout=90_000)
