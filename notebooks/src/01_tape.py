# %% [markdown]
# # A tape of your own
#
# **Afterwards you can explain** how `backward()` finds a gradient: what the forward pass writes
# down, in which order that is read back, and why gradients are added where two paths meet.
#
# | | |
# |---|---|
# | minutes | 25 |
# | memory | 300 MB |
# | assumes | Python functions; the chain rule (the slope of x² is 2x). Little PyTorch. |
#
# Each step has a question, often a guess of yours, then a cell that answers it. Run a cell with
# **Shift+Enter**. A `...` in a cell is a blank for you; leaving it blank breaks nothing.

# %%
import operator

import torch

from autograd_lab import teach
from autograd_lab.teach.exercises import tape as lesson

torch.manual_seed(0)
teach.check_setup()

# %% [markdown]
# ## 1. What has to be written down?
#
# Take f = (a·b + a)² at a = 2, b = 3. A computer works in three steps, and at each step it
# knows a *slope*: how fast the result moves when one of the inputs moves.
#
# | step | value | slope towards its inputs |
# |---|---|---|
# | ab = a · b | 6 | b = 3 towards a, a = 2 towards b |
# | s = ab + a | 8 | 1 towards ab, 1 towards a |
# | f = s² | 64 | 2s = 16 towards s |
#
# So a number on our tape keeps three things beside its value: its name, which numbers it was
# made from, and these slopes.


# %%
class Number:
    """A value that remembers what it was made from."""

    def __init__(self, value, name, parents=(), slopes=()):
        self.value, self.name = value, name
        self.parents, self.slopes = parents, slopes


# %% [markdown]
# Each operation computes its value *and* notes its slopes, while it still knows its inputs.


# %%
def mul(x, y):
    return Number(x.value * y.value, "mul", (x, y), (y.value, x.value))


def add(x, y):
    return Number(x.value + y.value, "add", (x, y), (1.0, 1.0))


def square(x):
    return Number(x.value**2, "square", (x,), (2 * x.value,))


# %% [markdown]
# Now the forward pass. Compare the values and slopes with the table above.

# %%
a, b = Number(2.0, "a"), Number(3.0, "b")
ab = mul(a, b)
s = add(ab, a)
f = square(s)
for step in (ab, s, f):
    print(step.name, step.value, "slopes", step.slopes)

# %% [markdown]
# Nothing has been differentiated yet: the forward pass only kept a few numbers for later.
#
# ## 2. Does PyTorch write the same?
#
# Yes: every result has a `grad_fn`, a node for the operation that made it, and the node's
# `next_functions` are its parents. (`AccumulateGrad` stands for a leaf: a number you made
# yourself. We cut off the number that torch puts at the end of its names.)


# %%
def label(node):
    return node.name().split("::")[-1].rstrip("0123456789")


def torch_parents(node):
    return [p for p, _ in node.next_functions if p is not None]


# %%
A = torch.tensor(2.0, requires_grad=True)
B = torch.tensor(3.0, requires_grad=True)
F = (A * B + A) ** 2
node = F.grad_fn
while made_from := torch_parents(node):
    print(label(node), "was made from", *map(label, made_from))
    node = made_from[0]

# %% [markdown]
# It is the same graph as ours, read from the end: square, add, mul, and `AccumulateGrad` for
# a and b. The node of the sum leads to the product and to a directly, so **a is reached twice**.
#
# ## 3. Which node runs first backward?
#
# Make a guess before you go on.

# %%
lesson.first_node.ask()

# %% [markdown]
# A node may run only when everything that was made *from* it has run, because only then has
# all of its gradient arrived. So: visit parents first, note a node after them, then reverse.


# %%
def backward_order(root, parents):
    order = []

    def visit(node):
        if node not in order:
            for parent in parents(node):
                visit(parent)
            order.append(node)

    visit(root)
    return order[::-1]


# %%
def our_parents(number):
    return number.parents


[number.name for number in backward_order(f, our_parents)]

# %% [markdown]
# And PyTorch's own engine? A hook on each node notes when it really runs.

# %%
ran = []
for n in backward_order(F.grad_fn, torch_parents):
    n.register_prehook(lambda _, n=n: ran.append(label(n)))
F.backward(retain_graph=True)
print(*ran)
lesson.first_node.reveal(ran[0])

# %% [markdown]
# The last operation of the forward pass runs first, the leaves come last.
#
# ## 4. What does each node do?
#
# It receives one number, the gradient of its result, and hands each parent that number **times
# the slope** towards it. What will arrive at a? You can work it out on paper from the table:
# two paths lead from f to a.

# %%
lesson.grad_of_a.ask()

# %% [markdown]
# This loop is the whole of backward. `meet` says what happens when a second gradient arrives
# where one is already waiting: it is added.


# %%
def backward(root, parents, pass_back, meet=operator.add):
    grads = {root: 1.0}
    for node in backward_order(root, parents):
        handed = pass_back(node, grads[node])
        for parent, g in zip(parents(node), handed, strict=True):
            if parent in grads:
                g = meet(grads[parent], g)
            grads[parent] = g
    return grads


# %%
def times_slopes(number, g):
    return [g * slope for slope in number.slopes]


grads = backward(f, our_parents, times_slopes)
print("gradient of a:", grads[a], " gradient of b:", grads[b])
lesson.grad_of_a.reveal(grads[a])

