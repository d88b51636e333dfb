"""What one call of an op leaves on its node: enough for backward, and to say what is wrong."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from autograd_lab.pytrees import TreeSpec

from .gradient_faults import InputMetas
from .nesting import Layout
from .registrations import Registration

__all__ = ["OpCall"]


class OpCall:
    """The record of one call under autograd; it holds no tensor of the call but `anchors`.

    keyset         where the dispatcher is to go on
    backward       the formula as it was at the call: registering another changes no recorded graph
    layout         where lists stand among the arguments, and `output_layout` among the outputs
    metas          what each gradient has to be like
    spec           how the saved tree is put together again; None after setup_context
    intermediates  which saved tensors are neither inputs nor outputs nor said to be constant
    anchors        empty tensors whose graphs are those of the inputs, for a second derivative
    tree           the saved tree, while the call runs in forward mode
    attributes     what setup_context put on its ctx
    """

    # defaults on the class: setting each in every call would cost as much as the rest of it
    backward: Registration
    metas: InputMetas
    output_layout: Layout | None = None
    returns_tuple = False
    spec: TreeSpec | None = None
    intermediates: tuple[int, ...] = ()
    anchors: tuple[Tensor, ...] = ()
    tree: Any = None
    attributes: dict[str, Any] | None = None

    def __init__(self, keyset: Any, layout: Layout | None) -> None:  # noqa: ANN401 (torch's DispatchKeySet)
        self.keyset = keyset
        self.layout = layout
