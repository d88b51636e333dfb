"""Turn the options of `autograd-lab demo | record | lab | ...` into text and files.

Each command takes the parsed options and returns the exit code: 0 done, 1 not ready. `cli` loads
this package by name.
"""

from autograd_lab.commands.demos import demo
from autograd_lab.commands.lessons import lab, notebooks, pages
from autograd_lab.commands.machine import check
from autograd_lab.commands.recordings import record

__all__ = ["check", "demo", "lab", "notebooks", "pages", "record"]
