"""cast, stop_gradient, identity and other ops that keep the values of their input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, as_dtype, bool_, float32, float64, int32, uncommon_in_use
from dualflow.core.spec import TensorSpec
from dualflow.core.status_errors import UnimplementedError
from dualflow.ops import maths_reference
from dualflow.ops.attribute_values import in_text
from dualflow.ops.elementwise import anything, elementwise
from dualflow.ops.op_kinds import Elementwise
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.static import dtype_of

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike
    from dualflow.ops.tensor import Tensor

identity = elementwise(
    "identity",
    """``x`` itself, as a tensor of its own.""",
    example=("df.identity([1, 2])", "[1, 2]"),
    inputs="input",
    dtype=anything,
    eager=lambda x: x,
    code=lambda m, x: x,
    vjp=lambda g, out, x: g,
    samples=Domain(-50, 50, "fib"),
)

stop_gradient = elementwise(
    "stop_gradient",
    """``x``, through which no gradient flows.""",
    example=("df.stop_gradient([1, 2])", "[1, 2]"),
    inputs="input",
    dtype=anything,
    eager=lambda x: x,
    code=lambda m, x: x,
    samples=Domain(-50, 50, "fib"),
)


ASSIGNED_VALUE: Final = in_text(
    Op(
        name="assigned_value",
        doc="A variable's value ``x``, which was assigned; its cotangent is that of the ``first`` value.",
        infer=lambda x, first: TensorSpec.of(x.shape, x.dtype),
        kernel=lambda x, first: x.copy(),
        kind=Elementwise(lambda m, x, first: x),
        vjp=(None, lambda g, out, x, first: g),
    )
)


def _cast_vjp(g: Any, out: Any, x: Any, dtype: DType) -> Any:
    return cast(g, x.dtype) if dtype.is_inexact and x.dtype.is_inexact else None


CAST = register(
    Op(
        name="cast",
        doc="""``x`` in another dtype, as NumPy's ``astype``.""",
        infer=lambda x, dtype: TensorSpec.of(x.shape, dtype),
        kernel=maths_reference.cast,
        kind=Elementwise(lambda m, x, dtype: m.cast(x, dtype)),
        vjp=(_cast_vjp,),
        samples=(
            *[Sample((Domain(0, 50, "fib"),), {"dtype": dtype}) for dtype in (float32, int32, bool_)],
            Sample((Domain(-50, 50, "f"),), {"dtype": float64}),
        ),
    )
)


def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """``x`` in another dtype: floats are truncated towards zero, complex numbers keep their real part.

    A float outside of the range of an integer dtype becomes its nearest end: 300.0 is 255 in uint8, and -1.0
    is 0; nan becomes 0. Integers wrap: 300 is 44 in uint8. A number is True in bool unless it is 0; nan is
    True.

    Args:
        x: a tensor of any shape, or a value that can become one.
        dtype: the dtype of the result: a ``df.DType``, its name, or a NumPy dtype.

    Returns:
        A tensor with the shape of ``x`` and dtype ``dtype``.

    Raises:
        DTypeError: tensors can't have the dtype.
        UnimplementedError: strings to numbers, or numbers to strings, for which
            :func:`dualflow.strings.to_number` and :func:`dualflow.as_string` exist.

    >>> import dualflow as df
    >>> df.cast([1.8, -1.8], df.int32).numpy()
    array([ 1, -1], dtype=int32)
    """
    target = as_dtype(dtype)
    if uncommon_in_use:
        dtype_now = dtype_of(x)
        if target.is_string is not dtype_now.is_string:
            raise UnimplementedError(
                f"Cast {dtype_now.name} to {target.name} is not supported: use "
                + ("df.as_string." if target.is_string else "df.strings.to_number.")
            )
        if target.is_string:
            return identity(x)
    return dispatch.current().apply(CAST, (x,), {"dtype": target})
