"""Complex numbers and their parts.

Cotangents in a sweep are those of holomorphic calculus: ``g`` of ``y`` means ``dL = Re(g dy)``, so that rules
need no conjugates. The tape conjugates cotangents at the start and the end, as TensorFlow's gradients are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, complex64, complex128, of_array
from dualflow.core.errors import DTypeError
from dualflow.core.shape import broadcast
from dualflow.core.spec import TensorSpec
from dualflow.ops.batching_rules import LEADING
from dualflow.ops.conversion import cast
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import REGISTRY, Op, Promotion, register
from dualflow.ops.samples import Domain, Sample, reals
from dualflow.ops.static import dtype_of, shape_of

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

_KIND = Opaque("there is no native code for complex numbers")
_COMPLEX = Domain(-5, 5, "c")


def _register_complex_op(
    name: str, doc: str, ufunc: Callable[[Any], Any], vjp: Any, result: Callable[[DType], DType]
) -> Op:
    def infer(x: TensorSpec) -> TensorSpec:
        if not x.dtype.is_complex:
            raise DTypeError(
                f"takes complex numbers, not {x.dtype.name}; df.{name} passes others on as they are."
            )
        return TensorSpec.of(x.shape, result(x.dtype))

    samples = (Sample((_COMPLEX,)),)
    return register(
        Op(
            name=name,
            doc=doc,
            infer=infer,
            kernel=ufunc,
            kind=_KIND,
            batching_rule=LEADING,
            vjp=(vjp,),
            samples=samples,
        )
    )


CONJ = _register_complex_op(
    "conj",
    "The complex conjugate.",
    np.conjugate,
    lambda g, out, x: conj(g),
    lambda dtype: dtype,
)
REAL = _register_complex_op(
    "real",
    "The real part.",
    lambda x: x.real,
    lambda g, out, x: cast(g, x.dtype),
    lambda dtype: dtype.real,
)
IMAG = _register_complex_op(
    "imag",
    "The imaginary part.",
    lambda x: x.imag,
    lambda g, out, x: cast(g, x.dtype) * -1j,
    lambda dtype: dtype.real,
)


_WITH_PARTS = {"float32": complex64, "float64": complex128}


def _joined(dtype: DType) -> DType:
    complex_dtype = _WITH_PARTS.get(dtype.name)
    if complex_dtype is None:
        raise DTypeError(f"takes parts in float32 or float64, not {dtype.name}; convert them with df.cast.")
    return complex_dtype


def join(real: Any, imag: Any) -> Any:
    """The complex numbers of these parts, arrays that broadcast."""
    out = np.empty(np.broadcast(real, imag).shape, _joined(of_array(real.dtype)).dtype)
    out.real, out.imag = real, imag  # real + 1j * imag would make nan of inf
    return out


COMPLEX = register(
    Op(
        name="complex",
        doc="""The complex numbers of these real and imaginary parts.""",
        infer=lambda x, y: TensorSpec.of(broadcast([x.shape, y.shape]), _joined(x.dtype)),
        kernel=join,
        kind=_KIND,
        batching_rule=LEADING,
        vjp=(lambda g, out, x, y: real(g), lambda g, out, x, y: -imag(g)),
        promotion=Promotion.FLOAT,
        samples=(Sample((reals(-5, 5), reals(-5, 5))),),
    )
)


def conj(x: TensorLike, name: str | None = None) -> Tensor:
    """The complex conjugate; real numbers are returned as they are.

    Args:
        x: numbers of any shape.

    Returns:
        A tensor with the shape and dtype of ``x``.

    Raises:
        DTypeError: ``x`` can't become a tensor.

    >>> import dualflow as df
    >>> df.math.conj(1 + 2j).numpy()
    np.complex128(1-2j)
    """
    return _or_itself(CONJ, x)


def real(input: TensorLike, name: str | None = None) -> Tensor:
    """The real part; real numbers are returned as they are.

    Args:
        input: numbers of any shape.

    Returns:
        A tensor with the shape of ``input`` and its dtype; for complex numbers, that of their parts.

    Raises:
        DTypeError: ``input`` can't become a tensor.

    >>> import dualflow as df
    >>> df.math.real([1 + 2j]).numpy()
    array([1.])
    """
    return _or_itself(REAL, input)


def imag(input: TensorLike, name: str | None = None) -> Tensor:
    """The imaginary part; zeros for real numbers.

    Args:
        input: numbers of any shape.

    Returns:
        A tensor with the shape of ``input`` and its dtype; for complex numbers, that of their parts.

    Raises:
        DTypeError: ``input`` can't become a tensor.

    >>> import dualflow as df
    >>> df.math.imag([1 + 2j]).numpy()
    array([2.])
    """
    engine, dtype = dispatch.current(), dtype_of(input)
    if dtype.is_complex:
        return engine.unary(IMAG, input)
    zero = engine.constant(np.zeros((), dtype.dtype))
    if shape_of(input).is_static:
        return engine.apply(REGISTRY["broadcast_to"], (zero,), {"shape": shape_of(input)})
    return engine.apply(REGISTRY["broadcast_like"], (zero, input), {})


def complex(real: TensorLike, imag: TensorLike, name: str | None = None) -> Tensor:
    """Complex numbers from real and imaginary parts.

    Args:
        real: the real parts, float32 or float64; integers become float32.
        imag: the imaginary parts, likewise; the shapes broadcast, and the dtypes promote to a common one.

    Returns:
        A tensor of the broadcast shape: complex64 for parts in float32, complex128 for parts in float64.

    Raises:
        DTypeError: the parts have another dtype, such as float16.
        InvalidArgumentError: the shapes do not broadcast.

    >>> import dualflow as df
    >>> df.complex(1.0, 2.0).numpy()
    np.complex64(1+2j)
    """
    return dispatch.current().binary(COMPLEX, real, imag)


def _or_itself(op: Op, x: Any) -> Any:
    return dispatch.current().unary(op, x) if dtype_of(x).is_complex else x
