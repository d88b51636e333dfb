"""What backward unpacks is what forward saved, and torch looks after every tensor of it."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn

from autograd_lab.errors import PytreeError
from autograd_lab.pytrees import save_pytree_for_backward, unpack_saved
from tests.pytrees.trees import (
    TREES,
    Plain,
    Saver,
    SetupSaver,
    same,
    through_backward,
)


@pytest.mark.parametrize("tree", TREES.values(), ids=list(TREES))
def test_each_kind_comes_through_a_function(tree):
    assert same(through_backward(tree), tree)


def test_the_users_attributes_stay_and_one_is_added():
    names = []

    class Counts(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.spec, ctx.mine = "spec", 1
            before = set(vars(ctx))
            save_pytree_for_backward(ctx, {"x": x, "k": 2})
            names.extend(set(vars(ctx)) - before)
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            assert unpack_saved(ctx)["k"] == 2
            assert (ctx.spec, ctx.mine) == ("spec", 1)
            return grad_output * 2

    Counts.apply(torch.ones(1, requires_grad=True)).sum().backward()
    assert names == ["_autograd_lab_tree"]


@pytest.mark.parametrize(
    "second",
    [
        lambda ctx, x: save_pytree_for_backward(ctx, x),
        lambda ctx, x: save_pytree_for_backward(ctx, ()),
    ],
)
def test_saving_twice_is_refused(second):
    def twice(ctx, x):
        save_pytree_for_backward(ctx, [x])
        second(ctx, x)

    with pytest.raises(PytreeError, match="already, by save_pytree_for_backward"):
        run_forward(twice)


def test_saving_after_torchs_own_way_is_refused():
    def both(ctx, x):
        ctx.save_for_backward(x)
        save_pytree_for_backward(ctx, [x])

    with pytest.raises(PytreeError, match=r"already, by ctx\.save_for_backward"):
        run_forward(both)


def test_torchs_own_way_after_ours_is_noticed_in_backward():
    def both(ctx, x):
        save_pytree_for_backward(ctx, [x, {"y": x}])
        ctx.save_for_backward(x)

    with pytest.raises(PytreeError, match="tree has 2 tensors, but this ctx has 1"):
        run_forward(both).sum().backward()


def test_unpacking_before_saving_names_the_function_to_call():
    with pytest.raises(PytreeError, match="no saved tree on this ctx") as caught:
        run_forward(lambda ctx, x: None).sum().backward()
    assert "save_pytree_for_backward(ctx, tree)" in str(caught.value)


def test_unpacking_inside_forward_is_refused():
    def at_once(ctx, x):
        save_pytree_for_backward(ctx, [x])
        unpack_saved(ctx)

    with pytest.raises(PytreeError, match="once forward has ended"):
        run_forward(at_once)


@pytest.mark.parametrize("tree", ["flat tuple", "nested", "empty dict"])
def test_a_freed_graph_has_torchs_own_message(tree):
    y = Saver.apply(torch.ones(2, requires_grad=True), lambda *_: TREES[tree], []).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_a_kept_graph_unpacks_again():
    seen = []
    y = Saver.apply(torch.ones(2, requires_grad=True), lambda x, _: {"x": [x]}, seen).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert same(*seen)
    assert seen[0] is not seen[1]


def test_hooks_see_every_tensor():
    packed, unpacked = [], []

    def pack(tensor):
        packed.append(tensor)
        return len(packed) - 1

    def unpack(number):
        unpacked.append(number)
        return packed[number]

    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = Saver.apply(x, lambda x, out: {"x": x, "n": [out, Plain(x * 3)], "k": 1}, [])
    y.sum().backward()
    assert len(packed) == 3
    assert unpacked == [0, 1, 2]


def test_a_write_to_a_saved_tensor_is_torchs_error():
    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2)
    y = Saver.apply(x, lambda x, out: {"deep": [Plain(w)]}, [])
    w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("shape", ["flat", "dict", "dataclass", "named"])
def test_saved_input_and_output_are_freed_by_reference_counting(shape):
    def tree_of(x, out):
        return {
            "flat": (x, out),
            "dict": {"x": x, "out": out, "k": 2.0},
            "dataclass": [Plain(x, {"out": out})],
            "named": torch.return_types.max([x, out]),
        }[shape]

    was_on = gc.isenabled()
    gc.disable()
    try:
        x = torch.ones(2, requires_grad=True) * 1
        seen = []
        y = Saver.apply(x, tree_of, seen)
        alive = [weakref.ref(x), weakref.ref(y), weakref.ref(y.grad_fn)]
        y.sum().backward()
        seen.clear()
        del x, y
        assert [one() for one in alive] == [None] * 3
    finally:
        if was_on:
            gc.enable()


def test_a_graph_that_never_ran_is_freed_too():
    was_on = gc.isenabled()
    gc.disable()
    try:
        y = Saver.apply(torch.ones(2, requires_grad=True), lambda x, out: {"o": [out]}, [])
        alive = weakref.ref(y.grad_fn), weakref.ref(y)
        del y
        assert [one() for one in alive] == [None] * 2
    finally:
        if was_on:
            gc.enable()


def test_first_and_second_derivatives_are_right():
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    w = torch.randn(3, dtype=torch.float64, requires_grad=True)

    def scaled(x, w):
        return SetupSaver.apply(x, w, 2.0)

    assert torch.autograd.gradcheck(scaled, (x, w))
    assert torch.autograd.gradgradcheck(scaled, (x, w))


def test_torch_func_transforms_work():
    x, w = torch.randn(4, 3), torch.randn(3)

    def loss(x, w):
        return SetupSaver.apply(x, w, 2.0).square().sum()

    def plain(x, w):
        return (x * w * 2.0).square().sum()

    for transform in (
        lambda f: torch.func.grad(f)(x, w),
        lambda f: torch.func.jacrev(f, 1)(x, w),
        lambda f: torch.func.vmap(torch.func.grad(f), (0, None))(x, w),
        lambda f: torch.func.grad(lambda x: torch.func.grad(f)(x, w).sum())(x),
        lambda f: torch.func.vmap(f, (0, None))(x, w),
        lambda f: torch.func.vjp(f, x, w)[1](torch.ones(())),
    ):
        torch.testing.assert_close(transform(loss), transform(plain))


@pytest.mark.parametrize(
    "tree_of",
    [lambda x: (x, x), lambda x: {0: x, "k": 2.0}, lambda x: [x, {"n": (None, [x])}]],
    ids=["flat", "dict", "nested"],
)
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by dynamo
def test_compile_traces_saving_and_unpacking_whole(tree_of):
    @torch.compile(fullgraph=True, backend="aot_eager")
    def run(x):
        return KeepsTree.apply(x, tree_of).sum()

    x = torch.full((2,), 3.0, requires_grad=True)
    run(x).backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_checkpoint_saves_again():
    x = torch.ones(3, requires_grad=True)
    w = torch.full((3,), 2.0, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(SetupSaver.apply, x, w, 3.0, use_reentrant=False)
    y.sum().backward()
    assert x.grad.tolist() == [6.0] * 3


class Doubled(torch.Tensor):
    pass


def test_subclasses_and_parameters_keep_their_types():
    tree = {"s": torch.ones(2).as_subclass(Doubled), "p": nn.Parameter(torch.ones(2))}
    saved = through_backward(tree)
    assert type(saved["s"]) is Doubled
    assert saved["p"] is tree["p"]


def test_no_tensor_is_kept_on_ctx_itself():
    kept = []

    def save(ctx, x):
        save_pytree_for_backward(ctx, {"x": x, "n": [Plain(x, 2)]})
        kept.append(ctx._autograd_lab_tree)

    run_forward(save)
    assert not any(isinstance(entry, torch.Tensor) for entry in kept[0])
    assert isinstance(kept[0], tuple)


class KeepsTree(torch.autograd.Function):
    """x squared, saved in a tree whose first child is x."""

    @staticmethod
    def forward(ctx, x, tree_of):
        save_pytree_for_backward(ctx, tree_of(x))
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output * unpack_saved(ctx)[0], None


def run_forward(save):
    """Run a Function whose forward calls `save(ctx, x)`, and whose backward unpacks."""

    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            save(ctx, x)
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            unpack_saved(ctx)
            return grad_output * 2

    return Once.apply(torch.ones(2, requires_grad=True))
