"""Matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.api_dispatch import by_rule, dispatches
from dualflow.core.composite_rules import CompositeError
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape, broadcast
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import hide_frames_of
from dualflow.ops.complex_numbers import conj
from dualflow.ops.conversion import cast
from dualflow.ops.op_kinds import MatMul
from dualflow.ops.record import COMPILED_ABOVE, Op, Promotion, register
from dualflow.ops.samples import Sample, numbers, reals
from dualflow.sizes.size_functions import common_size

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike
    from dualflow.ops.tensor import Tensor


def _infer(a: TensorSpec, b: TensorSpec, transpose_a: bool = False, transpose_b: bool = False) -> TensorSpec:
    if a.dtype.kind == "b":
        raise DTypeError("takes numbers, not bools; cast the matrices with df.cast.")
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise InvalidArgumentError(
            f"takes matrices, but the shapes are {a.shape} and {b.shape}. For a vector use df.linalg.matvec, "
            "df.tensordot(a, b, 1), or give it a second axis with df.expand_dims."
        )
    rows, inner = a.shape[:-3:-1] if transpose_a else a.shape[-2:]
    other, columns = b.shape[:-3:-1] if transpose_b else b.shape[-2:]
    if inner != other and inner is not None and other is not None:
        raise InvalidArgumentError(
            f"the inner sizes {inner} and {other} differ (shapes {a.shape} and {b.shape}); "
            "transpose one of them with transpose_a=True or transpose_b=True."
        )
    batch = broadcast([a.shape[:-2], b.shape[:-2]])
    return TensorSpec.of(Shape([*batch, rows, columns]), a.dtype)


def _required_shapes(
    a: Sequence[int], b: Sequence[int], transpose_a: bool = False, transpose_b: bool = False
) -> list[Sequence[int]]:
    inner = common_size(a[-2 if transpose_a else -1], b[-1 if transpose_b else -2])
    return [
        (*a[:-2], inner, a[-1]) if transpose_a else (*a[:-1], inner),
        (*b[:-1], inner) if transpose_b else (*b[:-2], inner, b[-1]),
    ]


def _matmul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    if a.ndim == b.ndim == 2 and a.dtype.char != "?":  # the same product with a third of the overhead
        return (a.T if transpose_a else a).dot(b.T if transpose_b else b)
    if a.ndim < 2 or b.ndim < 2 or a.dtype.kind == "b":
        raise ValueError("matmul takes matrices of numbers")
    return np.matmul(a.swapaxes(-1, -2) if transpose_a else a, b.swapaxes(-1, -2) if transpose_b else b)


def _is_small(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False) -> bool:
    """Whether a product has few multiplications, and its matrices few elements."""
    if a.size > COMPILED_ABOVE or b.size > COMPILED_ABOVE or a.ndim < 2:
        return False
    inner = a.shape[-2 if transpose_a else -1]
    if a.ndim > 2 < b.ndim:
        inner *= max(math.prod(a.shape[:-2]), math.prod(b.shape[:-2]))
    return bool(a.size * b.size <= _MOST_MULTIPLICATIONS * inner)


_MOST_MULTIPLICATIONS: Final = 1_000_000
"""The number of multiplications of the products of small matrices that NumPy computes.

