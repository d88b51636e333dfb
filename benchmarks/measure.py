"""Turn ways of running one step into figures: medians of seconds, peaks of torch's allocations."""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from torch.profiler import ProfilerActivity, profile

__all__ = ["median_times", "options_of", "peak_nbytes"]


def options_of(
    program: str, about: str | None, rounds: int, arguments: Sequence[str] | None
) -> argparse.Namespace:
    """Read `--rounds` and `--out` of a benchmark; what is wrong ends it with words."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=about)
    parser.add_argument("--rounds", type=int, default=rounds, help="default: %(default)s")
    parser.add_argument("--out", type=Path, help="a JSON file for the same figures")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds} measures nothing: give 1 or more")
    return options


def median_times(
    variants: Mapping[str, Callable[[], object]],
    rounds: int,
    settle: Callable[[], object] = lambda: None,
) -> dict[str, float]:
    """Median seconds of each variant.

    Every round runs each variant once, in turn, so that noise meets all alike.

    settle  runs before each, unmeasured: else a step of a millisecond pays for the cache that a
            slow variant left behind (a plain step of the tiny MLP 1.3 times)
    """
    times: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(rounds + 2):
        for name, run in variants.items():
            settle()
            start = time.perf_counter()
            run()
            if number >= 2:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def peak_nbytes(run: Callable[[], object]) -> int:
    """Most bytes that torch's CPU allocator held during a run, above what it held before."""
    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        run()
    held = peak = 0
    assert profiler.profiler is not None
    assert profiler.profiler.kineto_results is not None
    for event in profiler.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()  # pyright: ignore[reportAttributeAccessIssue] (not in the stub)
            peak = max(peak, held)
    return peak
