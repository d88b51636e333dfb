"""Turn a recording into the pack of the Stepper: all that its page draws, in one compressed blob.

The format is strict JSON (no NaN; numbers to read are strings), deflated by zlib. The same
recording gives the same bytes. Steps are columns: 5 times smaller than a list of dicts.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

from autograd_lab.recording import NodeStarted, ProblemSeen, Recording
from autograd_lab.replay import Cursor, collector_paused, require_recording

from .bad_steps import BadSteps
from .pack_graph import found_by, grads, op_columns, runs
from .pack_steps import PackSteps
from .pack_times import marks, phases
from .pack_views import PackViews
from .passes import backward_passes
from .printable import is_printable, printable
from .recording_tables import problem_line
from .recording_text import headline, setting
from .turns import pass_starts
from .words import Words

__all__ = ["MOST_NODES", "NOTHING_DRAWN", "pack_of", "undrawn"]

VERSION = 1
MOST_NODES = 20_000
NOTHING_DRAWN = "There is nothing to draw: no call and no node was recorded."
LEAST_NBYTES, NBYTES_PER_NODE = 40_000, 150  # heat maps are made coarser until a pack has no more
NOTHING: dict[str, Any] = {
    "phases": [],
    "marks": [],
    "steps": {"subject": [""], "text": ["Before anything"], "source": [-1], "panels": [[]]},
    "cards": [],
    "lines": [],
    "files": [],
    "ops": {"step": [], "text": [], "names": [], "module": []},
    "nodes": {"names": [], "module": []},
    "runs": [],
    "grads": [],
    "views": [],
    "names": [],
    "modules": [],
}


def pack_of(recording: Recording, *, hide: str = "", budget_nbytes: int | None = None) -> bytes:
    """The pack of a recording.

    hide           "values" to show numbers only when they are asked for
    budget_nbytes  heat maps are down-sampled, to a side that they state, so that the pack stays
                   under it; None for 40 kB and 150 bytes a node

    Raises RecordingError for what is no Recording, such as a Recorder.
    """
    require_recording(recording, "Stepper")
    with collector_paused():
        return _packed(recording, hide, budget_nbytes)


def _packed(recording: Recording, hide: str, budget_nbytes: int | None) -> bytes:
    head = _head(recording, hide)
    if head["empty"]:
        return _deflated({**head, **NOTHING})
    words = Words(recording)
    passes = backward_passes(recording)
    starts = pass_starts(recording, passes)
    bad = BadSteps(recording, passes)
    cursor = Cursor(recording)
    views = PackViews(recording, words, bad, starts)
    steps = PackSteps(cursor, words, {start.pass_id: start for start in starts})
    found = found_by(recording)
    whole: dict[str, Any] = {
        **head,
        "empty": NOTHING_DRAWN if views.is_empty else None,
        "phases": phases(recording, steps.phases),
        "marks": marks(recording, words),
        "steps": steps.columns(),
        "cards": steps.cards.cards,
        "lines": steps.sources.lines,
        "files": steps.sources.files,
        "runs": runs(cursor.frame, passes, views, bad),
        "grads": grads(cursor.frame, views),
        "views": views.views,
        **found,
        "ops": {**op_columns(recording, views, bad), **found["ops"]},
    }
    plain = _deflated(whole)
    nodes = max(len(recording.nodes), len(recording.ops))
    budget = LEAST_NBYTES + NBYTES_PER_NODE * nodes if budget_nbytes is None else budget_nbytes
    if not steps.cards.pictures:
        return plain
    return _deflated({**whole, "cards": steps.cards.shown(budget - len(plain))})


def _head(recording: Recording, hide: str) -> dict[str, Any]:
    meta = recording.meta
    problems = (
        (step, event)
        for step, event in enumerate(recording.events, 1)
        if isinstance(event, ProblemSeen)
    )
    return {
        "version": VERSION,
        "title": f"Recording{setting(recording)}: {headline(recording)}",
        "device": None if meta.device == "cpu" else meta.device,
        "empty": undrawn(recording),
        "hide": hide,
        "not_seen": [event.text for event in recording.not_seen],
        "problems": [{"step": step, "text": problem_line(one)} for step, one in problems],
    }


def undrawn(recording: Recording) -> str | None:
    """Why there is no picture and what to do; None where there is one."""
    if not recording.ops and not recording.nodes:
        return NOTHING_DRAWN
    count = max(
        len(recording.nodes), len(recording.ops), sum(1 for _ in recording.events_of(NodeStarted))
    )
    if count <= MOST_NODES:
        return None
    return (
        f"This recording has {count} nodes; the Stepper draws up to {MOST_NODES}. "
        "Record one training step, or a part of the model. "
        "gradient_flow(recording) and print(recording) take any number."
    )


def _deflated(pack: dict[str, Any]) -> bytes:
    text = _json(pack)
    if not is_printable(text) or "\\u00" in text:
        text = _json(_printable(pack))
    return zlib.compress(text.encode(), 6)


def _json(pack: object) -> str:
    return json.dumps(pack, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _printable(value: Any) -> Any:  # noqa: ANN401 (JSON of any depth)
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_printable(item) for item in value]
    if isinstance(value, dict):
        return {key: _printable(item) for key, item in value.items()}
    return value
