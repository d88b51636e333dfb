"""Turn a frame of the Stepper into its few lines that a lesson reads.

The whole text also says what PyTorch's source calls the rule, where the line stands, and what is
saved: `print(frame)` has it all.
"""

from __future__ import annotations

__all__ = ["brief"]

# The names of the lines in the text of a frame, at its beginning or after two blanks.
_LEFT_OUT = ("in torch", "source", "Done so far:", "Saved for backward:")
_INDENT = " " * 4  # a line that goes on with the one before


def brief(frame: object) -> str:
    """Return what happens at a step, its rule, and what is received and returned.

    frame  what `s.step()`, `s.go(n)` or `s.run_until(...)` gives; printed, it is its words
    """
    kept, keeps = [], True
    for line in str(frame).splitlines():
        if not line.startswith(_INDENT):
            keeps = not line.strip().startswith(_LEFT_OUT)
        if keeps:
            kept.append(line)
    return "\n".join(kept)
