"""The errors of custom ops: defining one, registering for it, calling it, and its backward.

They are RuntimeErrors, ValueErrors or NotImplementedErrors too, as torch's own are.
"""

from __future__ import annotations

from .base import AutogradLabError

__all__ = [
    "AliasedOutputError",
    "CustomOpError",
    "DoubleBackwardError",
    "ForwardModeError",
    "GradientDeviceError",
    "GradientDictError",
    "GradientDtypeWarning",
    "GradientError",
    "GradientKeysError",
    "GradientLengthError",
    "GradientMutatedError",
    "GradientShapeError",
    "GradientTypeError",
    "MissingKernelError",
    "MissingRegistrationError",
    "OpDefinitionError",
    "OpRedefinedWarning",
    "PublicEngineWarning",
    "RegistrationError",
    "UnwantedGradientError",
]


class CustomOpError(AutogradLabError, RuntimeError):
    """Something about a custom op; `facts["op"]` is its qualified name."""

    code = "AL700"


class OpDefinitionError(CustomOpError, ValueError):
    """A name, an annotation or a schema that no op can have."""

    code = "AL701"


class RegistrationError(CustomOpError):
    """A function can't be registered for this op."""

    code = "AL702"


class MissingRegistrationError(CustomOpError):
    """A call needs a gradient, and what backward needs was not registered, or only half of it."""

    code = "AL703"


class MissingKernelError(CustomOpError, NotImplementedError):
    """No kernel is registered for where the tensors of a call are."""

    code = "AL704"


class AliasedOutputError(CustomOpError):
    """An output of the kernel is an input, a view of one, or another output."""

    code = "AL705"


class GradientError(CustomOpError):
    """What a backward function returned can't be its op's gradients."""

    code = "AL710"


class GradientDictError(GradientError):
    """A backward function returned no dict."""

    code = "AL711"


class GradientKeysError(GradientError):
    """The dict lacks an argument, or has a key that is none: `missing` and `unexpected`."""

    code = "AL712"


class GradientTypeError(GradientError):
    """A gradient is neither a tensor nor None."""

    code = "AL713"


class GradientLengthError(GradientError):
    """The gradient of a list is no list, or one of another length."""

    code = "AL714"


class UnwantedGradientError(GradientError):
    """A gradient for an argument that was no tensor in this call."""

    code = "AL715"


class GradientShapeError(GradientError):
    """A gradient of another shape than its argument's, which torch may sum without a word."""

    code = "AL716"


class GradientDeviceError(GradientError):
    """A gradient on another device, or of another layout, than its argument."""

    code = "AL717"


class GradientMutatedError(GradientError):
    """A backward function wrote into a gradient that it received: the caller's tensor changed."""

    code = "AL718"


class DoubleBackwardError(CustomOpError):
    """A second derivative would silently leave out what depends on a saved intermediate."""

    code = "AL720"


class ForwardModeError(CustomOpError):
    """Forward-mode differentiation reached an op without `impl_jvp`, or a wrong tangent."""

    code = "AL730"


class GradientDtypeWarning(UserWarning):
    """A gradient of another dtype than its argument's: torch casts it without a word."""


class OpRedefinedWarning(UserWarning):
    """An op was replaced by one of the same name from another file."""


class PublicEngineWarning(UserWarning):
    """This torch lacks a private name: ops run on torch.library's public API, which can do less."""
