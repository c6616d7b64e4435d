"""Checks that two tensors have as many rows, where their numbers are known at run time only."""

from __future__ import annotations

from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.batching_rules import PER_ELEMENT
from dualflow.ops.op_kinds import Decompose, SizeReader
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample

_BACK: Final = "a cotangent of shape {0} is not of the shape {1}"


def with_rows_of(x: Any, like: Any, message: str) -> Any:
    """``x``, with the first size of ``like``, checked now where both are known, else when the program runs.

    Args:
        x: a tensor of one axis or more.
        like: a tensor of one axis or more.
        message: of the error; {0} and {1} are replaced by the shapes of ``x`` and ``like``.

    Raises:
        InvalidArgumentError: the first sizes differ.
    """
    size, rows = x.shape[0], like.shape[0]
    if size is None or rows is None:
        return dispatch.current().apply(WITH_ROWS_OF, (x, like), {"message": message})
    if size != rows:
        raise InvalidArgumentError(message.format(x.shape, like.shape))
    return x


def _infer(x: TensorSpec, like: TensorSpec, message: str) -> TensorSpec:
    rows = x.shape[0] if like.shape[0] is None else like.shape[0]  # the kernel's error has no other text
    return TensorSpec.of(Shape((rows, *x.shape[1:])), x.dtype)


def _kernel(x: Any, like: Any, message: str) -> Any:
    if len(x) != len(like):
        raise InvalidArgumentError(message.format(x.shape, like.shape))
    return x


def _resolved(read: SizeReader, x: Any, like: Any, message: str) -> Any:
    return read.require_shape(x, (like.shape[0], *x.shape[1:]), message)


WITH_ROWS_OF: Final = register(
    Op(
        name="with_rows_of",
        doc="""``x``, which has as many rows as ``like``; an error if it doesn't.""",
        infer=_infer,
        kernel=_kernel,
        kind=Decompose(_resolved),
        batching_rule=PER_ELEMENT,
        vjp=(lambda g, out, x, like, message: with_rows_of(g, x, _BACK), None),
        strings=True,
        samples=(
            Sample((Domain(-50, 50, "fib", (2, 3)), Domain(-50, 50, "f", (2,))), {"message": "{0} and {1}"}),
        ),
    )
)
