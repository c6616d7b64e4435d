"""The sizes of a tensor, as one integer tensor or one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, int32, int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Dim, Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.op_kinds import Decompose, SizeReader, SizeVector
from dualflow.ops.record import REGISTRY, Op, register
from dualflow.ops.samples import Domain, Sample
from dualflow.sizes.size_scalars import SizeScalar, evaluate_scalar
from dualflow.sizes.symbolic_sizes import is_static

SIZES = register(
    Op(
        name="sizes",
        doc="""The sizes ``values``, some of them symbolic, as one integer tensor; or a scalar of sizes.""",
        infer=lambda values, dtype: TensorSpec.of(Shape([len(values)]), dtype),
        kernel=lambda values, dtype: np.array(
            [evaluate_scalar(x) if isinstance(x, SizeScalar) else x for x in values], dtype.dtype
        ),
        kind=SizeVector(),
        samples=(Sample((), {"values": (2, 3), "dtype": int32}),),
    )
)


def size_array(sizes: Any, dtype: DType) -> np.ndarray[Any, Any]:
    """Static sizes as an array of an integer dtype.

    Raises:
        InvalidArgumentError: a size is larger than any number of ``dtype``.
    """
    array = np.array(sizes, np.int64)
    if dtype.is_integer and array.size and array.max() > dtype.max:
        raise InvalidArgumentError(
            f"The size {array.max()} is outside of {dtype.name}; pass out_type=df.int64."
        )
    return array.astype(dtype.dtype)


def _known_shape(read: SizeReader, x: Any, dtype: DType) -> Any:
    engine, sizes = dispatch.current(), tuple(x.shape)
    if is_static(sizes):
        return engine.constant(size_array(sizes, dtype))
    return engine.apply(SIZES, (), {"values": sizes, "dtype": dtype})


SHAPE = register(
    Op(
        name="shape",
        doc="""The sizes of ``x``, if they are known at run time only.""",
        infer=lambda x, dtype: TensorSpec.of(Shape([len(x.shape)]), dtype),
        kernel=lambda x, dtype: size_array(x.shape, dtype),
        kind=Decompose(_known_shape),
        strings=True,
        samples=(Sample((Domain(-50, 50, "fib", (2, 3)),), {"dtype": int32}),),
    )
)


def sizes_of(x: Any, dtype: DType = int32) -> Any:
    """The sizes of the tensor ``x`` as a tensor of one axis."""
    engine = dispatch.current()
    if x.shape.is_static:
        return engine.constant(size_array(x.shape, dtype))
    return engine.apply(SHAPE, (x,), {"dtype": dtype})


def axis_size(x: Any, axis: int, dtype: DType = int32) -> Any:
    """The size of an axis of the tensor ``x``: an int if it is static, else a scalar tensor of ``dtype``."""
    size = x.shape[axis]
    return sizes_of(x, dtype)[axis] if size is None else size


def axis_sizes(x: Any, dtype: DType = int32) -> list[Any]:
    """The size of each axis of the tensor ``x``, as :func:`axis_size` returns it."""
    if None not in x.shape:
        return list(x.shape)
    sizes = sizes_of(x, dtype)
    return [sizes[axis] if size is None else size for axis, size in enumerate(x.shape)]


def reshape_sizes(shape: Sequence[Dim], x: Any) -> list[Any]:
    """``shape`` as :func:`reshape` takes it; a size that is None is that of the same axis of ``x``.

    It is -1, which costs no op. If another size is 0, -1 could be any size, and it is a scalar tensor.
    """
    if None not in shape:
        return list(shape)  # without comparing symbolic sizes
    if 0 in shape:
        return [axis_size(x, axis) if n is None else n for axis, n in enumerate(shape)]
    return [-1 if n is None else n for n in shape]


def size_as_tensor(size: int) -> Any:
    """A size, which may be symbolic, as an int64 scalar."""
    engine = dispatch.current()
    if type(size) is int:
        return engine.constant(np.array(size, np.int64))
    vector = engine.apply(SIZES, (), {"values": (size,), "dtype": int64})
    return engine.apply(REGISTRY["reshape"], (vector,), {"shape": Shape(())})
