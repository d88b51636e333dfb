"""Turn a `with` block into a Recording."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Self

from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from autograd_lab import torch_private
from autograd_lab.errors import RecordingError
from autograd_lab.recording import Recording

from .assemble import assemble
from .engine_tap import EngineTap
from .function_tap import FunctionTap
from .marks import take_off_marks
from .places import place_of_error, user_frame
from .tape import Tape, in_one_line

__all__ = ["Recorder", "record", "record_step"]

MAX_BYTES = 64_000_000
VALUES = ("none", "auto", "all")


def record(
    model: nn.Module | None = None, *, values: str = "auto", max_bytes: int = MAX_BYTES
) -> Recorder:
    """Record what forward and backward really do inside a `with` block; change nothing.

    The program may run on the CPU or on a GPU.

    model      names parameters and modules by their paths, and lets unused and frozen parameters
               be seen; without it, modules are named as they are met
    values     "none": norm, rms and finite-or-not of forward outputs and gradients; "auto": also
               statistics and values of tensors of at most 1024 elements, and at most 1024 evenly
               spaced elements of larger ones; "all": statistics and values of everything, within
               the budget
    max_bytes  bound on the values kept, in bytes; what did not fit is said in the recording

    Returns a Recorder; its `.recording` is there when the block has ended, also after an exception.
    Raises RecordingError for other `values`, a negative budget or a model that is no `nn.Module`.

    Example:
        >>> import torch, autograd_lab as al
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> with al.record() as rec:
        ...     y = x * x + x
        ...     y.backward()
        >>> [node.short_name for node in rec.recording.nodes]
        ['AddBackward0', 'MulBackward0', 'AccumulateGrad']
        >>> x.grad
        tensor(7.)
    """
    return Recorder(model, values=values, max_bytes=max_bytes)


def record_step(
    fn: Callable[[], object],
    *,
    model: nn.Module | None = None,
    values: str = "auto",
    max_bytes: int = MAX_BYTES,
) -> Recording:
    """Call `fn` and return the recording of what it did.

    `fn` takes no arguments and does forward and backward itself. The other arguments are those of
    `record`. An exception of `fn` passes through unchanged.

    Example:
        >>> import torch, autograd_lab as al
        >>> w = torch.ones(2, requires_grad=True)
        >>> recording = al.record_step(lambda: (w * 3).sum().backward())
        >>> len(recording.nodes)
        3
    """
    recorder = Recorder(model, values=values, max_bytes=max_bytes)
    with recorder:
        fn()
    return recorder.recording


class Recorder:
    """A recording in the making: a context manager, used once."""

    def __init__(
        self, model: nn.Module | None = None, *, values: str = "auto", max_bytes: int = MAX_BYTES
    ) -> None:
        """Check the settings; nothing is watched before the block begins."""
        if values not in VALUES:
            message = (
                f"record() got values={values!r}.\n"
                f"It must be one of {', '.join(map(repr, VALUES))}.\n"
                "See help(record)."
            )
            raise RecordingError(message, values=values)
        if not isinstance(max_bytes, int) or isinstance(max_bytes, bool) or max_bytes < 0:
            message = (
                f"record() got max_bytes={max_bytes!r}.\n"
                "The budget is a whole number of bytes, 0 or more.\n"
                f"The default is {MAX_BYTES}."
            )
            raise RecordingError(message, max_bytes=max_bytes)
        if model is not None and not isinstance(model, nn.Module):
            message = (
                f"record() got a {type(model).__name__} as its model.\n"
                "The model gives names to parameters and modules, so it must be an nn.Module.\n"
                "Without one, write record(); a function goes to record_step(fn)."
            )
            raise RecordingError(message, model=type(model).__name__)
        self._model = model
        self._tape = Tape(values, max_bytes)
        self._exit = ExitStack()
        self._recording: Recording | None = None
        self._state = "new"

    @property
    def recording(self) -> Recording:
        """What the block did; there once the block has ended. Raises RecordingError before."""
        if self._state != "ended":
            message = (
                "There is no recording yet: the block has not ended.\n"
                "A Recorder records from `with record() as rec:` to the end of that block.\n"
                "Read rec.recording after the block."
            )
            raise RecordingError(message)
        if self._recording is None:
            self._recording = assemble(self._tape)
            del self._tape  # its numbers are in the recording now
        return self._recording

    def __repr__(self) -> str:
        """Say where it stands, and where the recording is."""
        hints = {"new": "use it in a `with` line", "watching": "its block has not ended yet"}
        return f"Recorder: {hints.get(self._state, 'its recording is in .recording')}"

    def __enter__(self) -> Self:
        """Begin to watch."""
        if self._state != "new":
            message = (
                "This Recorder was used before.\n"
                "A Recorder records one block.\n"
                "Call record() again for another."
            )
            raise RecordingError(message)
        self._state = "watching"
        frame = user_frame(sys._getframe(1))
        self._tape.places.entry = frame.f_code if frame else None
        try:
            self._begin()
            return self
        except BaseException as error:  # interrupted: nobody else will leave the block
            self.__exit__(type(error), error, None)
            raise

    def _begin(self) -> None:
        if self._model is not None:
            self._meet_model(self._model)
        functions = FunctionTap(self._tape)
        engine = EngineTap(self._tape, functions)
        forget = self._tape.forget
        unmark = partial(take_off_marks, self._tape)
        for undo in (
            forget,
            forget,
            unmark,
            self._tape.finish,
            engine.stop,
            engine.stop,
            functions.stop,
        ):
            self._exit.callback(undo)  # twice, for an interrupt may come while one runs
        self._exit.callback(functions.stop)
        engine.start()
        functions.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop watching, whatever happened; the exception passes through."""
        try:
            self._exit.close()
        finally:
            self._exit.close()  # again, for an interrupt may come while it runs
            self._model = None
            self._state = "ended"
            if error is not None:
                text = f"The block ended with {in_one_line(error)}"
                place = place_of_error(traceback)
                self._tape.events.append(("exception", 0, None, text, place))

    def _meet_model(self, model: nn.Module) -> None:
        tape = self._tape
        inner = torch_private.original_of(model)
        tape.places.add_root(inner)
        if isinstance(inner, DistributedDataParallel):
            tape.not_seen["ddp"] = (
                "Under DistributedDataParallel the gradients here are this rank's own, before "
                "the reduction."
            )
        if isinstance(inner, DataParallel):
            tape.not_seen["data parallel"] = (
                "DataParallel runs its replicas on other threads, whose forward calls are not "
                "seen. Record model.module to see them."
            )
