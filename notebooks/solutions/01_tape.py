# Worked answers of lesson 01; each cell replaces the one with the same tag.

# %% tags=["exercise:two_paths"]
def answer(a, b):
    """One path leads to a (slope b); a*b and b*b both lead to b, and their slopes add up."""
    return b, a + 2 * b


lesson.two_paths.check(answer)


# %% tags=["exercise:over_passes"]
def answer(gradients):
    """zero_grad() after the second pass: the third and the fourth are left."""
    return gradients[2] + gradients[3]


lesson.over_passes.check(answer)


# %% tags=["exercise:max_rule"]
def max_rule(x, y):
    if x == y:
        return 0.5, 0.5
    return (1.0, 0.0) if x > y else (0.0, 1.0)


lesson.max_rule.check(lambda pairs: [max_rule(x, y) for x, y in pairs])


# %% tags=["exercise:backward_order"]
def build(a):
    """Apply the operations in the reverse of the order asked for."""
    result = a
    for name in reversed(lesson.backward_order.data()["order"]):
        if name == "AddBackward":
            result = result + 1
        elif name == "MulBackward":
            result = result * 2
        else:
            result = result**2
    return result


lesson.backward_order.check(lambda order: lesson.nodes_of(build))
