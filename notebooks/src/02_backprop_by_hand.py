# %% [markdown]
# # Backprop by hand, then stepped
#
# **Afterwards you can explain** each gradient of a small network, in one line each; which node of
# PyTorch computes it, from what and when; and what stays in `.grad`.
#
# | | |
# |---|---|
# | minutes | 30 |
# | memory | 350 MB |
# | assumes | lesson 00 or 01; matrix products; a network's loss |
#
# Eight blanks stand below. Left blank they stop nothing, and each is checked at once.

# %%
import torch

import autograd_lab as al
from autograd_lab import teach
from autograd_lab.teach.exercises import backprop as lesson

torch.manual_seed(0)
teach.check_setup()

# %% [markdown]
# ## 1. The network
#
# Four handwritten digits, 8x8 pixels each, one in a row of `x`. Two layers: 64 pixels → 16 hidden
# units → 10 classes. `y` holds the labels: a 1 at the right class, else 0. Digits and weights are
# your own; all but `y` want a gradient.

# %%
x, y, w1, b1, w2, b2 = lesson.net()
print("x ", tuple(x.shape), " y ", tuple(y.shape))
print("w1", tuple(w1.shape), "b1", tuple(b1.shape))
print("w2", tuple(w2.shape), "b2", tuple(b2.shape))
labels = y.argmax(dim=1)
print("labels", labels.tolist())
print(lesson.picture(x))

# %% [markdown]
# Forward. `p` are the probabilities of the classes, and the loss is the mean of -log p of the right
# class over the four images.

# %%
z = x @ w1 + b1
h = z.relu()
logits = h @ w2 + b2
p = logits.softmax(dim=1)
loss = torch.nn.functional.cross_entropy(logits, labels)
print(f"loss {loss.item():.4g}")

# %% [markdown]
# Now PyTorch's own gradients, to check yours with. Only leaves keep theirs; `retain_grad()` asks
# the tensors in between to do the same.

# %%
for tensor in (z, h, logits):
    tensor.retain_grad()
loss.backward()

# %% [markdown]
# ## 2. Eight gradients, from the loss down
#
# `d_h` is our name for the gradient of the loss towards `h`; it has the shape of `h`. Each one is a
# single line, made from those before it and from the values of the forward pass.
#
# Write your line in place of the `...`. Inside `with`, shapes that don't fit together become a
# verdict, too. Stuck? `lesson.d_logits.hint()`, then `lesson.d_logits.solution()`. To skip one,
# take PyTorch's own: `d_logits = logits.grad`.

# %%
d_logits = d_w2 = d_b2 = d_h = d_z = d_w1 = d_b1 = d_x = ...  # all blank

# %% [markdown]
# ### The logits
#
# For one image, softmax and -log together have a short rule: each class gets its p, and the right
# class gets p - 1. The loss is a *mean* over the images.

# %% tags=["exercise:d_logits"]
with lesson.d_logits:
    d_logits = ...  # (4, 10), from p and y
lesson.d_logits.check(d_logits)

# %% [markdown]
# ### The second layer: logits = h @ w2 + b2
#
# Each entry of `w2` was multiplied by one of `h`, in all four images; each entry of `b2` was
# added in all four. Let the shapes guide you: only one matrix product fits.

# %% tags=["exercise:d_w2"]
with lesson.d_w2:
    d_w2 = ...  # (16, 10), from h and d_logits
lesson.d_w2.check(d_w2)

# %% tags=["exercise:d_b2"]
with lesson.d_b2:
    d_b2 = ...  # (10,), from d_logits
lesson.d_b2.check(d_b2)

# %% [markdown]
# And what goes on to the layer below:

# %% tags=["exercise:d_h"]
with lesson.d_h:
    d_h = ...  # (4, 16), from d_logits and w2
lesson.d_h.check(d_h)

# %% [markdown]
# ### The hidden units: h = relu(z)
#
# relu lets through what is above 0, one to one, and nothing else.

