"""Turn one engine call into tape entries: hook each node of its graph, unhook."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from autograd_lab import torch_private

from .graph_walk import meet_graph, next_to_run, node_of
from .memory import share_memory
from .places import Place, place_of_error
from .shots import GRADIENT
from .tape import SAME_ELEMENTS, RawNode, Rows, Tape, ThreadState, in_one_line

__all__ = ["Pass"]

Grads = tuple[torch.Tensor | None, ...]


class Pass:
    """One engine call, as one recorder sees it."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.shots = tape.shots
        self.error: BaseException | None = None
        self.number = 0
        self.state: ThreadState = self.tape.thread()
        self.here = threading.get_ident()
        self.depth = len(self.state.open_nodes)
        self.is_over = False
        self.has_started = False
        self.keeps_graph = False
        self.creates_graph = False
        self.flags: int | None = None
        self.accumulating: dict[int, int | None] = {}
        self.made_from: dict[int, int] = {}
        self._handles: list[Any] = []
        self._ids: dict[Any, int] = {}

    def begin(self, roots: Sequence[Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Write BackwardStarted and hook each node.

        A fault of ours here leaves the user's backward unwatched, not undone.
        """
        tape = self.tape
        grads, retain, create, *_ = (*args, None, None, None)[:3]
        self.keeps_graph, self.creates_graph = bool(retain or create), bool(create)
        self.flags = None if create else GRADIENT
        tape.has_retained |= self.keeps_graph
        tape.pass_count += 1
        self.number = tape.pass_count
        self.state.passes.append(self)
        options_seen = bool(options.get("accumulate_grad", True)), bool(retain), self.creates_graph
        try:
            if any(
                isinstance(grad, torch.Tensor) and torch_private.batched_or_wrapped(grad)
                for grad in grads or ()
            ):
                self.shots.may_be_wrapped = True
            starts = [node_of(root) for root in roots]
            ids = self._hook_graph([node for node in starts if node is not None])
            rows = [None if grad is None else self.shots.shoot(grad) for grad in (grads or ())]
            place = Place(*tape.places.locate(sys._getframe(2), in_backward=False))
            self._write_start(ids, rows, *options_seen, place)
        except Exception as error:
            tape.failed(error)
            self._remove_hooks()
            self._write_start([], [], *options_seen, None)

    def _write_start(self, *facts: Any) -> None:  # noqa: ANN401
        self.has_started = True
        state = self.state
        event = ("backward started", state.index, state.inside, self.number, *facts)
        self.tape.events.append(event)

    def unhook(self) -> None:
        """Take our hooks off and leave the thread's state as it was; may be called again."""
        self._remove_hooks()
        self.is_over = True
        if self in self.state.passes:
            self.state.passes.remove(self)

    def _remove_hooks(self) -> None:
        for handle in self._handles:
            handle.remove()

    def end(self) -> None:
        """Write BackwardFinished and, after an error, where it happened; let go of the nodes."""
        if not self.keeps_graph:
            for node in self._ids:
                node.metadata.pop(self.tape.node_key, None)
                if node.metadata.pop(self.tape.op_key, None) is not None:
                    self.tape.mark_count -= 1
        failed_in, text, place = None, None, None
        if self.error is not None:
            failed_in, text = self._failed_node(), in_one_line(self.error)
            place = place_of_error(self.error.__traceback__)
        self._handles.clear()
        self._ids.clear()
        del self.state.open_nodes[self.depth :]
        self.error = None
        if self.has_started:
            state, facts = self.state, (self.number, text, failed_in, place)
            self.tape.events.append(("backward finished", state.index, state.inside, *facts))
        with torch_private.unseen():
            self.shots.flush()

    def _failed_node(self) -> int | None:
        """Where an error came from: the open node, or else the one that had to run next."""
        if len(self.state.open_nodes) > self.depth:
            return self.state.open_nodes[-1]
        if len(self._handles) < len(self._ids):
            return None  # an interrupt came while the graph was being hooked
        ends = ("node finished", "node ran", "accumulated")
        done = {
            event[4] for event in self.tape.events if event[0] in ends and event[3] == self.number
        }
        return next_to_run(self._ids, done)

    def _hook_graph(self, starts: Sequence[Any]) -> list[int]:
        tape, nodes = self.tape, self.tape.nodes
        ids = self._ids
        meet_graph(tape, starts, ids, self.number, self.state.index, keeps_graph=self.keeps_graph)
        # Python code or an unpack hook may call the engine again
        may_nest = any(nodes[number].is_open for number in ids.values())
        for node, number in ids.items():
            self._hook(node, number, nodes[number], may_nest)
        return [ids[node] for node in starts]

    def _hook(self, node: Any, number: int, raw: RawNode, may_nest: bool) -> None:  # noqa: ANN401
        """A post-hook on each node, and a pre-hook where something can happen before the node ends.

        That is accumulation, Python code, a user's unpack hook, nodes made by a node
        (create_graph). For the others the start is written with the end.
        """
        kind, handles, variable = type(node), self._handles, None
        if raw.leaf is not None:
            variable = node.variable
            needs_start = self.creates_graph or may_nest or variable.grad is not None
            after = partial(self.accumulated, number, variable)
        else:
            needs_start = self.creates_graph or raw.is_open
            after = partial(self.ran, number, raw.name in SAME_ELEMENTS)
        if needs_start:
            handles.append(kind.register_prehook(node, partial(self.started, number, variable)))
            after = partial(self.finished, number, variable)
        handles.append(kind.register_hook(node, after))

    def state_of_hook(self) -> ThreadState | None:
        """The state of the thread in which a hook fires.

        None where the hook is not this pass's affair: another engine call runs inside this one and
        shares the node, an interrupt ended the pass while a hook was being registered, or the
        block has ended while another thread is still in its backward.
        """
        if self.is_over or self.tape.is_over:
            return None
        state = self.state if threading.get_ident() == self.here else self.tape.thread()
        return None if state.passes and state.passes[-1] is not self else state

    def started(self, number: int, variable: torch.Tensor | None, grad_outputs: Grads) -> None:
        """A pre-hook; ours is the last one, so it sees what the node will see."""
        state = self.state_of_hook()
        if state is None:
            return
        rows: Rows = ()
        before = None
        try:
            with torch_private.unseen():
                rows = self._shoot(grad_outputs)
                if variable is not None and (grad := variable.grad) is not None:
                    before = self.shots.shoot(grad)
                    self.shots.flush()  # it is about to be added to
        except Exception as error:
            self.tape.failed(error)
        if variable is not None:
            self.accumulating[number] = before
        if self.creates_graph:
            self.made_from[number] = torch_private.autograd_sequence_number()
        facts = (self.number, number, rows)
        self.tape.events.append(("node started", state.index, state.inside, *facts))
        state.open_nodes.append(number)

    def finished(
        self, number: int, variable: torch.Tensor | None, grad_inputs: Grads, grad_outputs: Grads
    ) -> None:
        """A post-hook for a node that has a pre-hook of ours."""
        state = self.state_of_hook()
        if state is None:
            return
        if state.open_nodes and state.open_nodes[-1] == number:
            state.open_nodes.pop()
        if self.creates_graph:  # nodes that this thread made since the start are this node's
            first = self.made_from.pop(number, 1 << 62)
            for made in range(first, torch_private.autograd_sequence_number()):
                self.tape.made_in[state.index, made] = self.number, number
        rows: Rows = ()
        added, after = None, None
        try:
            with torch_private.unseen():
                rows = self._shoot(grad_inputs)
                if variable is not None:
                    received = grad_outputs[0]
                    added = None if received is None else self.shots.shoot(received, self.flags)
                    if (grad := variable.grad) is not None:
                        after = self.shots.shoot(grad)
        except Exception as error:
            self.tape.failed(error)
        before = self.accumulating.pop(number, None)
        facts = (self.number, number, rows, added, before, after)
        self.tape.events.append(("node finished", state.index, state.inside, *facts))

    def accumulated(
        self, number: int, variable: torch.Tensor, grad_inputs: Grads, grad_outputs: Grads
    ) -> None:
        """A post-hook for a leaf whose `.grad` was None when the engine was called."""
        del grad_inputs
        state = self.state_of_hook()
        if state is None:
            return
        added, after = None, None
        try:
            with torch_private.unseen():
                (received,) = grad_outputs
                grad = variable.grad
                if received is not None:
                    added = self.shots.shoot(received, self.flags)
                if grad is not None:
                    is_same = (
                        received is not None
                        and share_memory(grad, received)
                        and grad.shape == received.shape
                        and grad.stride() == received.stride()
                    )
                    after = added if is_same else self.shots.shoot(grad)
        except Exception as error:
            self.tape.failed(error)
        facts = (self.number, number, added, after)
        self.tape.events.append(("accumulated", state.index, state.inside, *facts))

    def ran(
        self, number: int, keeps_elements: bool, grad_inputs: Grads, grad_outputs: Grads
    ) -> None:
        """A post-hook for a node inside which nothing can happen: its start is written here too.

        keeps_elements  its gradient is only reshaped: one measurement may be enough
        """
        state = self.state_of_hook()
        if state is None:
            return
        received: Rows = ()
        rows: Rows = ()
        try:
            with torch_private.unseen():
                received = self._shoot(grad_outputs)
                if keeps_elements and type(received) is int and grad_inputs[0] is not None:
                    grad, base = grad_inputs[0], grad_outputs[0]
                    rows = self.shots.shoot_view(grad, base, received, self.flags)
                else:
                    rows = self._shoot(grad_inputs)
        except Exception as error:
            self.tape.failed(error)
        inside = state.open_nodes[-1] if state.open_nodes else None
        self.tape.events.append(
            ("node ran", state.index, inside, self.number, number, received, rows)
        )

    def _shoot(self, grads: Grads) -> Rows:
        shoot, flags = self.shots.shoot, self.flags
        if len(grads) == 1:
            grad = grads[0]
            return None if grad is None else shoot(grad, flags)
        return tuple([None if grad is None else shoot(grad, flags) for grad in grads])