OpenBLAS uses threads for more. They busy-wait for up to 0.1 s afterwards, while kernels need processors.
"""


def _vjp_a(g: Any, out: Any, a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    return _product(b, g, transpose_b, True) if transpose_a else _product(g, b, False, not transpose_b)


def _vjp_b(g: Any, out: Any, a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    return _product(g, a, True, transpose_a) if transpose_b else _product(a, g, not transpose_a, False)


def _sample(a: tuple[int, ...], b: tuple[int, ...], **attrs: bool) -> Sample:
    return Sample((numbers(-5, 5, shape=a), numbers(-5, 5, shape=b)), attrs)


MATMUL = register(
    Op(
        name="matmul",
        doc="""The matrix product of the last two axes; attributes that are left out are False.""",
        infer=_infer,
        kernel=_matmul,
        kind=MatMul(),
        required_shapes=_required_shapes,
        vjp=(_vjp_a, _vjp_b),
        promotion=Promotion.TOGETHER,
        compiled_above=1 << 12,
        small=_is_small,
        samples=(
            _sample((3, 4), (4, 2)),
            _sample((4, 3), (4, 2), transpose_a=True),
            _sample((3, 4), (2, 4), transpose_b=True),
            _sample((4, 3), (2, 4), transpose_a=True, transpose_b=True),
            _sample((5, 3, 4), (5, 4, 2)),
            _sample((2, 1, 3, 4), (5, 2, 4), transpose_b=True),
            _sample((3, 0), (0, 2)),
        ),
    )
)


def _product_add_infer(
    a: TensorSpec, b: TensorSpec, c: TensorSpec, scale: float, **transposes: bool
) -> TensorSpec:
    product = _infer(a, b, **transposes)
    pairs = zip(product.shape, c.shape, strict=False)
    same = len(product.shape) == len(c.shape) and all(p == d or p is None or d is None for p, d in pairs)
    if not same or product.dtype is not c.dtype:
        raise InvalidArgumentError(f"the product is {product} and what it is added to is {c}.")
    return TensorSpec.of(broadcast([product.shape, c.shape]), c.dtype)


PRODUCT_ADD = register(
    Op(
        name="product_add",
        doc="""``c + scale * (a @ b)``: the compiler replaces a sum with a product by it.""",
        infer=_product_add_infer,
        kernel=lambda a, b, c, scale, **transposes: c + c.dtype.type(scale) * _matmul(a, b, **transposes),
        kind=MatMul(),
        promotion=Promotion.TOGETHER,
        samples=(
            Sample(
                (reals(-5, 5, shape=(3, 4)), reals(-5, 5, shape=(2, 4)), reals(-5, 5, shape=(3, 2))),
                {"scale": -0.5, "transpose_b": True},
            ),
        ),
    )
)


def _product(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    if not transpose_a and not transpose_b:
        return dispatch.current().binary(MATMUL, a, b)
    attrs = {"transpose_a": True} if transpose_a else {}
    if transpose_b:
        attrs["transpose_b"] = True
    return dispatch.current().apply(MATMUL, (a, b), attrs)


def _operand(x: Any, transpose: bool, adjoint: bool, dtype: Any) -> Any:
    """A factor that is conjugated or converted before its product."""
    if transpose and adjoint:
        raise InvalidArgumentError("matmul takes either transpose or adjoint of a matrix; leave one out.")
    x = x if dtype is None else cast(x, dtype)
    return conj(x) if adjoint else x


def _product_of(
    a: Any, b: Any, transpose_a: bool, transpose_b: bool, adjoint_a: bool, adjoint_b: bool, dtype: Any
) -> Any:
    if adjoint_a or adjoint_b or dtype is not None:
        a = _operand(a, transpose_a, adjoint_a, dtype)
        b = _operand(b, transpose_b, adjoint_b, dtype)
    return _product(a, b, transpose_a or adjoint_a, transpose_b or adjoint_b)


@dispatches
def matmul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The matrix product of the last two axes; leading axes broadcast. Also written ``a @ b``.

    Args:
        a: numbers other than bools, of shape ``(..., n, k)``.
        b: numbers of shape ``(..., k, m)``.
        transpose_a: whether ``a`` is given as ``(..., k, n)``.
        transpose_b: whether ``b`` is given as ``(..., m, k)``.
        adjoint_a: as ``transpose_a``, and conjugates ``a``.
        adjoint_b: as ``transpose_b``, and conjugates ``b``.
        a_is_sparse: ignored; TensorFlow chooses another algorithm for matrices with many zeros.
        b_is_sparse: ignored, likewise.
        output_type: the dtype to compute in; None for the common dtype of ``a`` and ``b``.

    Returns:
        A tensor of shape ``(..., n, m)`` with the common dtype of ``a`` and ``b``, or ``output_type``.

    Raises:
        InvalidArgumentError: an argument has fewer than two axes, the inner sizes differ, the leading axes
            don't broadcast, or ``transpose`` and ``adjoint`` are both set for one argument.
        DTypeError: an argument holds bools or strings.

    >>> import dualflow as df
    >>> df.matmul([[1, 2]], [[3], [4]]).numpy()
    array([[11]], dtype=int32)
    """
    try:
        try:
            if not (transpose_a or transpose_b or adjoint_a or adjoint_b) and output_type is None:
                return dispatch.current().binary(MATMUL, a, b)
            return _product_of(a, b, transpose_a, transpose_b, adjoint_a, adjoint_b, output_type)
        except CompositeError as error:
            options = {
                "transpose_a": transpose_a,
                "transpose_b": transpose_b,
                "adjoint_a": adjoint_a,
                "adjoint_b": adjoint_b,
                "a_is_sparse": a_is_sparse,
                "b_is_sparse": b_is_sparse,
                "output_type": output_type,
            }
            used = {option: value for option, value in options.items() if value}
            return by_rule(matmul, (a, b), used, error)
    except Exception as error:
        hide_frames_of(matmul, error)
        raise
