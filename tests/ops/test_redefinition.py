"""An op is defined again: from the same place silently, and nothing of the old one stays."""

import gc
import pickle
import warnings
import weakref

import pytest
import torch
from torch import Tensor

from autograd_lab import errors
from autograd_lab.ops import custom_op

from .samples import fresh, mulsin_op

SOURCE = """
def again(x):
    return x * {factor}
op = custom_op(name, "(Tensor x) -> Tensor")(again)
op.impl_save_for_backward(lambda inputs, output: None)
op.impl_backward(lambda ctx, saved, grad: {{"x": grad * {factor}}})
"""


def define(name, factor, file="lesson.py"):
    scope = {"custom_op": custom_op, "name": name}
    exec(compile(SOURCE.format(factor=factor), file, "exec"), scope)
    return scope["op"]


def test_a_pending_graph_keeps_its_formula_and_an_old_handle_follows():
    name, x = fresh("again"), torch.ones(2, requires_grad=True)
    old = define(name, 2.0)
    pending = old(x).sum()
    define(name, 5.0)
    assert torch.autograd.grad(pending, x)[0].tolist() == [2.0] * 2
    assert torch.autograd.grad(old(x).sum(), x)[0].tolist() == [5.0] * 2


def test_a_compiled_function_picks_up_the_new_formula():
    name, x = fresh("again"), torch.ones(2, requires_grad=True)
    op = define(name, 2.0)
    op.impl_abstract(torch.empty_like)
    compiled = torch.compile(lambda a: op(a).sum(), fullgraph=True, backend="aot_eager")
    assert torch.autograd.grad(compiled(x), x)[0].tolist() == [2.0] * 2
    define(name, 5.0).impl_abstract(torch.empty_like)
    assert torch.autograd.grad(compiled(x), x)[0].tolist() == [5.0] * 2


def test_another_file_is_warned_of_with_both_places():
    name = fresh("again")
    define(name, 2.0, "one.py")
    told = rf"'{name}' was defined at one.py:2 and is now replaced by the one at two.py:2"
    with pytest.warns(errors.OpRedefinedWarning, match=told):
        define(name, 3.0, "two.py")


def test_two_cells_of_a_notebook_are_one_place():
    name = fresh("again")
    define(name, 2.0, "ipykernel_17/111.py")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        define(name, 3.0, "ipykernel_17/222.py")


def test_a_name_of_another_library_is_refused():
    name = fresh("again")
    library = torch.library.Library(name.partition("::")[0], "FRAGMENT")
    library.define("again(Tensor x) -> Tensor")
    with pytest.raises(errors.OpDefinitionError, match="Another library has already defined"):
        define(name, 2.0)


def test_a_schema_that_can_not_be_read_leaves_the_old_op():
    name = fresh("again")
    old = define(name, 2.0)
    with pytest.raises(errors.OpDefinitionError, match="can't be read"):
        custom_op(name, "(Tensor x) -> Nonsense")(lambda x: x)
    assert old(torch.ones(1)).tolist() == [2.0]


def test_an_op_comes_out_of_a_pickle_as_itself():
    op = mulsin_op()
    assert pickle.loads(pickle.dumps(op)) is op


def test_200_runs_of_a_cell_leave_nothing():
    name, x = fresh("mulsin"), torch.ones(2, requires_grad=True)

    def run():
        op = mulsin_op(name)
        op(x, x, 2.0).sum().backward()
        return weakref.ref(op._kernels)

    for _ in range(5):
        run()
    gc.collect()
    before = len(gc.get_objects())
    kernels = [run() for _ in range(200)]
    gc.collect()
    assert [ref() is None for ref in kernels[:-1]] == [True] * 199
    del kernels
    gc.collect()
    assert len(gc.get_objects()) - before < 20


def test_the_body_of_a_function_is_its_kernel_unless_it_is_a_stub():
    @custom_op(fresh("twice"))
    def twice(x: Tensor) -> Tensor:
        return x * 2

    @custom_op(fresh("stub"))
    def stub(x: Tensor) -> Tensor:
        """Say what it would be."""

    assert twice(torch.ones(1)).tolist() == [2.0]
    with pytest.raises(errors.MissingKernelError, match="no cpu impl registered"):
        stub(torch.ones(1))
    twice.impl("cpu")(lambda x: x * 3)
    assert twice(torch.ones(1)).tolist() == [3.0]
