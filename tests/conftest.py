"""A leak is a failure: hooks, modes, patches, figures and threads are gone after each test."""

from __future__ import annotations

import sys
import threading

import pytest

from tests.chromium import browser, open_page

__all__ = ["browser", "open_page"]


def state_that_outlives_a_test() -> dict[str, object]:
    """What a test could leave behind, by name; rooms that nobody loaded are not loaded here."""
    state: dict[str, object] = {"threads": {t.name for t in threading.enumerate() if not t.daemon}}
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "overrides"):
        hooks = torch.nn.modules.module
        state |= {
            "function modes": len(torch.overrides._get_current_function_mode_stack()),
            "dispatch modes": torch._C._len_torch_dispatch_stack(),
            "engine entry": (
                torch.autograd._engine_run_backward.__module__,
                torch.autograd.graph._engine_run_backward.__module__,
            ),
            "grad mode": torch.is_grad_enabled(),
            "saved tensor hooks": torch._C._autograd._top_saved_tensors_default_hooks(True) is None,
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "anomaly mode": torch.is_anomaly_enabled(),
            "default dtype": torch.get_default_dtype(),
            "module hooks": tuple(
                len(getattr(hooks, name))
                for name in dir(hooks)
                if name.startswith("_global_") and "hooks" in name
                if hasattr(getattr(hooks, name), "__len__")
            ),
        }
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        state["figures"] = tuple(pyplot.get_fignums())
    return state


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    """Compare the process before and after each test."""
    before = state_that_outlives_a_test()
    yield
    after = state_that_outlives_a_test()
    left = {name: (before[name], after[name]) for name in before if before[name] != after[name]}
    assert not left, f"the test left something behind (before, after): {left}"