# %% tags=["exercise:d_z"]
with lesson.d_z:
    d_z = ...  # (4, 16), from d_h and z
lesson.d_z.check(d_z)

# %% [markdown]
# ### The first layer: z = x @ w1 + b1
#
# The same three rules once more.

# %% tags=["exercise:d_w1"]
with lesson.d_w1:
    d_w1 = ...  # (64, 16)
lesson.d_w1.check(d_w1)

# %% tags=["exercise:d_b1"]
with lesson.d_b1:
    d_b1 = ...  # (16,)
lesson.d_b1.check(d_b1)

# %% tags=["exercise:d_x"]
with lesson.d_x:
    d_x = ...  # (4, 64)
lesson.d_x.check(d_x)

# %% [markdown]
# All eight beside PyTorch's. *Exact* is bit for bit; *up to rounding* means that the same sum was
# taken in another order.

# %%
names = ["logits", "w2", "b2", "h", "z", "w1", "b1", "x"]
mine = [d_logits, d_w2, d_b2, d_h, d_z, d_w1, d_b1, d_x]
theirs = [logits, w2, b2, h, z, w1, b1, x]
for name, ours, tensor in zip(names, mine, theirs, strict=True):
    print(teach.compare(name, ours, tensor.grad))

# %% [markdown]
# Look at what you needed of the forward pass: `p`, `h`, `z > 0`, `x`, and the weights. That is what
# PyTorch *saves* for backward.
#
# ## 3. The same graph, stepped
#
# The same forward and backward once more, now recorded. The digits are data and want no
# gradient (`x.detach()`), as in training.

# %%
images = x.detach()
w1.grad = b1.grad = w2.grad = b2.grad = None
with al.record() as rec:
    z = images @ w1 + b1
    h = z.relu()
    logits = h @ w2 + b2
    loss = torch.nn.functional.cross_entropy(logits, labels)
    loss.backward()
s = al.Stepper(rec.recording)
s

# %% [markdown]
# Go to the product `h @ w2` on the way back. The Stepper above moves along; `teach.brief` keeps the
# words that count here. (`print(s.frame)` has them all: *in torch* is the rule in PyTorch's own
# source. *Saved for backward* has `MmBackward0 self` twice, since two products ran: `images` and
# `h`. A memory that several nodes hold, as `h`, counts once in the bytes.) Read what the node
# *receives*, and its *rule*.

# %%
print(teach.brief(s.run_until("MmBackward*")))

# %% [markdown]
# It receives `d_logits`; g in the rule stands for it, a for `h`, b for `w2`. So the rule is two of
# your lines: `d_h` is g @ b.T and `d_w2` is a.T @ g. One step on it has finished, and the words say
# what it *returns*:

# %%
print(teach.brief(s.step()))

# %% [markdown]
# Both are there, and the node has let go of what it had saved. What happens to `d_w2` next, and
# what has to wait?

# %%
lesson.grads_at_relu.ask()

# %% tags=["answer"]
print(teach.brief(s.run_until("ReluBackward*")))

# %%
filled = [rec.recording.tensors[leaf].name for leaf in s.frame.grads]
lesson.grads_at_relu.reveal(" and ".join(sorted(filled)))

# %% [markdown] tags=["answer"]
# A leaf is served as soon as its gradient is complete: `w2.grad` was filled before relu's node
# starts.

# %% [markdown]
# Here is what relu does:

# %%
print(teach.brief(s.step()))

# %% [markdown]
# *zero of 64* counts the places where z was not above 0. The last product finds that `images` wants
# no gradient, and computes only the one of `w1`:

# %%
s.run_until("MmBackward*")
print(teach.brief(s.step()))

# %% [markdown]
# ### A variable that is used twice
#
# Take one weight w in two places: y = 3w + 5w, at w = 2.

# %%
lesson.shared_grads.ask()

# %%
w = torch.tensor(2.0, requires_grad=True)
with al.record() as rec:
    y = w * 3 + w * 5
    y.backward()
shared = al.Stepper(rec.recording)
shared

