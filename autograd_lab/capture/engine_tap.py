"""Turn every call of the autograd engine into tape entries, by node hooks that live for that call.

The Python entry to the engine is the one place that all backwards pass, whoever starts them:
`Tensor.backward`, `autograd.grad`, reentrant checkpoints, other threads. While a recorder is on it
is replaced; with the last one it is put back. Calls that C++ makes are not seen.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

import torch

from autograd_lab import torch_private

from .engine_pass import Pass
from .function_tap import FunctionTap
from .tape import Tape

__all__ = ["EngineTap"]


class EngineTap:
    """Sees the engine's calls from `start` to `stop`; several may be on at once."""

    _active: ClassVar[list[EngineTap]] = []
    _plain: torch_private.EngineCall | None = None
    _is_below_another = False  # somebody's patch, which outlived our block, still calls ours
    _lock = threading.RLock()

    def __init__(self, tape: Tape, functions: FunctionTap) -> None:
        self.tape = tape
        self.functions = functions

    def start(self) -> None:
        """Replace the entry to the engine, if no other recorder has done so."""
        with EngineTap._lock:
            here = torch_private.engine_function()
            is_reached = EngineTap._is_below_another and here is not EngineTap._plain
            if here is not _watched_engine_call and not is_reached:
                EngineTap._plain = here
                torch_private.set_engine_function(_watched_engine_call)
            EngineTap._active = [*EngineTap._active, self]

    def stop(self) -> None:
        """Put the entry back with the last recorder, unless somebody has replaced it since.

        Whoever still has ours (another thread that is about to call it, a module imported inside
        the block) is passed straight through.
        """
        with EngineTap._lock:
            EngineTap._active = [tap for tap in EngineTap._active if tap is not self]
            if EngineTap._active or EngineTap._plain is None:
                return
            here = torch_private.engine_function()
            EngineTap._is_below_another = here not in (_watched_engine_call, EngineTap._plain)
            if not EngineTap._is_below_another:  # also if an interrupt came half-way before
                torch_private.set_engine_function(EngineTap._plain)

    @contextmanager
    def watch(
        self, roots: Sequence[Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Iterator[None]:
        """Hook the graph below `roots`, run, unhook."""
        run = Pass(self.tape)
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
            try:
                run.unhook()
                run.end()
            except Exception as error:
                self.tape.failed(error)
            finally:
                run.unhook()  # again, for an interrupt may have come in between


def _watched_engine_call(
    t_outputs: Sequence[Any],
    *args: Any,  # noqa: ANN401 (handed on as they come)
    **options: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401 (what the engine returns)
    """Stand at the engine's entry: exactly the plain call, watched by each recorder that is on."""
    plain = EngineTap._plain
    assert plain is not None
    taps = EngineTap._active
    if (
        not taps
        or torch.compiler.is_compiling()
        or torch_private.is_being_traced()
        or any(torch_private.is_traced(root) for root in t_outputs)
    ):
        return plain(t_outputs, *args, **options)
    with ExitStack() as stack:
        for tap in taps:
            if torch_private.functorch_is_active():
                tap.tape.not_seen["functorch"] = (
                    "A backward inside vmap or a torch.func transform was not followed: its "
                    "tensors are wrapped. Record the function outside the transform to see it."
                )
            else:
                stack.enter_context(tap.watch(t_outputs, args, options))
        return plain(t_outputs, *args, **options)
