"""Functions into functions that compute derivatives: jvp, vjp, grad, jacobian, hessian and their like.

They are combinations of tapes and accumulators, so they nest, run op by op, and compile with what calls them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import numpy as np

from dualflow.core import dispatch, tree
from dualflow.core.dispatch import TENSORS
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.eager.accumulator import ForwardAccumulator
from dualflow.eager.tape import GradientTape
from dualflow.gradient.vmap_slot import VMAP
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.conversion import identity
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import stack

Places = int | Sequence[int]
Mode = Literal["auto", "forward", "reverse"]
_FEW: Final = 8
"""So many forward passes take less time than a trace of one backward."""


@entry
def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """``f(*primals)`` and its derivative along ``tangents``, in one forward pass.

    Args:
        f: takes tensors, or structures of them, and returns a tensor or a structure of them.
        primals: the arguments.
        tangents: for each argument its direction, of the same structure, shapes and dtypes.

    Returns:
        ``(outputs, derivatives)``, of one structure; the derivative of what doesn't depend on the arguments
        is zero.

    Raises:
        InvalidArgumentError: structures or shapes that differ.

    >>> import dualflow as df
    >>> y, dy = df.autodiff.jvp(lambda x: x * x, [df.constant(3.0)], [df.constant(1.0)])
    >>> float(y), float(dy)
    (9.0, 6.0)
    """
    own = _own(tuple(primals))
    with ForwardAccumulator(own, _tensors(tuple(tangents))) as acc:
        outputs = _tensors(f(*own))
    return outputs, acc.jvp(outputs, "zero")


@entry
def vjp(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """``f(*primals)``, and the function that maps cotangents of its outputs to cotangents of its arguments.

    Args:
        f: a function of tensors, or structures of them, that returns a tensor or a structure of them.
        primals: the arguments.

    Returns:
        ``(outputs, pull)``. ``pull`` takes cotangents in the structure of the outputs, any number of times,
        and returns a tuple: one gradient for each argument, zeros where the outputs don't depend on it. For
        complex arguments they are conjugates of derivatives, as TensorFlow's.

    Raises:
        InvalidArgumentError: when ``pull`` is called: cotangents of another structure or shape.

    >>> import dualflow as df
    >>> y, pull = df.autodiff.vjp(lambda x: x * x, df.constant([1.0, 3.0]))
    >>> pull(df.constant([1.0, 10.0]))[0].numpy()
    array([ 2., 60.], dtype=float32)
    """
    own = _own(primals)
    tape = GradientTape(persistent=True, watch_accessed_variables=False)
    with tape:
        tape.watch(own)
        outputs = _tensors(f(*own))

    @entry
    def pull(cotangents: Any) -> tuple[Any, ...]:
        found: tuple[Any, ...] = tape.gradient(outputs, own, cotangents, "zero")
        return found

    return outputs, pull


@entry
def value_and_grad(f: Callable[..., Any], argnums: Places = 0) -> Callable[..., tuple[Any, Any]]:
    """A function that computes ``f(*args)``, a scalar, and its gradient.

    Args:
        f: returns a real scalar.
        argnums: which argument to differentiate for, or several.

    Returns:
        A function of the arguments of ``f`` that returns ``(value, gradient)``: a gradient in the structure
        of the argument, or a tuple of them for several; zeros where the value doesn't depend on it.

    Raises:
        InvalidArgumentError: by that function: a value that is no scalar, or an argument that isn't given.

    >>> import dualflow as df
    >>> loss = df.autodiff.value_and_grad(lambda x, a: df.reduce_sum(a * x * x))
    >>> value, gradient = loss(df.constant([1.0, 2.0]), 3.0)
    >>> float(value), gradient.numpy().tolist()
    (15.0, [6.0, 12.0])
    """

    @entry
    @functools.wraps(f)
    def computed(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        given, own = _chosen(args, argnums)
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(own)
            value = convert_to_tensor(f(*given, **kwargs))
        if value.shape.rank != 0:
            raise InvalidArgumentError(
                f"A gradient is that of a scalar, but the function returned shape {value.shape}; reduce it, "
                "or take df.autodiff.jacobian."
            )
        return value, _as_chosen(tape.gradient(value, own, None, "zero"), argnums)

    return computed


@entry
def grad(f: Callable[..., Any], argnums: Places = 0) -> Callable[..., Any]:
    """A function that computes the gradient of ``f``, whose result is a scalar.

    Args:
        f: a function of tensors, or structures of them, that returns a real scalar.
        argnums: the position of the argument to differentiate with respect to, or several; the first by
            default.

    Returns:
        A function of the arguments of ``f``. It returns tensors with the structure, shapes and dtypes of the
        argument, or a tuple for several arguments; zeros where ``f`` doesn't depend on it. For complex
        arguments they are conjugates of derivatives, as TensorFlow's.

    Raises:
        InvalidArgumentError: when that function is called: ``f`` returns no scalar, or ``argnums`` is no
            position of an argument.

    >>> import dualflow as df
    >>> df.autodiff.grad(lambda x: df.reduce_sum(x**2))(df.constant([1.0, 2.0])).numpy()
    array([2., 4.], dtype=float32)
    >>> float(df.autodiff.grad(df.autodiff.grad(lambda x: x**3))(2.0))
    12.0
    """
    both = value_and_grad(f, argnums)

    @entry
    @functools.wraps(f)
    def computed(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return computed


@entry
def jacobian(f: Callable[..., Any], argnums: Places = 0, mode: Mode = "auto") -> Callable[..., Any]:
    """A function that computes the derivatives of all elements of ``f(*args)`` for all of an argument.

    Args:
        f: returns a tensor, of static shape.
        argnums: which argument, a tensor of static shape, to differentiate for, or several.
        mode: "forward" takes one pass for each element of the arguments, "reverse" one for each element of
            the result; "auto" takes what is less work. Inside of ``df.function`` passes are taken at once,
            and those in reverse also outside of it.

    Returns:
        A function of the arguments of ``f`` that returns a tensor of shape ``result.shape + argument.shape``,
        or a tuple of them for several arguments.

    Raises:
        InvalidArgumentError: another ``mode``; by that function: sizes that are not known.

    >>> import dualflow as df
    >>> f = df.autodiff.jacobian(lambda x: df.stack([x[0] * x[1], x[1], x[0]]))
    >>> f(df.constant([2.0, 5.0])).numpy()
    array([[5., 2.],
           [0., 1.],
           [1., 0.]], dtype=float32)
    """
    if mode not in ("auto", "forward", "reverse"):
        raise InvalidArgumentError(f"jacobian's mode is 'auto', 'forward' or 'reverse', not {mode!r}.")

    @entry
    @functools.wraps(f)
    def computed(*args: Any, **kwargs: Any) -> Any:
        given, own = _chosen(args, argnums)
        for x in own:
            _check_static(x)
        if mode == "forward":
            return _as_chosen(_by_columns(f, given, kwargs, own), argnums)
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(own)
            result = convert_to_tensor(f(*given, **kwargs))
        _check_static(result)
        if mode == "auto" and _is_less_forward(sum(_size(x) for x in own), _size(result)):
            return _as_chosen(_by_columns(f, given, kwargs, own), argnums)
        return _as_chosen(tape.jacobian(result, own, "zero"), argnums)

    return computed


@entry
def hessian(f: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """A function that computes the second derivatives of ``f``, a scalar, with respect to an argument.

    The gradient is taken in reverse mode, and differentiated in forward mode, once for each element of the
    argument.

    Args:
        f: a function that returns a real scalar.
        argnums: the position of the argument, a tensor of static shape; the first by default.

    Returns:
        A function of the arguments of ``f`` that returns a tensor of shape
        ``argument.shape + argument.shape`` and the dtype of the argument.

    Raises:
        InvalidArgumentError: when that function is called: ``f`` returns no scalar, or the argument has an
            unknown size.

    >>> import dualflow as df
    >>> df.autodiff.hessian(lambda x: x[0] ** 2 * x[1])(df.constant([3.0, 5.0])).numpy()
    array([[10.,  6.],
           [ 6.,  0.]], dtype=float32)
    """
    return jacobian(grad(f, argnums), argnums, mode="forward")


@entry
def hvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The product of the second derivatives of ``f``, a scalar, with ``tangents``, without building a matrix.

    Args:
        f: a function of tensors that returns a real scalar.
        primals: the arguments.
        tangents: a direction for each argument, of its structure, shape and dtype.

    Returns:
        A tuple with a tensor for each argument, of its shape and dtype.

    Raises:
        InvalidArgumentError: ``f`` returns no scalar, or the tangents have other structures or shapes.

    >>> import dualflow as df
    >>> x, v = df.constant([3.0, 5.0]), df.constant([1.0, 0.0])
    >>> df.autodiff.hvp(lambda x: x[0] ** 2 * x[1], [x], [v])[0].numpy()
    array([10.,  6.], dtype=float32)
    """
    return jvp(grad(f, tuple(range(len(primals)))), primals, tangents)[1]


