"""Trees to save: containers of every kind, and a Function that saves what it is told to."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import InitVar, dataclass, field
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree

from autograd_lab.pytrees import save_pytree_for_backward, unpack_saved

Pair = namedtuple("Pair", "p q")
CALLS: list[str] = []


class Typed(NamedTuple):
    w: Any
    k: Any = 1.0


class OwnNew(Pair):
    """A named tuple with a constructor and attributes of its own."""

    def __new__(cls, both):
        return super().__new__(cls, both, both)


@dataclass
class Plain:
    a: Any
    b: Any = None


@dataclass(frozen=True)
class Frozen:
    a: Any


@dataclass(frozen=True, slots=True)
class Slotted:
    a: Any
    b: Any = 0


@dataclass(frozen=True, slots=True)
class SlottedChild(Slotted):
    c: Any = 1


@dataclass
class Late:
    """`derived` is made by __post_init__, `unset` never is, `scale` is no field."""

    a: Any
    scale: InitVar[float] = 2.0
    derived: Any = field(init=False)
    unset: Any = field(init=False)
    fixed: Any = field(default=7, init=False)

    def __post_init__(self, scale):
        CALLS.append("__post_init__")
        self.derived = ("derived", scale)


class Child(Plain):
    """An undecorated child, with an attribute that is no field."""


@dataclass(order=True)
class Strict:
    """A class that forbids the usual ways in."""

    a: Any

    def __setattr__(self, name, value):
        CALLS.append("__setattr__")
        object.__setattr__(self, name, value)

    def __getattribute__(self, name):
        CALLS.append("__getattribute__")
        return object.__getattribute__(self, name)


class Registered:
    def __init__(self, x, label):
        CALLS.append("Registered.__init__")
        self.x, self.label = x, label

    def __eq__(self, other):
        return type(other) is Registered and vars(self) == vars(other)

    __hash__ = None


class Keyed(Registered):
    """Registered with names for its children."""


class Leaky(Registered):
    """Registered so that a tensor stays in the context."""


class Box:
    """No container: its tensor hides."""

    def __init__(self, y):
        self.y = y


@dataclass
class ListOfMine(list):
    """A dataclass that is more than its attributes."""

    a: Any


_pytree.register_pytree_node(
    Registered, lambda r: ([r.x], r.label), lambda children, label: Registered(*children, label)
)
_pytree.register_pytree_node(
    Keyed,
    lambda r: ([r.x], r.label),
    lambda children, label: Keyed(*children, label),
    flatten_with_keys_fn=lambda r: ([(_pytree.GetAttrKey("x"), r.x)], r.label),
)
_pytree.register_pytree_node(Leaky, lambda r: ([], r.x), lambda _, x: Leaky(x, ""))


def child(a, b, extra):
    one = Child(a, b)
    one.extra = extra
    return one


def own_new(both, note):
    one = OwnNew(both)
    one.note = note
    return one


ONE, TWO = torch.tensor([1.0, 2.0]), torch.tensor(3.0)
TREES = {
    "tensor": ONE,
    "none": None,
    "number": 2.5,
    "text": "ab",
    "empty tuple": (),
    "empty list": [],
    "empty dict": {},
    "flat tuple": (ONE, TWO),
    "tuple with a number": (ONE, 2),
    "list": [ONE, None, TWO],
    "tuple in tuple": ((ONE,), (), ((TWO,),)),
    "dict": {"w": ONE, "k": 2.0, "b": TWO},
    "dict, order of insertion": {"z": ONE, "a": TWO},
    "dict, any keys": {1: ONE, None: 2, (1, "a"): TWO, b"b": 3, frozenset({1}): 4, 2.5: [ONE]},
    "same tensor twice": [ONE, {"again": ONE}],
    "nested": {"t": [ONE, (TWO,)], "m": {"k": 2.0, "n": None, "e": {}}},
    "OrderedDict": OrderedDict([("b", ONE), ("a", [TWO])]),
    "defaultdict": defaultdict(list, {"a": [ONE], "b": []}),
    "defaultdict without factory": defaultdict(None, {"a": TWO}),
    "deque": deque([ONE, 1, TWO], maxlen=5),
    "named tuple": Pair(ONE, {"z": TWO}),
    "typed named tuple": Typed(w=ONE),
    "named tuple with its own __new__": own_new(ONE, ["note", TWO]),
    "dataclass": Plain(ONE, [TWO]),
    "frozen dataclass": Frozen({"x": ONE}),
    "dataclass with slots": Slotted(ONE, TWO),
    "child with slots": SlottedChild(ONE, 2, TWO),
    "dataclass with fields of __post_init__": Late(ONE),
    "undecorated child": child(ONE, 2, (TWO, "extra")),
    "dataclass that guards its attributes": Strict(ONE),
    "registered": Registered(ONE, "label"),
    "registered with keys": Keyed(Plain(ONE, TWO), "label"),
    "torch's return type": torch.return_types.max([ONE, TWO]),
    "torch's size": {"size": torch.Size([2, 3]), "dtype": torch.float32, "device": ONE.device},
    "parameter": {"w": torch.nn.Parameter(torch.ones(2))},
    "dtypes": [
        torch.ones(2, dtype=torch.bfloat16),
        torch.ones(2, dtype=torch.complex64),
        torch.ones((), dtype=torch.int64),
        torch.ones(0, 3),
    ],
    "opaque without tensors": {"box": Box([1, {"a": 2}]), "set": {1, 2}, "function": len},
}


class Saver(torch.autograd.Function):
    """Returns 2 x; saves what `tree_of(x, output)` gives, and puts what comes back in `seen`."""

    @staticmethod
    def forward(ctx, x, tree_of, seen):
        output = x * 2
        ctx.mine, ctx.seen = "mine", seen
        save_pytree_for_backward(ctx, tree_of(x, output))
        return output

    @staticmethod
    def backward(ctx, grad_output):
        assert ctx.mine == "mine"
        ctx.seen.append(unpack_saved(ctx))
        return grad_output * 2, None, None


class SetupSaver(torch.autograd.Function):
    """The same in the style of setup_context, so that torch.func can use it; saves inputs."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, w, k):
        return x * w * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, k = inputs
        ctx.mine = "mine"
        save_pytree_for_backward(ctx, {"tensors": [x, Plain(w, k)], "k": k})

    @staticmethod
    def backward(ctx, grad_output):
        assert ctx.mine == "mine"
        saved = unpack_saved(ctx)
        x, w = saved["tensors"][0], saved["tensors"][1].a
        return grad_output * w * saved["k"], grad_output * x * saved["k"], None


def through_backward(tree):
    """What backward unpacks of a saved tree."""
    seen = []
    x = torch.ones(2, requires_grad=True)
    Saver.apply(x, lambda *_: tree, seen).sum().backward()
    return seen[0]


def same(a, b):
    """Two trees are alike: types, order and structure exact, all leaves the same objects."""
    if type(a) is not type(b):
        return False
    if type(a) in (dict, OrderedDict, defaultdict):
        factories = getattr(a, "default_factory", 0) is getattr(b, "default_factory", 0)
        return factories and same([*a.items()], [*b.items()])
    if isinstance(a, (list, tuple, deque)) and not isinstance(a, torch.Size):
        limits = getattr(a, "maxlen", 0) == getattr(b, "maxlen", 0)
        attributes = same(getattr(a, "__dict__", None), getattr(b, "__dict__", None))
        return limits and attributes and len(a) == len(b) and all(map(same, a, b))
    if hasattr(type(a), "__dataclass_fields__") or isinstance(a, Registered):
        state = [object.__reduce_ex__(one, 2)[2] for one in (a, b)]
        return same(*state)
    return a is b
