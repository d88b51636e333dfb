"""Turn a recording into what its boxes say over time: calls, runs of nodes, `.grad` of leaves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from autograd_lab.recording import (
    BackwardStarted,
    GradAccumulated,
    OpCalled,
    PassId,
    Recording,
    Snapshot,
    TensorId,
)
from autograd_lab.replay import (
    Frame,
    known_modules,
    known_names,
    module_of,
    names_of_node,
    names_of_op,
)

from .bad_steps import BadSteps
from .box_numbers import held_numbers, norm_numbers, op_numbers, run_numbers
from .pack_views import PackViews
from .passes import BackwardPass, NodeRun
from .text_width import first_fitting
from .words import amount

__all__ = ["found_by", "grads", "op_columns", "runs"]

WIDE = 200.0  # where no box is drawn


def op_columns(recording: Recording, views: PackViews, bad: BadSteps) -> dict[str, list[Any]]:
    """By call: the step that returned it (0 never) and the second line of its box from then on."""
    steps = [0] * len(recording.ops)
    texts = [""] * len(recording.ops)
    for step, event in enumerate(recording.events, 1):
        if isinstance(event, OpCalled):
            steps[event.op] = step
            texts[event.op] = _call_text(recording, event, views, bad)
    return {"step": steps, "text": texts}


def runs(
    frame: Frame,
    passes: Iterable[BackwardPass],
    views: PackViews,
    bad: BadSteps,
) -> list[dict[str, Any]]:
    """Each run of a node: when, what it says, the steps at which its gradients came.

    A node that got some gradients and never ran starts after the last step.
    """
    recording, histories = frame.recording, frame.history.passes
    never = len(recording.events) + 1
    found: list[dict[str, Any]] = []
    for passed in passes:
        pass_id = passed.started.pass_id
        history = histories[pass_id]
        idle = [
            node for node, came in history.arrivals.items() if came and node not in history.started
        ]
        failed = passed.failed
        if failed is not None and failed[1] in history.started:
            failed = None  # its run says so
        for run in [*passed.runs, *(NodeRun(node=node, step=never) for node in idle)]:
            is_failed = failed is not None and run.node == failed[1]
            if failed is not None and is_failed:
                run.step = failed[0]
            found.append(
                {
                    "node": run.node,
                    "pass": pass_id,
                    "start": run.step,
                    "finish": run.finish,
                    "error": passed.error is not None and not run.finish and run.step < never,
                    "text": "raised"
                    if is_failed
                    else _run_text(recording, pass_id, run, views, bad),
                    "arrive": history.arrivals.get(run.node, []),
                    "expect": history.expected.get(run.node, 1),
                }
            )
    return found


def grads(frame: Frame, views: PackViews) -> list[dict[str, Any]]:
    """What each leaf and input holds and its `.grad`: the second line of its box, step by step.

    What cleared a `.grad` between two passes was not seen; what a pass finds counts from its start.
    """
    told = _Leaves(frame, views)
    for step, event in enumerate(frame.recording.events, 1):
        match event:
            case OpCalled():
                for one in event.inputs:
                    told.meet(step, one)
            case GradAccumulated():
                told.change(step, event.leaf, event.after)
            case BackwardStarted():
                told.compare(step)
            case _:
                pass
    return [{"tensor": leaf, "changes": lines} for leaf, lines in sorted(told.lines.items())]


class _Leaves:
    """What leaves and inputs hold so far, and what their boxes said."""

    def __init__(self, frame: Frame, views: PackViews) -> None:
        self.recording, self.history, self.views = frame.recording, frame.history, views
        self.lines: dict[TensorId, list[list[Any]]] = {}
        self._values: dict[TensorId, Snapshot] = {}
        self._grads: dict[TensorId, Snapshot | None] = {}
        self.compare(0)

    def meet(self, step: int, value: Snapshot) -> None:
        self._values.setdefault(value.tensor, value)
        self._tell(step, value.tensor)

    def change(self, step: int, leaf: TensorId, grad: Snapshot | None) -> None:
        self._grads[leaf] = grad
        self._tell(step, leaf)

    def compare(self, step: int) -> None:
        """What a pass found that nobody saw change."""
        held = self.history.grads(step)
        for leaf in sorted({*held, *self._grads}):
            if held.get(leaf) is not self._grads.get(leaf):
                self.change(step, leaf, held.get(leaf))

    def _tell(self, step: int, leaf: TensorId) -> None:
        choices = held_numbers(
            self.recording.tensor(leaf),
            self._values.get(leaf),
            self._grads.get(leaf),
            has_grad=leaf in self._grads,
        )
        text = first_fitting(choices, self.views.leaf_rooms.get(leaf, WIDE))
        if text:
            self.lines.setdefault(leaf, []).append([step, text])


def found_by(recording: Recording) -> dict[str, Any]:
    """The names and module paths that run-to knows, and those of each call and node."""
    names = sorted(known_names(recording))
    modules = sorted(known_modules(recording))
    name_at = {name: at for at, name in enumerate(names)}
    module_at = {module: at for at, module in enumerate(modules)}

    def places(own: Sequence[str]) -> list[int]:
        return [name_at[name] for name in dict.fromkeys(own)]

    return {
        "names": names,
        "modules": modules,
        "ops": {
            "names": [places(names_of_op(recording, op)) for op in recording.ops],
            "module": [_at(module_at, op.module) for op in recording.ops],
        },
        "nodes": {
            "names": [places(names_of_node(recording, node)) for node in recording.nodes],
            "module": [_at(module_at, module_of(recording, node)) for node in recording.nodes],
        },
    }


def _at(places: dict[str, int], module: str | None) -> int:
    return -1 if module is None else places[module]


def _call_text(recording: Recording, event: OpCalled, views: PackViews, bad: BadSteps) -> str:
    if not event.outputs:
        return ""
    ref = recording.tensor(event.outputs[0].tensor)
    choices = op_numbers(event.outputs, ref, is_birth=event.op in bad.op_births)
    if not choices and event.outputs[0].norm is not None:
        choices = norm_numbers(amount(event.outputs[0]))
    return first_fitting(choices, views.op_rooms.get(event.op, WIDE))


def _run_text(
    recording: Recording, pass_id: PassId, run: NodeRun, views: PackViews, bad: BadSteps
) -> str:
    is_leaf = recording.node(run.node).leaf is not None
    if not run.received:
        return ""
    choices = run_numbers(run, is_leaf=is_leaf, is_birth=(pass_id, run.node) in bad.run_births)
    return first_fitting(choices, views.node_rooms.get((pass_id, run.node), WIDE))
