"""Turn what a caller gave as a recording into a Recording, or an error that says what to give."""

from __future__ import annotations

from autograd_lab.errors import RecordingError
from autograd_lab.recording import Recording

__all__ = ["require_recording"]


def require_recording(value: object, verb: str) -> Recording:
    """Return `value` if it is a Recording.

    verb  what the caller called, for the message

    Raises RecordingError that names where the recording is: `rec.recording` of a Recorder, Cursor
    or Frame, `load_recording(path)` of a file.
    """
    if isinstance(value, Recording):
        return value
    kind = type(value).__name__
    if hasattr(type(value), "recording") or "recording" in getattr(value, "__dict__", {}):
        name = "rec" if kind == "Recorder" else kind.lower()
        where = f"That {kind} has it as its attribute .recording"
        use = f"Use {name}.recording"
    elif isinstance(value, str) or hasattr(value, "__fspath__"):
        where = "A file is not read by itself"
        use = f"Use load_recording({str(value)!r})"
    else:
        where = "A Recording is what `with record() as rec:` leaves in rec.recording"
        use = "Use rec.recording"
    article = "an" if kind[0] in "aeiouAEIOU" else "a"
    message = f"{verb} needs a Recording and was given {article} {kind}.\n{where}.\n{use}."
    raise RecordingError(message, given=kind)
