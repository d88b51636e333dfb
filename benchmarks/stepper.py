"""Measure the Stepper from Python: time and bytes of its packs and its pages."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import autograd_lab as al
from autograd_lab.recording import Recording
from autograd_lab.show import pack_of
from autograd_lab.show.module import module_css, module_js
from autograd_lab.show.stepper_text import stepper_static

from .models import chain, transformer

__all__ = ["measure_stepper"]

NODES = (100, 1000, 5000)
MOST_KB = {1000: 300, 5000: 1300}  # on the wire, in a notebook
MOST_PAGE_KB = 300  # of the transformer's step


def measure_stepper() -> dict[str, dict[str, float]]:
    """Print and return seconds and kB: of the pack, all that goes to a notebook, and the page."""
    print("\nStepper, values='auto'   nodes   pack s   pack kB   wire kB   page kB")
    found = {
        f"chain of {nodes} nodes": _measured(f"chain of {nodes}", _chain(nodes), MOST_KB.get(nodes))
        for nodes in NODES
    }
    step = transformer()
    with al.record(step.model) as recorder:
        step.loss().backward()
    name = "transformer"
    found[name] = _measured(name, recorder.recording, None, MOST_PAGE_KB)
    return found


def _chain(nodes: int) -> Recording:
    """A chain whose forward calls and backward nodes are `nodes` together."""
    return al.record_step(lambda: chain(nodes // 2).backward())


def _measured(
    name: str, recording: Recording, most_wire: int | None, most_page: int | None = None
) -> dict[str, float]:
    start = time.perf_counter()
    pack = pack_of(recording)
    seconds = time.perf_counter() - start
    still = stepper_static(recording, 0, "")
    wire = sum(map(len, (pack, module_js(), module_css(), still))) / 1e3
    with tempfile.TemporaryDirectory() as folder:
        page = al.to_html(recording, Path(folder) / "page.html").stat().st_size / 1e3
    nodes = len(recording.ops) + len(recording.nodes)
    bounds = [f"wire <= {most_wire} kB"] if most_wire else []
    bounds += [f"page <= {most_page} kB"] if most_page else []
    target = f"   (target {', '.join(bounds)})" if bounds else ""
    sizes = f"{len(pack) / 1e3:9.0f} {wire:9.0f} {page:9.0f}"
    print(f"  {name:20} {nodes:8} {seconds:8.2f} {sizes}{target}")
    return {"pack_s": seconds, "pack_kb": len(pack) / 1e3, "wire_kb": wire, "page_kb": page}