# %% [markdown]
# Through the sum 16 · 1 = 16 arrives at a, through the product 16 · 1 · 3 = 48: together 64.
# Only one path leads to b: 16 · 1 · 2 = 32.
#
# **And if we forgot to add?** Suppose the second gradient *replaced* the first (`=` where `+=`
# is right). What would a get?

# %%
lesson.overwritten.ask()


# %%
def replace(waiting, new):
    return new


careless = backward(f, our_parents, times_slopes, replace)
lesson.overwritten.reveal(careless[a])

# %% [markdown]
# The product runs after the sum, so its 48 wipes out the 16. No error, no warning, just a wrong
# number: that is why PyTorch *accumulates* gradients, and why you call `zero_grad()` between steps.
#
# ### Exercise: two paths
#
# Let g = a·b + b·b, with your own numbers. What are the gradients of a and of b? Write the two
# numbers, or a function of `a` and `b`. Stuck? Add a cell with `lesson.two_paths.hint()`;
# after a try, `lesson.two_paths.solution()` shows an answer.

# %%
lesson.two_paths.data()

# %% tags=["exercise:two_paths"]
answer = ...  # (gradient of a, gradient of b)
lesson.two_paths.check(answer)

# %% [markdown]
# ## 5. The same loop on PyTorch's nodes
#
# A `grad_fn` can be called: give it the gradient of its result and it returns those of its
# inputs. So our loop can walk the real graph. A leaf has no parents and hands nothing on; its
# node knows the leaf as `node.variable`, where we look up what has arrived.


# %%
def call_node(node, g):
    out = node(torch.as_tensor(g)) if torch_parents(node) else ()
    return out if isinstance(out, tuple) else (out,)


def at_leaves(grads):
    leaves = [node for node in grads if hasattr(node, "variable")]
    return {node.variable: grads[node] for node in leaves}


# %%
ours = at_leaves(backward(F.grad_fn, torch_parents, call_node))
print("arrived at a:", ours[A].item(), " at b:", ours[B].item())
teach.compare("gradient of a", ours[A], A.grad)

# %% [markdown]
# *Exact* means bit for bit: `F.backward()` above had put the same number into `A.grad`.
# Round numbers are easy, so here are a thousand random ones at once, with the loop unchanged.

# %%
A = torch.rand(1000, requires_grad=True)
B = torch.rand(1000, requires_grad=True)
F = ((A * B + A) ** 2).sum()
ours = at_leaves(backward(F.grad_fn, torch_parents, call_node))
F.backward()
teach.compare("a thousand gradients", ours[A], A.grad)

# %% [markdown]
# The engine of PyTorch is faster, works on many devices and frees memory as it goes. What it
# computes is this loop.
#
# ### Exercise: teach the tape `max`
#
# The larger input decides the result. What are the slopes? For a tie there is no slope that
# all agree on, so look at what PyTorch does:

# %%
x = torch.tensor(4.0, requires_grad=True)
y = torch.tensor(4.0, requires_grad=True)
largest = torch.stack([x, y]).max(dim=0).values
print("maximum ", torch.autograd.grad(torch.maximum(x, y), (x, y)))
print("max(dim)", torch.autograd.grad(largest, (x, y)))

# %% [markdown]
# `torch.maximum` shares a tie in halves; `max(dim=...)` gives all to the one place that it
# picked. Write the rule of `torch.maximum`; `x.value` and `y.value` are plain numbers.
# The cell tries it on three pairs of your own numbers.


# %% tags=["exercise:max_rule"]
def maximum(x, y):
    slopes = ...  # two numbers: towards x, towards y
    return Number(max(x.value, y.value), "maximum", (x, y), slopes)


def slopes_of(pairs):
    numbers = [(Number(x, "x"), Number(y, "y")) for x, y in pairs]
    return [maximum(x, y).slopes for x, y in numbers]


lesson.max_rule.check(slopes_of)

# %% [markdown]
# ### Exercise: an order on demand
#
# Build an expression from `a` with `+`, `*` and `** 2` (each once, with numbers of your choice)
# such that PyTorch's nodes run backward in this order:

# %%
lesson.backward_order.data()["order"]


# %% tags=["exercise:backward_order"]
def build(a):
    return ...  # for example a * 3


def names(result):
    nodes = backward_order(result.grad_fn, torch_parents)
    return [label(node) for node in nodes][:-1]  # without the leaf


leaf = torch.tensor(1.0, requires_grad=True)
lesson.backward_order.check(lambda order: names(build(leaf)))

# %% [markdown]
# ## 6. Watch the real one
#
# `autograd_lab` writes down what PyTorch really does, without changing it. Here is our f once
# more. Read the backward pass from top to bottom: find the 48 and the 16 that meet at A.

# %%
import autograd_lab as al

A = torch.tensor(2.0, requires_grad=True)
B = torch.tensor(3.0, requires_grad=True)
with al.record() as rec:
    F = (A * B + A).square()
    F.backward()
print(rec.recording)

# %% [markdown]
# ## What you can explain now
#
# - Forward writes down, for each operation, its inputs and what its slopes need.
# - Backward reads that in reverse: a node runs when all its gradient has arrived.
# - Each node multiplies by its slopes; where paths meet, gradients are **added**.
# - PyTorch's `grad_fn` graph is such a tape, and `.grad` of a leaf is what has arrived there.
#
# `teach.progress()` in a new cell shows what you have solved; `teach.progress().export("my.json")`
# saves it, so download that file before a free server goes to sleep.
