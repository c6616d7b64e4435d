"""Arguments of ops that must have static values: shapes, axes, sizes and other plain numbers.

========================== ============================ ==================================================
function                   argument                     if it is symbolic
========================== ============================ ==================================================
``static_value``           anything                     returns None
``static_elements``        an integer tensor            returns its elements, None for each symbolic one
``static_int`` and others  a number                     raises DTypeError
``ints``                   integers                     raises DTypeError
``int_or_symbolic``        an integer                   returns it
``ints_or_symbolic``       integers                     returns them, as scalar tensors
``shape_argument``         a shape, which may have -1   returns None for each symbolic entry of a list
``partial_shape``          a shape                      returns None for each symbolic entry
``static_shape``           a shape                      raises DTypeError
``require_static_sizes``   the shape of a tensor        raises InvalidArgumentError for a dynamic size
========================== ============================ ==================================================
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import as_array
from dualflow.core.dispatch import AbstractComposite, AbstractTensor, AbstractVariable
from dualflow.core.dtypes import DType, as_dtype, promote
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.registered_conversions import CONVERSIONS, registered
from dualflow.core.shape import UNKNOWN_RANK, Dim, Shape, check_size
from dualflow.ops.record import holds_tensors
from dualflow.sizes.abstract_size import AbstractSize, symbolic_sizes_enabled
from dualflow.sizes.symbolic_sizes import SymInt

Array = np.ndarray[Any, Any]
_TENSORS = (AbstractTensor, AbstractVariable, AbstractComposite)
_LISTS = (list, tuple)


def static_value(x: Any) -> Array | None:
    """``x`` as an array; None if it is, or contains, a symbolic tensor or a variable that a trace reads."""
    if CONVERSIONS:
        x = registered(x)
    if isinstance(x, AbstractVariable):
        x = dispatch.current().read(x)
    elif isinstance(x, AbstractComposite):
        x = x.__as_tensor__()
    if isinstance(x, _LISTS) and holds_tensors(x):
        rows = [static_value(row) for row in x]
        return None if any(row is None for row in rows) else as_array(rows)
    tensor: Any = x  # the method is that of its class
    return tensor.static_value() if isinstance(x, AbstractTensor) else as_array(x)


def static_elements(x: Any) -> tuple[Dim, ...] | None:
    """The elements of a symbolic integer tensor, with None for those that aren't static.

    The tensor has one axis of static size, or none. For any other argument the result is None.
    """
    if not isinstance(x, AbstractTensor) or not x.dtype.is_integer or static_value(x) is not None:
        return None
    if len(x.shape) > 1 or not x.shape.is_static:
        return None
    tensor: Any = x  # the method is that of its class
    elements = tensor.static_elements()
    count = x.shape[0] if len(x.shape) else 1
    return (None,) * (count or 0) if elements is None else tuple(elements.reshape(-1).tolist())


def static_int(x: Any, what: str) -> int:
    """``x`` as a Python int, or as it is where it is a symbolic size; ``what`` names it in errors.

    Raises:
        DTypeError: not an integer, or a symbolic tensor.
    """
    if type(x) is int or isinstance(x, SymInt):
        return x
    value = static_value(x)
    if value is None:
        raise DTypeError(f"{what} must be known while tracing, but it is symbolic: {x!r}. Pass a Python int.")
    try:
        return operator.index(value.item() if value.size == 1 else x)
    except TypeError:
        raise DTypeError(f"{what} is an integer, not {x!r}.") from None


def tensor_list(x: Any, what: str) -> Iterable[Any]:
    """``x``, checked to be a list of tensors; ``what`` names it in errors.

    Raises:
        DTypeError: a single number, None, or another object that isn't iterable.
    """
    if not isinstance(x, Iterable | AbstractVariable):
        raise DTypeError(f"{what} is a list of tensors, not {x!r}.")
    values: Any = x  # variables are iterable
    return values


def static_float(x: Any, what: str) -> float:
    """``x`` as a Python float; ``what`` names it in errors.

    Raises:
        DTypeError: not one real number, or a symbolic tensor.
    """
    if type(x) is float:
        return x
    value = static_value(x)
    if value is None:
        raise DTypeError(
            f"{what} must be known while tracing, but it is symbolic: {x!r}. Pass a Python float."
        )
    if value.size != 1 or value.dtype.kind not in "iufV":  # V: bfloat16 and its like
        raise DTypeError(f"{what} is a number, not {x!r}.")
    return float(value.item())


def shape_argument(shape: Any, what: str = "shape") -> tuple[Dim, ...]:
    """A shape argument as a tuple of ints, of which -1 is kept, and None for each symbolic entry.

    Takes an int, a sequence of ints and scalar tensors, an integer array or an integer tensor.

    Raises:
        DTypeError: entries that are not integers, or a whole shape that is symbolic.
    """
    if type(shape) is Shape and not (
        symbolic_sizes_enabled and any(isinstance(d, AbstractSize) for d in shape)
    ):
        return shape
    if isinstance(shape, list | tuple):
        return tuple([d if type(d) is int else _size(d, what) for d in shape])
    if isinstance(shape, SymInt):
        return (shape,)
    value = static_value(shape)
    if value is None:
        _check_axes(shape.shape, what)
        raise DTypeError(
            f"{what} must be known while tracing, but it is symbolic: {shape!r}. Pass a list of ints."
        )
    if value.dtype.kind not in "iu" and value.size:
        raise DTypeError(f"{what} is made of integers, not {shape!r}.")
    _check_axes(value.shape, what)
    return tuple(int(d) for d in value.reshape(-1))


def _size(entry: Any, what: str) -> Dim:
    if entry is None or isinstance(entry, SymInt):
        return entry
    if isinstance(entry, AbstractTensor) and static_value(entry) is None:
        elements = static_elements(entry)
        return elements[0] if elements else None
    return static_int(entry, f"an entry of {what}")


def _check_axes(shape: Sequence[Dim], what: str) -> None:
    """Raise an error for a matrix where a list of integers is required."""
    if len(shape) > 1:
        raise InvalidArgumentError(
            f"{what} is a list of integers or a tensor of one axis, not one of shape {tuple(shape)}; give it "
            "one axis with df.reshape."
        )


def static_shape(shape: Any) -> tuple[int, ...]:
    """A shape argument as a tuple of ints, none of them negative or symbolic.

    Raises:
        DTypeError: an entry is symbolic or not an integer.
        InvalidArgumentError: an entry is negative.
    """
    entries = shape_argument(shape)
    if None in entries:
        raise DTypeError(f"every size of a new tensor must be known while tracing, but got {tuple(entries)}.")
    check_size(entries)
    return tuple(d for d in entries if d is not None)


def require_static_sizes(
    shape: Iterable[Dim],
    what: str,
    axes: Iterable[int] | None = None,
    advice: str = "give known shapes",
) -> tuple[int, ...]:
    """The sizes of ``axes``, of all axes by default, checked to be static.

    Errors name the op, ``what``, and end with ``advice``.

    While tracing, a call that raises this error is deferred until the sizes are known.

    Raises:
        InvalidArgumentError: a size is dynamic.
    """
    dims = tuple(shape)
    needed = range(len(dims)) if axes is None else [axis % len(dims) for axis in axes]
    at = [axis for axis in needed if dims[axis] is None]
    if at:
        named = f"axis {at[0]}" if len(at) == 1 else f"axes {', '.join(map(str, at))}"
        raise InvalidArgumentError(
            f"{what} needs the size of {named} of shape {dims} as a number, and it is known only when the "
            f"function runs; {advice}."
        )
    return tuple(size for axis in needed if (size := dims[axis]) is not None)


def partial_shape(shape: Any) -> tuple[Dim, ...]:
    """A shape argument as a tuple of ints that aren't negative, and None for each symbolic entry.

    Unlike :func:`shape_argument` it takes a symbolic tensor whose number of entries is static.

    Raises:
        DTypeError: entries that are not integers, or a symbolic shape of an unknown number of entries.
        InvalidArgumentError: an entry is negative.
    """
    elements = static_elements(shape) if isinstance(shape, AbstractTensor) and len(shape.shape) else None
    entries = shape_argument(shape) if elements is None else elements
    check_size(entries)
    return entries


def int_or_symbolic(x: Any, what: str) -> Any:
    """``x`` as a Python int, or as it is where it is a symbolic size or a symbolic integer of one element.

    Raises:
        DTypeError: the value is not an integer.
    """
    if isinstance(x, SymInt):
        return x
    if isinstance(x, AbstractTensor) and x.dtype.is_integer and static_value(x) is None:
        elements = static_elements(x)
        return x if elements is None or len(elements) != 1 or elements[0] is None else elements[0]
    return static_int(x, what)


def ints_or_symbolic(x: Any, what: str) -> tuple[Any, ...]:
    """Integers as Python ints, symbolic ones as scalars: of a sequence, an array or a tensor of one axis.

    Raises:
        DTypeError: an element is no integer, or a symbolic tensor has an unknown size.
    """
    if isinstance(x, list | tuple):
        return tuple([int_or_symbolic(i, what) for i in x])
    if isinstance(x, AbstractTensor) and static_value(x) is None and x.dtype.is_integer:
        _check_axes(x.shape, what)
        if not len(x.shape):
            return (x,)
        elements = static_elements(x)
        if elements is not None:
            items: Any = x  # tensors have them
            return tuple([items[i] if n is None else n for i, n in enumerate(elements)])
    return ints(x, what)


def ints(x: Any, what: str) -> tuple[int, ...]:
    """An int, or a sequence of them, as a tuple of ints."""
    if type(x) is int:
        return (x,)
    if isinstance(x, str):
        raise DTypeError(f"{what} is an integer, not {x!r}.")
    if isinstance(x, Iterable) and not isinstance(x, AbstractTensor | np.ndarray):
        return tuple(static_int(i, what) for i in x)
    value = static_value(x)
    if value is None:
        raise DTypeError(f"{what} must be known while tracing, but it is symbolic: {x!r}. Pass Python ints.")
    _check_axes(value.shape, what)
    return tuple(static_int(i, what) for i in value.reshape(-1).tolist())


def dtype_of(x: Any) -> DType:
    """The dtype of a tensor, variable, array, Python value, or list of such."""
    if CONVERSIONS:
        x = registered(x)
    if isinstance(x, _TENSORS):
        dtype = x.dtype  # a composite of another library may name it
        return dtype if type(dtype) is DType else as_dtype(dtype)
    if isinstance(x, _LISTS) and holds_tensors(x):
        return functools.reduce(promote, [dtype_of(row) for row in x if holds_tensors([row])])
    return as_dtype(as_array(x).dtype)


def python_shape(x: Any) -> Shape:
    """The shape of ``x`` as Python code reads it: where a trace has guarded sizes, these are numbers.

    For functions whose result has another rank or structure for other sizes: a comparison of such a size is a
    guard of the trace.
    """
    shape = shape_of(x)
    if shape is UNKNOWN_RANK or shape.is_static or not isinstance(x, AbstractTensor):
        return shape
    tensor: Any = x  # the method is that of its class
    read: Shape = tensor.python_shape()
    return read


def never_equal(x: Any, y: Any) -> bool:
    """Whether symbolic tensors have sizes in the traced call that do not broadcast; a guard of the trace."""
    if not isinstance(y, AbstractTensor) or None not in (*x.shape, *y.shape):
        return False
    pairs = zip(reversed(python_shape(x)), reversed(python_shape(y)), strict=False)
    return any(None not in (m, n) and m != n and m != 1 and n != 1 for m, n in pairs)


def shape_of(x: Any) -> Shape:
    """The shape of a tensor, variable, array, Python value, or list of such."""
    if CONVERSIONS:
        x = registered(x)
    if isinstance(x, _TENSORS):
        shape = x.shape
        return Shape(shape) if type(shape) is tuple else shape
    if isinstance(x, _LISTS) and holds_tensors(x):
        return Shape([len(x), *shape_of(x[0])])
    return Shape(np.shape(x))
