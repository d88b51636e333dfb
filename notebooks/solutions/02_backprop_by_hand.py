# Worked answers of lesson 02; each cell replaces the one with the same tag.

# %% tags=["exercise:d_logits"]
with lesson.d_logits:
    d_logits = (p - y) / 4
lesson.d_logits.check(d_logits)

# %% tags=["exercise:d_w2"]
with lesson.d_w2:
    d_w2 = h.T @ d_logits
lesson.d_w2.check(d_w2)

# %% tags=["exercise:d_b2"]
with lesson.d_b2:
    d_b2 = d_logits.sum(0)
lesson.d_b2.check(d_b2)

# %% tags=["exercise:d_h"]
with lesson.d_h:
    d_h = d_logits @ w2.T
lesson.d_h.check(d_h)

# %% tags=["exercise:d_z"]
with lesson.d_z:
    d_z = d_h * (z > 0)
lesson.d_z.check(d_z)

# %% tags=["exercise:d_w1"]
with lesson.d_w1:
    d_w1 = x.T @ d_z
lesson.d_w1.check(d_w1)

# %% tags=["exercise:d_b1"]
with lesson.d_b1:
    d_b1 = d_z.sum(0)
lesson.d_b1.check(d_b1)

# %% tags=["exercise:d_x"]
with lesson.d_x:
    d_x = d_z @ w1.T
lesson.d_x.check(d_x)
