"""Turn every call of the autograd engine into tape entries, with node hooks that live for that one call.

The Python entry to the engine is the one place that all backwards pass, whoever starts them: `Tensor.backward`,
`autograd.grad`, reentrant checkpoints, other threads. While a recorder is on it is replaced; with the last one it is put
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
from .tape import RawNode, Tape, ThreadState

__all__ = ["EngineTap"]

Grads = tuple[torch.Tensor | None, ...]


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
        """Put the entry back with the last recorder, unless somebody has replaced it since: then ours passes straight through."""
        with EngineTap._lock:
            EngineTap._active = [tap for tap in EngineTap._active if tap is not self]
            if not EngineTap._active and torch_private.engine_function() is _watched_engine_call:
                assert EngineTap._plain is not None
                torch_private.set_engine_function(EngineTap._plain)
                EngineTap._plain = None

    @contextmanager
    def watch(self, roots: Sequence[Any], args: tuple[Any, ...], options: dict[str, Any]) -> Iterator[None]:
        """Hook the graph below `roots`, run, unhook."""
        run = Pass(self)
        try:
            with torch_private.without_torch_function():
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
    if not taps or torch.compiler.is_compiling() or any(torch_private.is_traced(root) for root in t_outputs):
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
        self.leaves: dict[int, torch.Tensor] = {}
        self._accumulating: dict[int, tuple[tuple[Shot | None, ...], Shot | None]] = {}
        self._made_from: dict[int, int] = {}
        self._handles: list[Any] = []
        self._ids: dict[Any, int] = {}

    def begin(self, roots: Sequence[Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Write BackwardStarted and hook each node. A fault of ours here leaves the user's backward unwatched, not undone."""
        grads, retain, create, *_ = (*args, None, None, None)[:3]
        self.keeps_graph, self.creates_graph = bool(retain), bool(create)
        self.tape.has_retained |= self.keeps_graph or self.creates_graph
        self.tape.pass_count += 1
        self.number = self.tape.pass_count
        self.state.passes.append(self)
        try:
            starts = [root.grad_fn or _accumulator(root) if isinstance(root, torch.Tensor) else root.node for root in roots]
            ids = self._hook_graph([node for node in starts if node is not None])
            shots = tuple(None if grad is None else self.tape.shoot(grad) for grad in (grads or ()))
            place = self.tape.places.locate(sys._getframe(2), in_backward=False)  # noqa: SLF001
            accumulates = bool(options.get("accumulate_grad", True))
            facts = (self.number, ids, shots, accumulates, self.keeps_graph, self.creates_graph, place)
            self.tape.events.append(("backward started", self.state.index, self.state.inside, *facts))
        except Exception as error:  # noqa: BLE001 (the user's backward must run all the same)
            self.tape.failed(error)

    def end(self) -> None:
        """Unhook; write BackwardFinished and, after an error, the node in which it happened."""
        for handle in self._handles:
            handle.remove()
        self.is_over = True
        self._handles.clear()
        self.leaves.clear()
        if not (self.keeps_graph or self.creates_graph):
            for node in self._ids:
                node.metadata.pop(self.key, None)
        self._ids.clear()
        if self in self.state.passes:
            self.state.passes.remove(self)
        failed_in = self.state.open_nodes[-1] if len(self.state.open_nodes) > self.depth else None
        del self.state.open_nodes[self.depth :]
        text = None if self.error is None else f"{type(self.error).__name__}: {str(self.error).partition(chr(10))[0]}"
        self.error = None
        self.tape.events.append(("backward finished", self.state.index, self.state.inside, self.number, text, failed_in))
        self.tape.measurer.flush()

    def _hook_graph(self, starts: list[Any]) -> tuple[int, ...]:
        order: list[Any] = []
        stack = list(reversed(starts))
        while stack:
            node = stack.pop()
            if node in self._ids:
                continue
            self._ids[node] = self._node_id(node)
            order.append(node)
            stack.extend(target for target, _ in node.next_functions if target is not None)
        for node in order:
            raw = self.tape.nodes[self._ids[node]]
            if not raw.edges:
                raw.edges = tuple(
                    None if target is None else (self._ids[target], number) for target, number in node.next_functions
                )
                raw.saved = read_slots(node, self.tape)
            self._hook(node, self._ids[node])
        return tuple(self._ids[node] for node in starts)

    def _node_id(self, node: Any) -> int:
        """The recorder's number of a node, new at the first meeting; one int on the node where the graph is kept."""
        tape = self.tape
        variable = getattr(node, "variable", None)
        leaf = None if variable is None else tape.identify(variable)
        if leaf is not None and leaf in tape.accumulators:
            return tape.accumulators[leaf]
        if tape.has_retained and (known := node.metadata.get(self.key)) is not None:
            return known
        number = len(tape.nodes)
        sequence_number = node._sequence_nr()
        raw = RawNode(name=node.name(), leaf=leaf)
        if leaf is not None:
            tape.accumulators[leaf] = number
        else:
            raw.made_in = tape.made_in.get(sequence_number)
            made_by = tape.made_by.get(sequence_number)
            if made_by is not None and _fits(tape.ops[made_by].last_node, sequence_number, raw.name):
                raw.made_by = made_by
                tape.ops[made_by].nodes.append(number)
            elif isinstance(node, BackwardCFunction):
                raw.defined_at = _definition(type(node))
        tape.nodes.append(raw)
        if self.keeps_graph or self.creates_graph:
            node.metadata[self.key] = number
        return number

    def _hook(self, node: Any, number: int) -> None:
        variable = getattr(node, "variable", None)
        if variable is not None:
            self.leaves[number] = variable
        self._handles.append(node.register_prehook(_before(self, number)))
        self._handles.append(node.register_hook(_after(self, number)))

    def is_innermost(self, state: ThreadState) -> bool:
        """Whether a hook that fires in this thread belongs to this pass: not to one around it that shares the node, nor to one
        that an interrupt ended while a hook was being registered.
        """
        return not self.is_over and (not state.passes or state.passes[-1] is self)

    def node_started(self, number: int, grads: Grads) -> None:
        """A pre-hook of ours fired; it is the last one, so it sees what the node will see."""
        tape, state = self.tape, self.tape.thread()
        if not self.is_innermost(state):
            return
        try:
            with torch_private.without_torch_function():
                shots = tuple(None if grad is None else tape.shoot(grad) for grad in grads)
                before = self._grad_before(number)
        except Exception as error:  # noqa: BLE001
            tape.failed(error)
            shots, before = (), None
        tape.events.append(("node started", state.index, state.inside, self.number, number, shots))
        if self.creates_graph:
            self._made_from[number] = torch_private.autograd_sequence_number()
        state.open_nodes.append(number)
        if number in self.leaves:
            self._accumulating[number] = (shots, before)

    def _grad_before(self, number: int) -> Shot | None:
        variable = self.leaves.get(number)
        if variable is None or variable.grad is None:
            return None
        shot = self.tape.shoot(variable.grad)
        self.tape.measurer.flush()  # it is about to be added to
        return shot

    def node_finished(self, number: int, grads: Grads) -> None:
        """A post-hook of ours fired."""
        tape, state = self.tape, self.tape.thread()
        if not self.is_innermost(state):
            return
        if state.open_nodes and state.open_nodes[-1] == number:
            state.open_nodes.pop()
        if self.creates_graph:  # nodes made by this thread since the node started belong to its backward
            for made in range(self._made_from.pop(number, 1 << 62), torch_private.autograd_sequence_number()):
                tape.made_in[made] = (self.number, number)
        try:
            with torch_private.without_torch_function():
                shots = tuple(None if grad is None else tape.shoot(grad) for grad in grads)
                variable = self.leaves.get(number)
                after = tape.shoot(variable.grad) if variable is not None and variable.grad is not None else None
        except Exception as error:  # noqa: BLE001
            tape.failed(error)
            shots, after = (), None
        started = self._accumulating.pop(number, ((), None))
        tape.events.append(("node finished", state.index, state.inside, self.number, number, shots, started, after))


def _before(run: Pass, number: int) -> Callable[[Grads], None]:
    def autograd_lab_started(grad_outputs: Grads) -> None:
        run.node_started(number, grad_outputs)

    return autograd_lab_started


def _after(run: Pass, number: int) -> Callable[[Grads, Grads], None]:
    def autograd_lab_finished(grad_inputs: Grads, grad_outputs: Grads) -> None:
        del grad_outputs
        run.node_finished(number, grad_inputs)

    return autograd_lab_finished


def _accumulator(leaf: torch.Tensor) -> Any:
    """The AccumulateGrad node of a leaf that is itself a root; None where it wants no gradient."""
    return torch.autograd.graph.get_gradient_edge(leaf).node if leaf.requires_grad else None


def _fits(last_node: tuple[int, str] | None, sequence_number: int, name: str) -> bool:
    """Sequence numbers restart per thread: a match by number holds only if the name agrees where it is known."""
    return last_node is None or last_node[0] != sequence_number or last_node[1] == name


def _definition(kind: type) -> tuple[str, int] | None:
    """File and line of a Python Function's backward."""
    forward = getattr(kind, "_forward_cls", None)
    code = getattr(inspect.unwrap(getattr(forward, "backward", None) or (lambda: None)), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else None
