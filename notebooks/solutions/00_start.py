# Worked answers of lesson 00; each cell replaces the one with the same tag.

# %% tags=["exercise:slope"]
def answer(x):
    """The product hands x back twice, the sum hands back 1."""
    return x + x + 1


lesson.slope.check(answer)


# %% tags=["exercise:arrival"]
own.run_until(accumulate=True)
answer = own.step
lesson.arrival.check(answer)
