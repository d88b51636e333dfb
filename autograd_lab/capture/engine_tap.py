"""Turn every call of the autograd engine into tape entries, with node hooks that live for that one
call.

The Python entry to the engine is the one place that all backwards pass, whoever starts them:
`Tensor.backward`,
`autograd.grad`, reentrant checkpoints, other threads. While a recorder is on it is replaced; with
the last one it is put
back. Calls that C++ makes are not seen.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction

from autograd_lab import torch_private

from .function_tap import FunctionTap
from .measuring import Shot
from .saved_slots import read_slots
from .tape import SAME_ELEMENTS, RawNode, Tape, ThreadState

__all__ = ["EngineTap"]

Grads = tuple[torch.Tensor | None, ...]
ACCUMULATE = "torch::autograd::AccumulateGrad"


class EngineTap:
    """Sees the engine's calls from `start` to `stop`; several may be on at once."""

    _active: list[EngineTap] = []
    _plain: torch_private.EngineCall | None = None
    _lock = threading.RLock()

    def __init__(self, tape: Tape, functions: FunctionTap) -> None:
        self.tape = tape
        self.functions = functions
        self.metadata_key = f"autograd_lab.node.{id(tape)}"

    def start(self) -> None:
        """Replace the entry to the engine, if no other recorder has done so."""
        with EngineTap._lock:
            if EngineTap._plain is None:
                EngineTap._plain = torch_private.engine_function()
                torch_private.set_engine_function(_watched_engine_call)
            EngineTap._active = [*EngineTap._active, self]

    def stop(self) -> None:
        """Put the entry back with the last recorder, unless somebody has replaced it since: then
        ours passes straight through.
        """
        with EngineTap._lock:
            EngineTap._active = [tap for tap in EngineTap._active if tap is not self]
            if not EngineTap._active and torch_private.engine_function() is _watched_engine_call:
                assert EngineTap._plain is not None
                torch_private.set_engine_function(EngineTap._plain)
                EngineTap._plain = None

    @contextmanager
    def watch(
        self, roots: Sequence[Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Iterator[None]:
        """Hook the graph below `roots`, run, unhook."""
        run = Pass(self)
        try:
            with torch_private.unseen():
                run.begin(roots, args, options)
            if self.functions not in torch_private.function_modes():
                with self.functions:
                    yield
            else:
                yield
        except BaseException as error:
            run.error = error
            raise
        finally:
            run.end()


def _watched_engine_call(t_outputs: Sequence[Any], *args: Any, **options: Any) -> Any:
    """Stand at the engine's entry: exactly the plain call, watched by each recorder that is on."""
    plain = EngineTap._plain
    assert plain is not None
    taps = EngineTap._active
    if (
        not taps
        or torch.compiler.is_compiling()
        or any(torch_private.is_traced(root) for root in t_outputs)
    ):
        return plain(t_outputs, *args, **options)
    with ExitStack() as stack:
        for tap in taps:
            if torch_private.functorch_is_active():
                tap.tape.not_seen["functorch"] = (
                    "A backward inside vmap or a torch.func transform was not followed: its tensors are wrapped. "
                    "Record the function outside the transform to see it."
                )
            else:
                stack.enter_context(tap.watch(t_outputs, args, options))
        return plain(t_outputs, *args, **options)


class Pass:
    """One engine call, as one recorder sees it."""

    def __init__(self, tap: EngineTap) -> None:
        self.tape = tap.tape
        self.key = tap.metadata_key
        self.error: BaseException | None = None
        self.number = 0
        self.state: ThreadState = self.tape.thread()
        self.depth = len(self.state.open_nodes)
        self.is_over = False
        self.keeps_graph = False
        self.creates_graph = False
        self.accumulating: dict[int, tuple[Sequence[Shot | None], Shot | None]] = {}
        self.made_from: dict[int, int] = {}
        self._handles: list[Any] = []
        self._ids: dict[Any, int] = {}

    def begin(self, roots: Sequence[Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Write BackwardStarted and hook each node. A fault of ours here leaves the user's
        backward unwatched, not undone.
        """
        tape = self.tape
        grads, retain, create, *_ = (*args, None, None, None)[:3]
        self.keeps_graph, self.creates_graph = bool(retain or create), bool(create)
        tape.has_retained |= self.keeps_graph
        tape.pass_count += 1
        self.number = tape.pass_count
        self.state.passes.append(self)
        try:
            if any(
                isinstance(grad, torch.Tensor) and torch_private.batched_or_wrapped(grad)
                for grad in grads or ()
            ):
                tape.measurer.may_be_wrapped = True
            starts = [
                root.grad_fn or _accumulator(root) if isinstance(root, torch.Tensor) else root.node
                for root in roots
            ]
            ids = self._hook_graph([node for node in starts if node is not None])
            shots = [None if grad is None else tape.shoot(grad) for grad in (grads or ())]
            place = tape.places.locate(sys._getframe(2), in_backward=False)
            accumulates = bool(options.get("accumulate_grad", True))
            facts = (self.number, ids, shots, accumulates, bool(retain), self.creates_graph, place)
            tape.events.append(("backward started", self.state.index, self.state.inside, *facts))
        except Exception as error:
            tape.failed(error)

    def end(self) -> None:
        """Unhook; write BackwardFinished and, after an error, the node in which it happened."""
        for handle in self._handles:
            handle.remove()
        self.is_over = True
        self._handles.clear()
        if self.tape.has_retained and not self.keeps_graph:
            for node in self._ids:
                node.metadata.pop(self.key, None)
        failed_in, text = None, None
        if self.error is not None:
            failed_in = self._failed_node()
            text = f"{type(self.error).__name__}: {str(self.error).partition(chr(10))[0]}"
        self._ids.clear()
        if self in self.state.passes:
            self.state.passes.remove(self)
        del self.state.open_nodes[self.depth :]
        self.error = None
        self.tape.events.append(
            ("backward finished", self.state.index, self.state.inside, self.number, text, failed_in)
        )
        self.tape.measurer.flush()

    def _failed_node(self) -> int | None:
        """Where an error came from: the node that is open, or else the one that the engine had to
        run next: of those whose
        gradients had all come, the one made last (torch/csrc/autograd/engine.cpp, ReadyQueue).
        """
        if len(self.state.open_nodes) > self.depth:
            return self.state.open_nodes[-1]
        done = {
            event[4]
            for event in self.tape.events
            if event[0] in ("node finished", "node ran", "accumulated") and event[3] == self.number
        }
        missing: dict[int, int] = {}
        for node, number in self._ids.items():
            if number not in done:
                for target, _ in node.next_functions:
                    if target is not None:
                        missing[self._ids[target]] = missing.get(self._ids[target], 0) + 1
        ready = [
            node
            for node, number in self._ids.items()
            if number not in done and not missing.get(number)
        ]
        return self._ids[max(ready, key=lambda node: node._sequence_nr())] if ready else None

    def _hook_graph(self, starts: list[Any]) -> list[int]:
        tape, ids, order = self.tape, self._ids, []
        stack = list(reversed(starts))
        while stack:
            node = stack.pop()
            if node in ids:
                continue
            nexts = node.next_functions
            ids[node] = self._node_id(node)
            order.append((node, nexts))
            stack.extend([target for target, _ in nexts if target is not None])
        for node, nexts in order:
            number = ids[node]
            raw = tape.nodes[number]
            if raw.edges is None:
                raw.edges = [
                    None if target is None else (ids[target], position)
                    for target, position in nexts
                ]
                raw.saved = read_slots(node, tape)
            self._hook(node, number, raw)
        return [ids[node] for node in starts]

    def _node_id(self, node: Any) -> int:
        """The recorder's number of a node, new at the first meeting; one int on the node where the
        graph is kept.
        """
        tape = self.tape
        name = node.name()
        if name == ACCUMULATE:
            leaf = tape.identify(node.variable)
            number = tape.accumulators.get(leaf)
            if number is None:
                number = tape.accumulators[leaf] = len(tape.nodes)
                tape.nodes.append(RawNode(name, leaf))
            return number
        if tape.has_retained and (known := node.metadata.get(self.key)) is not None:
            return known
        number = len(tape.nodes)
        raw = RawNode(name)
        sequence_number = node._sequence_nr()
        raw.made_in = tape.made_in.get(sequence_number)
        made_by = tape.made_by.get(sequence_number)
        if made_by is not None and _fits(tape.ops[made_by].last_node, sequence_number, name):
            raw.made_by = made_by
            tape.ops[made_by].nodes.append(number)
        elif isinstance(node, BackwardCFunction):
            raw.defined_at = _definition(type(node))
        tape.nodes.append(raw)
        if self.keeps_graph:
            node.metadata[self.key] = number
        return number

    def _hook(self, node: Any, number: int, raw: RawNode) -> None:
        """A post-hook on each node; a pre-hook where something can happen before the node ends:
        accumulation, Python code, a
        user's unpack hook, nodes made by a node. For the others the start is written with the end.
        """
        variable = node.variable if raw.leaf is not None else None
        needs_start = (
            (variable is not None and variable.grad is not None)
            or self.creates_graph
            or isinstance(node, BackwardCFunction)
            or any(slot.packed_by is not None for slot in raw.saved)
        )
        if needs_start:
            self._handles.append(node.register_prehook(self.started(number, variable)))
            self._handles.append(node.register_hook(self.finished(number, variable)))
        elif variable is not None:
            self._handles.append(node.register_hook(self.accumulated(number, variable)))
        else:
            shares = raw.name in SAME_ELEMENTS and self.tape.measurer.values == "none"
            self._handles.append(node.register_hook(self.ran(number, shares=shares)))

    def started(self, number: int, variable: torch.Tensor | None) -> Callable[[Grads], None]:
        """A pre-hook; ours is the last one, so it sees what the node will see."""
        tape = self.tape

        def autograd_lab_started(grad_outputs: Grads) -> None:
            state = tape.thread()
            if self.is_over or (state.passes and state.passes[-1] is not self):
                return  # the pass of another engine call that runs inside this one
            shots, before = [], None
            try:
                with torch_private.unseen():
                    shots = [None if grad is None else tape.shoot(grad) for grad in grad_outputs]
                    if variable is not None and (grad := variable.grad) is not None:
                        before = tape.shoot(grad)
                        tape.measurer.flush()  # it is about to be added to
            except Exception as error:
                tape.failed(error)
            if variable is not None:
                self.accumulating[number] = shots, before
            if self.creates_graph:
                self.made_from[number] = torch_private.autograd_sequence_number()
            tape.events.append(
                ("node started", state.index, state.inside, self.number, number, shots)
            )
            state.open_nodes.append(number)

        return autograd_lab_started

    def finished(
        self, number: int, variable: torch.Tensor | None
    ) -> Callable[[Grads, Grads], None]:
        """A post-hook for a node that has a pre-hook of ours."""
        tape = self.tape

        def autograd_lab_finished(grad_inputs: Grads, grad_outputs: Grads) -> None:
            del grad_outputs
            state = tape.thread()
            if self.is_over or (state.passes and state.passes[-1] is not self):
                return
            if state.open_nodes and state.open_nodes[-1] == number:
                state.open_nodes.pop()
            if (
                self.creates_graph
            ):  # nodes made by this thread since the node started belong to its backward
                for made in range(
                    self.made_from.pop(number, 1 << 62), torch_private.autograd_sequence_number()
                ):
                    tape.made_in[made] = self.number, number
            shots, after = [], None
            try:
                with torch_private.unseen():
                    shots = [None if grad is None else tape.shoot(grad) for grad in grad_inputs]
                    if variable is not None and (grad := variable.grad) is not None:
                        after = tape.shoot(grad)
            except Exception as error:
                tape.failed(error)
            started = self.accumulating.pop(number, None)
            tape.events.append(
                (
                    "node finished",
                    state.index,
                    state.inside,
                    self.number,
                    number,
                    shots,
                    started,
                    after,
                )
            )

        return autograd_lab_finished

    def ran(self, number: int, *, shares: bool) -> Callable[[Grads, Grads], None]:
        """A post-hook for a node inside which nothing else can happen: the start is written with
        the end.

        shares  the gradient keeps its elements: one measurement is enough
        """
        tape, state_here, here = self.tape, self.state, threading.get_ident()
        shoot, append, unseen, get_ident = (
            tape.shoot,
            tape.events.append,
            torch_private.unseen,
            threading.get_ident,
        )

        def autograd_lab_ran(grad_inputs: Grads, grad_outputs: Grads) -> None:
            state = state_here if get_ident() == here else tape.thread()
            passes = state.passes
            if self.is_over or (passes and passes[-1] is not self):
                return
            received: list[Shot | None] = []
            shots: list[Shot | None] = []
            try:
                with unseen():
                    for grad in grad_outputs:
                        received.append(None if grad is None else shoot(grad))
                    for grad in grad_inputs:
                        if grad is None:
                            shots.append(None)
                        elif shares and received and received[0] is not None:
                            shots.append(tape.share(grad, received[0]))
                        else:
                            shots.append(shoot(grad))
            except Exception as error:
                tape.failed(error)
            append(("node ran", state.index, state.inside, self.number, number, received, shots))

        return autograd_lab_ran

    def accumulated(self, number: int, variable: torch.Tensor) -> Callable[[Grads, Grads], None]:
        """A post-hook for a leaf whose `.grad` was None when the engine was called."""
        tape = self.tape

        def autograd_lab_accumulated(grad_inputs: Grads, grad_outputs: Grads) -> None:
            del grad_inputs
            state = tape.thread()
            if self.is_over or (state.passes and state.passes[-1] is not self):
                return
            received, after = [], None
            try:
                with torch_private.unseen():
                    (added,) = grad_outputs
                    grad = variable.grad
                    if added is not None:
                        received = [tape.shoot(added)]
                    if grad is not None:
                        is_same = added is not None and _share_memory(grad, added)
                        after = received[0] if is_same else tape.shoot(grad)
            except Exception as error:
                tape.failed(error)
            tape.events.append(
                ("accumulated", state.index, state.inside, self.number, number, received, after)
            )

        return autograd_lab_accumulated


def _share_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Torch took the incoming gradient as `.grad` without a copy: one measurement is enough."""
    return (
        a.layout is torch.strided
        and b.layout is torch.strided
        and a.data_ptr() == b.data_ptr() != 0
        and a.shape == b.shape
        and a._version == b._version
    )


def _accumulator(leaf: torch.Tensor) -> Any:
    """The AccumulateGrad node of a leaf that is itself a root; None where it wants no gradient."""
    return torch.autograd.graph.get_gradient_edge(leaf).node if leaf.requires_grad else None


def _fits(last_node: tuple[int, str] | None, sequence_number: int, name: str) -> bool:
    """Sequence numbers restart per thread: a match by number holds only if the name agrees where
    it is known.
    """
    return last_node is None or last_node[0] != sequence_number or last_node[1] == name


def _definition(kind: type) -> tuple[str, int] | None:
    """File and line of a Python Function's backward."""
    forward = getattr(kind, "_forward_cls", None)
    code = getattr(
        inspect.unwrap(getattr(forward, "backward", None) or (lambda: None)), "__code__", None
    )
    return (code.co_filename, code.co_firstlineno) if code else None