def _tensors(values: Any) -> Any:
    return tree.map_structure(lambda x: x if isinstance(x, TENSORS) else convert_to_tensor(x), values)


def _own(values: Any) -> Any:
    """The values as tensors of their own: one that is given twice is two primals."""
    return tree.map_structure(identity, values)


def _chosen(args: Sequence[Any], argnums: Places) -> tuple[list[Any], list[Any]]:
    """The arguments, and those to differentiate for, which are tensors of their own."""
    places = [argnums] if isinstance(argnums, int) else list(argnums)
    if any(not -len(args) <= p < len(args) for p in places):
        raise InvalidArgumentError(
            f"{len(args)} arguments were given, and derivatives wanted for {places}; argnums names positions "
            "of arguments that are given."
        )
    given = list(args)
    for p in places:
        given[p] = _own(given[p])
    return given, [given[p] for p in places]


def _as_chosen(found: Sequence[Any], argnums: Places) -> Any:
    return found[0] if isinstance(argnums, int) else tuple(found)


def _by_columns(
    f: Callable[..., Any], given: Sequence[Any], kwargs: dict[str, Any], own: Sequence[Any]
) -> list[Any]:
    """The jacobians, column by column; of a trace, all columns at once, which it calls ``f`` once for."""
    found = []
    for x in own:

        def column(unit: Any, x: Any = x) -> list[Any]:
            with ForwardAccumulator(x, unit) as acc:
                result = convert_to_tensor(f(*given, **kwargs))
            return [acc.jvp(result, "zero")]

        size = _size(x)
        units = np.eye(size, dtype=x.dtype.dtype).reshape(size, *x.shape)
        if not size:
            result = convert_to_tensor(f(*given, **kwargs))
            found.append(convert_to_tensor(np.zeros((*result.shape, *x.shape), result.dtype.dtype)))
            continue
        at_once = None if dispatch.current().eager else VMAP.value(column, convert_to_tensor(units))
        rows = stack([column(convert_to_tensor(u))[0] for u in units]) if at_once is None else at_once[0]
        last = transpose(rows, [*range(1, len(rows.shape)), 0])
        found.append(reshape(last, (*last.shape[:-1], *x.shape)))
    return found


def _is_less_forward(arguments: int, results: int) -> bool:
    """Whether forward passes are less work: where ops run now, only backward ones are taken at once."""
    return arguments < results and (arguments <= _FEW or not dispatch.current().eager)


def _check_static(x: Any) -> None:
    if not isinstance(x, TENSORS):
        raise InvalidArgumentError(f"A jacobian is taken for a tensor, not for {x!r}; stack the parts.")
    if not x.shape.is_static:
        raise InvalidArgumentError(
            f"A jacobian needs arguments and results of static shape, not {x.shape}; give known shapes."
        )


def _size(x: Any) -> int:
    return math.prod(x.shape)
