# %% [markdown]
# # A tape of your own
#
# **Afterwards you can explain** how `backward()` finds a gradient: what the forward pass writes
# down, in which order that is read back, and why gradients are added, within one pass and from
# one pass to the next.
#
# | | |
# |---|---|
# | minutes | 30 |
# | memory | 350 MB |
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
# Take f = (a·b + a)² at a = 2, b = 3. We want to know how fast f moves when a moves, or b: that
# is their *gradient*. A computer works in three steps, and at each step it knows a *slope*: how
# fast the result **of this step** moves when one of its inputs moves.
#
# | step | value | slope towards its inputs |
# |---|---|---|
# | ab = a · b | 6 | b = 3 towards a, a = 2 towards b |
# | s = ab + a | 8 | 1 towards ab, 1 towards a |
# | f = s² | 64 | 2s = 16 towards s |
#
# Writing down all steps, one after the other, is called recording a *tape*. A number on our tape
# keeps three things beside its value: its name, which numbers it was made from (its parents), and
# the slopes towards them.


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
# There is no gradient yet: the forward pass only kept a few numbers for later.
#
# ## 2. Does PyTorch write the same?
#
# Yes, for tensors made with `requires_grad=True` and for everything computed from them. Each
# result has a `grad_fn`, a *node* for the operation that made it, and the node's
# `next_functions` are its parents, each in a pair with a number that we don't need here.
# (`AccumulateGrad` stands for a *leaf*: a tensor that you made yourself. We cut off the number that
# torch puts at the end of its names.)


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
while torch_parents(node):
    parents = torch_parents(node)
    print(label(node), "was made from", [label(p) for p in parents])
    node = parents[0]

# %% [markdown]
# It is the same graph as ours: a square, made from a sum, made from a product and from a. The
# product was made from a and b, so **a is reached twice**.
#
# ## 3. Which node runs first backward?
#
# Now PyTorch goes through these nodes once: the backward pass. Make a guess before you go on.

# %%
lesson.first_node.ask()

# %% [markdown]
# A node may run only when everything that was made *from* it has run, because only then has
# all of its gradient arrived. This finds such an order: visit the parents first, note a node
# after them, and in the end reverse the list.


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
# And PyTorch's own engine? A *hook* is a function that torch calls when something happens: here
# it notes each node that runs. (`retain_graph=True` keeps the graph after the pass; we need it
# again in section 6.)


# %%
def note_when_it_runs(node, ran):
    node.register_prehook(lambda grads: ran.append(label(node)))


ran = []
for node in backward_order(F.grad_fn, torch_parents):
    note_when_it_runs(node, ran)
F.backward(retain_graph=True)
print(ran)
lesson.first_node.reveal(ran[0])

# %% [markdown] tags=["answer"]
# The last operation of the forward pass runs first, the leaves come last.

# %% [markdown]
# ## 4. What does each node do?
#
# It receives one number, the gradient of its result: how fast f moves when that result moves. It
# hands each parent that number **times the slope** towards it. It starts with 1 at f itself.
# What will arrive at a? You can work it out on paper from the table: two paths lead from f to a.

# %%
lesson.grad_of_a.ask()

# %% [markdown]
# This loop is the whole of backward. `meet` says what happens when a second gradient arrives
# where one is already waiting: it is added. (`parents` and `pass_back` are functions, so that the
# same loop can walk PyTorch's nodes in section 6.)


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

# %% [markdown] tags=["answer"]
# Through the sum 16 · 1 = 16 arrives at a, through the product 16 · 1 · 3 = 48: together 64.
# Only one path leads to b: 16 · 1 · 2 = 32. (That f itself is 64, too, is chance.)

# %% [markdown]
# **And if we forgot to add?** Suppose the second gradient *replaced* the first (`=` where `+=`
# is right).

# %%
lesson.overwritten.ask()


# %%
def replace(waiting, new):
    return new


careless = backward(f, our_parents, times_slopes, replace)
lesson.overwritten.reveal(careless[a])

# %% [markdown] tags=["answer"]
# The product runs after the sum, so its 48 wipes out the 16: no error, no warning, a wrong
# number. **Within one pass** gradients are added because a moves f along both paths at once: the
# sum is the derivative.

# %% [markdown]
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
# ## 5. And from one pass to the next?
#
# That was a single pass. In training there are many: one forward and one backward for each batch,
# always with the same leaves. PyTorch leaves what has arrived at a leaf in its `.grad`. Take two
# passes, each with a graph of its own, and nothing in between. One pass brings a the gradient 64.

# %%
lesson.two_passes.ask()

# %%
a2 = torch.tensor(2.0, requires_grad=True)
b2 = torch.tensor(3.0, requires_grad=True)
for number in (1, 2):
    f2 = (a2 * b2 + a2) ** 2  # forward: a new graph
    f2.backward()
    print("after pass", number, ".grad of a is", a2.grad.item())