# %% [markdown]
# One product has run backward; in the picture, w says what it waits for.

# %% tags=["answer"]
shared.run_until("MulBackward*")
shared.step()

# %%
waiting = shared.frame.waiting
received, expected = next(iter(waiting.values()))
print("w.grad += has", received, "of", expected, "gradients")
lesson.shared_grads.reveal(expected)

# %% [markdown] tags=["answer"]
# PyTorch counts, before backward begins, how many gradients each node will get, and lets it run
# when all have come. Then w gets the sum: 5 + 3.

# %% tags=["answer"]
shared.run_until(accumulate=True)

# %% [markdown]
# ## 4. What stays in `.grad`
#
# `w` is a **leaf**: made by you, not computed. Only leaves keep a gradient; before the first
# backward it is `None`, not 0.

# %%
w = torch.tensor(2.0, requires_grad=True)
y = w * 3 + w * 5
print("leaf:", w.is_leaf, "and y:", y.is_leaf)
print("before:", w.grad)
y.backward()
print("after:", w.grad)

# %%
lesson.second_backward.ask()

# %%
with teach.expect_error(RuntimeError, "through the graph a second time"):
    y.backward()
lesson.second_backward.reveal("an error")

# %% [markdown] tags=["answer"]
# The graph is used up: what the nodes had saved is freed. A new forward makes a new graph.

# %%
lesson.two_backwards.ask()

# %%
y = w * 3 + w * 5
y.backward()
lesson.two_backwards.reveal(f"{w.grad.item():g}")

# %% [markdown] tags=["answer"]
# Added, from pass to pass.

# %% [markdown]
# A step of an optimizer moves w, and leaves `.grad` as it is:

# %%
optimizer = torch.optim.SGD([w], lr=0.125)
optimizer.step()
print("w is now", w.item(), "and .grad still", w.grad.item())

# %% [markdown]
# 2 - 0.125 · 16 = 0. Which is why a training loop clears `.grad` once for each step:

# %%
lesson.zeroed.ask()

# %%
optimizer.zero_grad()
lesson.zeroed.reveal(str(w.grad))

# %% [markdown] tags=["answer"]
# `None` again, as before the first backward: that takes no memory, and the next gradient is put
# there instead of added.

# %% [markdown]
# ### Two ways to say: no gradient here
#
# `detach()` gives the same numbers without their history. Take y = u · w with u = 3w, at w = 2, but
# with u detached.

# %%
lesson.detached.ask()

# %%
w = torch.tensor(2.0, requires_grad=True)
with al.record() as rec:
    u = (w * 3).detach()
    y = u * w
    y.backward()
lesson.detached.reveal(int(w.grad))

# %% [markdown] tags=["answer"]
# For backward, u is the number 6, however it was made: the gradient of w is 6. With its history it
# would be 12. In the Stepper, the path through u ends at `detach`:

# %% tags=["answer"]
cut = al.Stepper(rec.recording)
cut.run_until(accumulate=True)
cut

# %% [markdown]
# `no_grad()` is for whole blocks, as when a model is only used.

# %%
lesson.inside_no_grad.ask()

# %%
with torch.no_grad():
    y = w * 3
print("y wants a gradient:", y.requires_grad)
with teach.expect_error(RuntimeError, "does not require grad"):
    y.backward()
lesson.inside_no_grad.reveal("an error")

# %% [markdown] tags=["answer"]
# Nothing was written down, so there is nothing to go back through.

# %% [markdown]
# ## What you can explain now
#
# - A product's gradients are two products with the other factor, transposed; a bias gets the sum
#   over the batch; relu lets through where z > 0; cross entropy gives (p - y) / batch.
# - A node runs when all its gradients have come; a leaf is served at once.
# - `.grad` is `None` at first, is added to by each pass, is untouched by `step()`, and is cleared
#   by `zero_grad()`.
# - `detach()` and `no_grad()` end a path.
#
# `teach.progress()` in a new cell shows what is solved and what is next.
