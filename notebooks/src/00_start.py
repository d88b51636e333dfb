# %% [markdown]
# # Start here
#
# Click the next cell and press **Shift+Enter**; the first run loads PyTorch, up to 30 s; then
# **click the picture** and press **→** until the gradient reaches x.

# %%
import torch

import autograd_lab as al

x = torch.tensor(3.0, requires_grad=True)
with al.record() as rec:
    y = x * x + x
    y.backward()
s = al.Stepper(rec.recording)
s

# %% [markdown]
# Each press is one thing that PyTorch did; **←** goes back. Did the page jump instead? Click the
# picture first: the keys are its own then. When `x.grad` gains 7, read on.

# %% [markdown]
# ## What you have seen
#
# First came the **forward** pass: a product and a sum made 12 out of 3. Then `y.backward()` asked
# how fast y moves when x moves. The answer is the **gradient** of x. It was found in the reverse
# order, one *node* for each operation: the sum first, then the product, and in the end x, where
# three gradients met and were added: 1 + 3 + 3 = 7.
#
# | | |
# |---|---|
# | minutes | 20 |
# | memory | 300 MB |
# | assumes | Python; the slope of x² is 2x. No PyTorch. |
# | you can explain | what forward and backward do, and where a gradient arrives |
#
# Nothing here can break. A `...` in a cell is a blank for you; left blank, it stops nothing.
#
# ## 1. Step from Python
#
# What the keys → and ← do, a line of Python does too. The Stepper above moves along while you run
# the next cells; each of them also shows the picture and the words of its step. What to look for
# stands before the cell.
#
# Step 2 is the end of forward: y is 12, and there is no `.grad` yet. *Saved for backward* is what
# the product will need later: its two factors. Both are x itself, one piece of memory, so the two
# take 4 bytes and not 8. (PyTorch calls the first factor `self` and the second `other`.)

# %%
s.go(2)

# %% [markdown]
# One step on, `backward()` starts, at y, with the gradient of y itself: 1.

# %%
s.step()

# %% [markdown]
# `run_until` goes on to a name: of a node, an operation or a variable. Here the node of the product
# is about to run. It *receives* 1. Its *rule* is that each factor gets that, times the other
# factor. (*in torch* is the same rule in PyTorch's own source; nobody needs to read that line.) And
# x is waiting: one of its three gradients is there, that of the sum. The arrow marked with a 2 will
# bring two more, one for each x in x * x.

# %%
s.run_until("MulBackward*")

# %% [markdown]
# The three kinds of names, each looked for from the start: an operation, a variable that an
# operation made, and x, whose node is the last. A `*` stands for anything.

# %%
for name in ("mul", "y", "x"):
    s.go(0)
    s.run_until(name)
    print(name, "is at step", s.step)

# %% [markdown]
# At last the gradient reaches x: `x.grad` *gains* 7. It was empty before.

# %%
s.run_until(accumulate=True)

# %% [markdown]
# ## 2. Guess first
#
# From here on, take a guess before you look. It is kept, and nobody minds a wrong one. Take
# y = x · x · x at x = 2.

# %%
from autograd_lab.teach.exercises import start as lesson

lesson.cube_nodes.ask()

# %%
lesson.cube_grad.ask()

# %% [markdown]
# In this Stepper a number is a `?` until you reveal it. Follow the arrows with → up to `x.grad`. An
# arrow marked with a 2 carries two gradients, one for each time that a product uses x; an arrow
# without a number carries one. How many gradients will meet at x?

# %%
x = torch.tensor(2.0, requires_grad=True)
with al.record() as rec:
    y = x * x * x
    y.backward()
cube = al.Stepper(rec.recording, hide="values")
cube

# %% [markdown]
# And what about your guesses?

# %%
lesson.cube_nodes.reveal(len(rec.recording.nodes))

# %%
lesson.cube_grad.reveal(x.grad)

# %% [markdown] tags=["answer"]
# Two products and the one leaf x: 3 nodes. Three gradients of 4 meet at x, since each of the three
# factors moves y by the product of the two others: 12. That is 3x², as it has to be. Now with its
# numbers:

# %% tags=["answer"]
cube.reveal()
cube.run_until(accumulate=True)

# %% [markdown]
# ## 3. Two exercises
#
# Your own numbers, and an answer at once. Stuck? Add a cell with `lesson.slope.hint()`; after a
# try, `lesson.slope.solution()` shows an answer.
#
# ### Exercise: on paper
#
# What is the gradient of x for y = x · x + x at your own x?

# %%
from autograd_lab import teach

lesson.slope.data()

# %% tags=["exercise:slope"]
answer = ...  # one number
lesson.slope.check(answer)

# %% [markdown]
# ### Exercise: in the Stepper
#
# This y is a product of many x. Go to the step at which `.grad` of x appears, from Python or with
# the keys. Which step is it?

# %%
n = lesson.arrival.data()["factors"]
x = torch.tensor(2.0, requires_grad=True)
with al.record() as rec:
    y = x
    for _ in range(n - 1):
        y = y * x
    y.backward()
own = al.Stepper(rec.recording)
own

# %% tags=["exercise:arrival"]
answer = ...  # the number of the step
lesson.arrival.check(answer)

# %% [markdown]
# ## 4. Keep your work
#
# **Save** with Ctrl+S (⌘S on a Mac). On a free server, such as Binder, that is not enough: it
# forgets everything after ten quiet minutes. Download what you want to keep: *File → Download*.
#
# What you have solved is kept in a small file beside the notebook. This shows it, for this lesson:

# %%
teach.progress("00")

# %% [markdown]
# `teach.progress()` shows all lessons, and what comes next. In a new cell,
#
# - `teach.progress().export("my.json")` writes it to a file for you to download,
# - `teach.progress().load("my.json")` takes it back, on another day or another machine,
# - `teach.progress().reset()` starts afresh; the old file is kept beside.
#
# To **restore** a lesson, rename or delete your copy and open the lessons again: a missing one is
# written afresh, yours are never overwritten. *Kernel → Restart Kernel* puts Python back to the
# start and leaves what you wrote.
#
# Is this machine ready for the other lessons?

# %%
teach.check_setup()

# %% [markdown]
# `ok`, or a line for each thing to do. `teach.check_setup().details` has the versions.
#
# ## What you can explain now
#
# - Forward computes, and keeps what backward will need.
# - Backward starts at the result with 1, and runs the nodes in the reverse order.
# - A node receives a gradient and returns one for each of its inputs.
# - What arrives at x is added up, and stays in `x.grad`.
#
# Next: `01_tape.ipynb`, where you write such a backward yourself.
