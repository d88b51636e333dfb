"""`python -m benchmarks`: print what recording costs, and store the same as JSON."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import torch

import autograd_lab as al
from autograd_lab.replay import layout_graph

from .measure import median_times, peak_nbytes
from .models import STEPS, chain
from .stepper import measure_stepper

try:
    import torchlens  # pyright: ignore[reportMissingImports] (a peer, measured where it is installed)
except ImportError:
    torchlens = None

# Of the program that is recorded. Reading `recorder.recording` the first time assembles it, after
# the block: "none, read" and "auto, read" measure both together.
TARGETS = {
    ("transformer", "none"): 1.3,
    ("transformer", "auto"): 1.7,
    ("resnet18", "none"): 1.2,
    ("tiny mlp", "none"): 3.0,
}


OUT = Path(__file__).with_name("results.json")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all, or the models named."""
    options = _options(arguments)
    torch.set_num_threads(1)
    results: dict[str, Any] = {"torch": str(torch.__version__), "rounds": options.rounds}
    for name in options.models or STEPS:
        rounds = 20 * options.rounds if name == "tiny mlp" else options.rounds
        results[name] = _measure_model(name, rounds)
    if not options.models:
        results["chain of 5000"] = _measure_chain()
        results["stepper"] = measure_stepper()
        results["import, ms"] = _measure_import()
    if torchlens is not None:  # last: it wraps torch's functions for good, and all gets slower
        print("\ntorchlens, against the plain steps above")
        for name in options.models or STEPS:
            results[name]["time"]["torchlens"] = _measure_torchlens(name, results[name], rounds=5)
    options.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    names = ", ".join(map(repr, STEPS))
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Print what recording costs, as ratios in one run, and store the same as JSON.",
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"{names}; default: all")
    parser.add_argument(
        "--rounds", type=int, default=15, help="default: %(default)s; 20 times as many for tiny mlp"
    )
    parser.add_argument("--out", type=Path, default=OUT, help="default: benchmarks/results.json")
    options = parser.parse_args(arguments)
    for name in options.models:
        if name not in STEPS:
            parser.error(f"there is no model {name!r}. Models: {names}")
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds} measures nothing: give 1 or more")
    if not options.out.parent.is_dir():
        parser.error(f"--out: there is no folder {options.out.parent}")
    return options


def _measure_model(name: str, rounds: int) -> dict[str, Any]:
    step = STEPS[name]()
    model, loss_of = step.model, step.loss
    recorders: list[al.Recorder] = []

    def plain() -> None:
        model.zero_grad()
        loss_of().backward()

    def recorded(values: str) -> Callable[[], None]:
        def run() -> None:
            model.zero_grad()
            with al.record(model, values=values) as recorder:
                loss_of().backward()
            recorders[:] = [recorder]

        return run

    def read(values: str) -> Callable[[], None]:
        def run() -> None:
            recorded(values)()
            assert recorders[0].recording.nodes

        return run

    def anomaly() -> None:
        model.zero_grad()
        with torch.autograd.set_detect_anomaly(True, check_nan=True):
            loss_of().backward()

    def settle() -> None:
        recorders.clear()  # else the next variant pays for letting go of the last recording
        plain()

    variants = {
        "plain": plain,
        "none": recorded("none"),
        "auto": recorded("auto"),
        "plain afterwards": plain,
    }
    times = median_times(variants, rounds, settle)
    # apart: their thousands of objects make the collector run in the others' time
    others = {"none, read": read("none"), "auto, read": read("auto"), "anomaly mode": anomaly}
    times |= median_times(others, rounds, settle)
    peaks = {}
    for values, run in {"plain": plain, "none": recorded("none"), "auto": recorded("auto")}.items():
        model.zero_grad()
        recorders.clear()
        peaks[values] = peak_nbytes(run)
    peak = peaks.pop("plain")
    peaks = {values: nbytes / peak for values, nbytes in peaks.items()}
    recorded("none")()
    recording = recorders[0].recording
    with tempfile.TemporaryDirectory() as folder:
        nbytes = recording.save(Path(folder) / "step.json").stat().st_size
    counts = f"{len(recording.nodes)} nodes, {len(recording.ops)} calls"
    print(f"\n{name}: {counts}, plain step {1e3 * times['plain']:.2f} ms")
    for variant, seconds in times.items():
        target = TARGETS.get((name, variant))
        wanted = f"   (target <= {target}x)" if target else ""
        memory = f"   peak memory {peaks[variant]:.2f}x" if variant in peaks else ""
        print(f"  {variant:18} {seconds / times['plain']:5.2f}x{memory}{wanted}")
    for values in ("none", "auto"):
        added = (times[f"{values}, read"] - times[values]) / times["plain"]
        print(
            f"  values={values!r}: reading the recording adds {added:.2f}x, once, after the block"
        )
    print(f"  JSON with values='none': {nbytes / 1e3:.0f} kB")
    ratios = {variant: seconds / times["plain"] for variant, seconds in times.items()}
    return {"plain_s": times["plain"], "time": ratios, "peak memory": peaks, "json_nbytes": nbytes}


def _measure_torchlens(name: str, measured: dict[str, Any], rounds: int) -> float:
    step, lens = STEPS[name](), cast("Any", torchlens)

    def traced() -> None:
        step.model.zero_grad()
        capture = lens.options.CaptureOptions(save_grads=True)
        log = lens.trace(step.model, step.x, capture=capture)
        log.log_backward(step.loss_of(log[log.output_layers[0]].out))

    ratio = median_times({"torchlens": traced}, rounds)["torchlens"] / measured["plain_s"]
    print(f"  {name:18} {ratio:5.2f}x")
    return ratio


def _measure_chain() -> dict[str, float]:
    times: dict[str, float] = {}

    def timed(what: str, run: Callable[[], Any]) -> Any:  # noqa: ANN401 (whatever the step returns)
        start = time.perf_counter()
        result = run()
        times[what] = time.perf_counter() - start
        return result

    timed("plain", lambda: chain().backward())
    recording = timed("record", lambda: al.record_step(lambda: chain().backward(), values="none"))
    timed("lay out", lambda: layout_graph(recording, max_nodes=None))
    timed("text", lambda: repr(recording))
    with tempfile.TemporaryDirectory() as folder:
        path = timed("save", lambda: recording.save(Path(folder) / "chain.json"))
        timed("load", lambda: al.load_recording(path))
        timed("page", lambda: al.to_html(recording, Path(folder) / "chain.html"))
    print("\nchain of 5000 calls, seconds")
    for what, seconds in times.items():
        print(f"  {what:18} {seconds:6.3f}" + ("   (target <= 0.15)" if what == "lay out" else ""))
    return times


def _measure_import() -> float:
    code = (
        "import time; start = time.perf_counter(); "
        "import autograd_lab; print(time.perf_counter() - start)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(5)
    ]
    milliseconds = 1e3 * sorted(float(run.stdout) for run in runs)[2]
    print(f"\nimport autograd_lab: {milliseconds:.0f} ms   (target < 50)")
    return milliseconds


if __name__ == "__main__":
    main()
