"""Run a program plain and recorded; turn all that a run shows into values that compare by bytes."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass

import numpy as np
import torch

import autograd_lab as al
from autograd_lab.recording import Recording

__all__ = [
    "Outcome",
    "difference",
    "plain",
    "reasons",
    "recorded",
    "seed_all",
    "seen",
    "tensors_in",
]


PARTS = ("result", "error", "warned", "random_state")


@dataclass(frozen=True)
class Outcome:
    """What a run returned or raised, what it warned of, and where it left the random state."""

    result: object
    error: tuple[str, str] | None
    warned: tuple[str, ...]
    random_state: bytes


def plain(program: Callable[[], object], *, seed: int = 0) -> Outcome:
    """Run a program as it is."""
    seed_all(seed)
    result, error = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = seen(program())
        except Exception as raised:
            error = type(raised).__name__, str(raised)
    warned = tuple(dict.fromkeys(f"{one.category.__name__}: {one.message}" for one in caught))
    return Outcome(result, error, warned, torch.get_rng_state().numpy().tobytes())


def recorded(
    program: Callable[[], object], *, seed: int = 0, **settings
) -> tuple[Outcome, Recording]:
    """Run a program with a block around it; what the block itself changes is seen too."""
    recorder = al.record(**settings)

    def inside():
        with recorder:
            return program()

    outcome = plain(inside, seed=seed)
    return outcome, recorder.recording


def difference(expected: Outcome, found: Outcome) -> str:
    """Which parts of two outcomes differ, shortly."""
    pairs = {part: (getattr(expected, part), getattr(found, part)) for part in PARTS}
    return "; ".join(
        f"{part} was {a!s:.300} and became {b!s:.300}" for part, (a, b) in pairs.items() if a != b
    )


def seed_all(seed: int) -> None:
    """Seed every source of randomness that a program may use on the CPU."""
    torch.default_generator.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


def seen(value: object) -> object:
    """A value that is equal exactly when all tensors have the same bytes, layouts and flags."""
    if isinstance(value, torch.Tensor):
        return seen_tensor(value)
    if isinstance(value, dict):
        return "dict", tuple((str(key), seen(item)) for key, item in value.items())
    if isinstance(value, (tuple, list)):
        return type(value).__name__, tuple(map(seen, value))
    if is_dataclass(value):
        return type(value).__name__, tuple(
            seen(getattr(value, field.name)) for field in fields(value)
        )
    return (
        value
        if isinstance(value, (str, int, float, complex, bool, type(None)))
        else type(value).__name__
    )


def seen_tensor(tensor: torch.Tensor) -> tuple[object, ...]:
    """Kind, shape, dtype, flags and bytes of a tensor."""
    with torch.no_grad():
        grad_fn = tensor.grad_fn.name() if tensor.grad_fn is not None else None
        facts = (
            type(tensor).__name__,
            str(tensor.dtype),
            str(tensor.layout),
            tensor.requires_grad,
            grad_fn,
        )
        if tensor.is_nested:
            return *facts, tuple(map(seen_tensor, tensor.unbind()))
        if tensor.layout is torch.sparse_coo:
            tensor = tensor.detach()
            return *facts, tuple(tensor.shape), seen(tensor._indices()), seen(tensor._values())
        if tensor.layout is not torch.strided:
            return *facts, tuple(tensor.shape), seen(tensor.detach().to_dense())
        if tensor.is_quantized:
            return *facts, seen(tensor.int_repr())
        flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
        data = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
        return *facts, tuple(tensor.shape), tensor.stride(), data


def tensors_in(value: object) -> Iterator[torch.Tensor]:
    """The tensors in nested tuples, lists, dicts and dataclasses, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)
    elif is_dataclass(value):
        for field in fields(value):
            yield from tensors_in(getattr(value, field.name))


def reasons(recording: Recording) -> set[str]:
    """The stable words of what could not be seen."""
    return {event.reason for event in recording.not_seen}