lesson.two_passes.reveal(a2.grad)

# %% [markdown] tags=["answer"]
# The second pass did not replace the first, it was added to it. **From one pass to the next**
# this is a choice of PyTorch's and not the chain rule: useful when one large batch is worked
# through in parts, wrong when the next batch should start afresh. That is why a training loop
# calls `optimizer.zero_grad()`, which empties `.grad`, once for each step.

# %% [markdown]
# ### Exercise: over four passes
#
# Four passes, one after the other, bring one leaf the gradients below. `zero_grad()` is called
# once: after the second pass. What does `.grad` hold in the end?

# %%
lesson.over_passes.data()

# %% tags=["exercise:over_passes"]
answer = ...  # one number
lesson.over_passes.check(answer)

# %% [markdown]
# ## 6. The same loop on PyTorch's nodes
#
# A `grad_fn` can be called: give it the gradient of its result and it returns those of its
# inputs. So our loop can walk the real graph. A leaf hands nothing on; its node knows the leaf as
# `node.variable`, where we look up what has arrived.


# %%
def call_node(node, g):
    if not torch_parents(node):
        return []  # a leaf
    out = node(torch.as_tensor(g))
    out = out if isinstance(out, tuple) else (out,)
    edges = zip(out, node.next_functions, strict=True)
    return [g for g, (parent, _) in edges if parent is not None]


# %%
def at_leaves(grads):
    leaves = [node for node in grads if hasattr(node, "variable")]
    return {node.variable: grads[node] for node in leaves}


ours = at_leaves(backward(F.grad_fn, torch_parents, call_node))
print("arrived at a:", ours[A].item(), " at b:", ours[B].item())
teach.compare("gradient of a", ours[A], A.grad)

# %% [markdown]
# *Exact* means bit for bit: the one `F.backward()` of section 3 had put the same number into
# `A.grad`. Round numbers are easy, so here are a thousand random ones at once, with the loop
# unchanged.

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
# all agree on, so look at what PyTorch does. (`torch.autograd.grad` runs a backward pass and
# returns the gradients, instead of adding them to `.grad`.)

# %%
x = torch.tensor(4.0, requires_grad=True)
y = torch.tensor(4.0, requires_grad=True)
largest = torch.stack([x, y]).max(dim=0).values
print("maximum ", torch.autograd.grad(torch.maximum(x, y), (x, y)))
print("max(dim)", torch.autograd.grad(largest, (x, y)))

# %% [markdown]
# `torch.maximum` shares a tie in halves; `max(dim=...)` gives all to the one place that it
# picked. Write the rule of `torch.maximum`; `x` and `y` are plain numbers. It is tried on three
# pairs:

# %%
lesson.max_rule.data()


# %% tags=["exercise:max_rule"]
def max_rule(x, y):
    return ...  # two slopes: towards x, towards y


lesson.max_rule.check(lambda pairs: [max_rule(x, y) for x, y in pairs])

# %% [markdown]
# More than this rule the tape need not know:


# %%
def maximum(x, y):
    larger = max(x.value, y.value)
    slopes = max_rule(x.value, y.value)
    return Number(larger, "maximum", (x, y), slopes)


# %% [markdown]
# ### Exercise: an order on demand
#
# Build an expression from `a` with `+`, `*` and `** 2` (each once, with numbers of your choice)
# such that PyTorch's nodes run backward in this order:

# %%
lesson.backward_order.data()


# %% tags=["exercise:backward_order"]
def build(a):
    return ...  # for example a * 3


lesson.backward_order.check(lambda order: lesson.nodes_of(build))

# %% [markdown]
# ## 7. Watch the real one
#
# `autograd_lab` writes down what PyTorch really does, without changing it. Here is our f once
# more. In the picture, read the left side downwards and the right side upwards: two arrows meet at
# A. Then open *Backward pass 1* below it: which node returns the 48, and which the 16?

# %%
import autograd_lab as al

A = torch.tensor(2.0, requires_grad=True)
B = torch.tensor(3.0, requires_grad=True)
with al.record() as rec:
    F = (A * B + A) ** 2
    F.backward()
rec.recording

# %% [markdown]
# ## What you can explain now
#
# - Forward writes down, for each operation, its inputs and what its slopes need.
# - Backward reads that in reverse: a node runs when all its gradient has arrived.
# - Each node multiplies by its slopes; where paths meet within a pass, gradients are **added**,
#   because that is the derivative.
# - What arrives at a leaf is **added** to its `.grad`, pass after pass, until `zero_grad()`.
# - PyTorch's `grad_fn` graph is such a tape.
#
# `teach.progress()` in a new cell shows what you have solved and what is next;
# `teach.progress().export("my.json")` saves it, so download that file before a free server goes
# to sleep.
