"""Function transformations for derivatives: jvp, vjp, grad, jacobian, hessian, hvp.

They combine tapes and accumulators, so they nest, run eagerly, and compile with their caller.
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
_MAX_FORWARD_PASSES: Final = 8
"""The maximum number of forward passes of an eager Jacobian; for more, tracing a backward pass is faster."""


@entry
def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """``f(*primals)`` and its derivative along ``tangents``, in one forward pass.

    Args:
        f: a function of tensors, or structures of them, that returns a tensor or a structure of them.
        primals: the arguments.
        tangents: a direction for each argument, of its structure, shapes and dtypes.

    Returns:
        ``(outputs, derivatives)``, of the same structure; the derivative of an output that doesn't depend on
        the arguments is zero.

    Raises:
        InvalidArgumentError: structures or shapes differ.

    >>> import dualflow as df
    >>> y, dy = df.autodiff.jvp(lambda x: x * x, [df.constant(3.0)], [df.constant(1.0)])
    >>> float(y), float(dy)
    (9.0, 6.0)
    """
    copies = _copies(tuple(primals))
    with ForwardAccumulator(copies, _tensors(tuple(tangents))) as acc:
        outputs = _tensors(f(*copies))
    return outputs, acc.jvp(outputs, "zero")


@entry
def vjp(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """``f(*primals)``, and the function that maps cotangents of its outputs to cotangents of its arguments.

    Args:
        f: a function of tensors, or structures of them, that returns a tensor or a structure of them.
        primals: the arguments.

    Returns:
        ``(outputs, vjp_fn)``. ``vjp_fn``, which can be called any number of times, takes cotangents in the
        structure of the outputs and returns a tuple: a gradient for each argument, zeros where the outputs
        don't depend on it. For complex arguments they are conjugates of derivatives, as in TensorFlow.

    Raises:
        InvalidArgumentError: when ``vjp_fn`` is called: cotangents of another structure or shape.

    >>> import dualflow as df
    >>> y, vjp_fn = df.autodiff.vjp(lambda x: x * x, df.constant([1.0, 3.0]))
    >>> vjp_fn(df.constant([1.0, 10.0]))[0].numpy()
    array([ 2., 60.], dtype=float32)
    """
    copies = _copies(primals)
    tape = GradientTape(persistent=True, watch_accessed_variables=False)
    with tape:
        tape.watch(copies)
        outputs = _tensors(f(*copies))

    @entry
    def vjp_fn(cotangents: Any) -> tuple[Any, ...]:
        gradients: tuple[Any, ...] = tape.gradient(outputs, copies, cotangents, "zero")
        return gradients

    return outputs, vjp_fn


@entry
def value_and_grad(f: Callable[..., Any], argnums: Places = 0) -> Callable[..., tuple[Any, Any]]:
    """A function that computes ``f(*args)``, a scalar, and its gradient.

    Args:
        f: a function that returns a real scalar.
        argnums: the position of the argument to differentiate with respect to, or several; the first by
            default.

    Returns:
        A function of the arguments of ``f`` that returns ``(value, gradient)``: a gradient in the structure
        of the argument, or a tuple of them for several; zeros if the value doesn't depend on it.

    Raises:
        InvalidArgumentError: when that function is called: the value is not a scalar, or ``argnums`` exceeds
            the number of arguments.

    >>> import dualflow as df
    >>> loss = df.autodiff.value_and_grad(lambda x, a: df.reduce_sum(a * x * x))
    >>> value, gradient = loss(df.constant([1.0, 2.0]), 3.0)
    >>> float(value), gradient.numpy().tolist()
    (15.0, [6.0, 12.0])
    """

    @entry
    @functools.wraps(f)
    def computed(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        arguments, primals = _split_arguments(args, argnums)
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(primals)
            value = convert_to_tensor(f(*arguments, **kwargs))
        if value.shape.rank != 0:
            raise InvalidArgumentError(
                f"A gradient needs a scalar, but the function returned shape {value.shape}; reduce it, or "
                "use df.autodiff.jacobian."
            )
        return value, _unwrap_single(tape.gradient(value, primals, None, "zero"), argnums)

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
    """A function that computes the derivative of each element of ``f(*args)`` by each element of an argument.

    Args:
        f: returns a tensor of static shape.
        argnums: which argument, a tensor of static shape, to differentiate for, or several.
        mode: "forward" takes one pass for each element of the arguments, "reverse" one for each element of
            the result; "auto" chooses the one with less work. Reverse passes are batched; forward passes only
            inside a ``df.function``.

    Returns:
        A function of the arguments of ``f`` that returns a tensor of shape ``result.shape + argument.shape``,
        or a tuple of them for several arguments.

    Raises:
        InvalidArgumentError: ``mode`` has another value; when the function is called, a size is not static.

    >>> import dualflow as df
    >>> f = df.autodiff.jacobian(lambda x: df.stack([x[0] * x[1], x[1], x[0]]))
    >>> f(df.constant([2.0, 5.0])).numpy()
    array([[5., 2.],
           [0., 1.],
           [1., 0.]], dtype=float32)
    """
    if mode not in ("auto", "forward", "reverse"):
        raise InvalidArgumentError(f"jacobian's mode must be 'auto', 'forward' or 'reverse', not {mode!r}.")

    @entry
    @functools.wraps(f)
    def computed(*args: Any, **kwargs: Any) -> Any:
        arguments, primals = _split_arguments(args, argnums)
        for x in primals:
            _check_static(x)
        if mode == "forward":
            return _unwrap_single(_forward_jacobians(f, arguments, kwargs, primals), argnums)
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(primals)
            result = convert_to_tensor(f(*arguments, **kwargs))
        _check_static(result)
        if mode == "auto" and _is_less_forward(sum(_size(x) for x in primals), _size(result)):
            return _unwrap_single(_forward_jacobians(f, arguments, kwargs, primals), argnums)
        return _unwrap_single(tape.jacobian(result, primals, "zero"), argnums)

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


def _copies(values: Any) -> Any:
    """Copies of the values: a tensor that occurs twice becomes two primals."""
    return tree.map_structure(identity, values)


def _split_arguments(args: Sequence[Any], argnums: Places) -> tuple[list[Any], list[Any]]:
    """The arguments, and those of them to differentiate for, which are copied."""
    positions = [argnums] if isinstance(argnums, int) else list(argnums)
    if any(not -len(args) <= p < len(args) for p in positions):
        raise InvalidArgumentError(
            f"argnums is {positions}, but {len(args)} arguments were given; argnums must be positions of "
            "given arguments."
        )
    arguments = list(args)
    for p in positions:
        arguments[p] = _copies(arguments[p])
    return arguments, [arguments[p] for p in positions]


def _unwrap_single(derivatives: Sequence[Any], argnums: Places) -> Any:
    return derivatives[0] if isinstance(argnums, int) else tuple(derivatives)


def _forward_jacobians(
    f: Callable[..., Any], arguments: Sequence[Any], kwargs: dict[str, Any], primals: Sequence[Any]
) -> list[Any]:
    """The Jacobians, column by column; in a trace all columns are batched, and ``f`` is called once."""
    jacobians = []
    for x in primals:

        def column(unit: Any, x: Any = x) -> list[Any]:
            with ForwardAccumulator(x, unit) as acc:
                result = convert_to_tensor(f(*arguments, **kwargs))
            return [acc.jvp(result, "zero")]

        size = _size(x)
        units = np.eye(size, dtype=x.dtype.dtype).reshape(size, *x.shape)
        if not size:
            result = convert_to_tensor(f(*arguments, **kwargs))
            jacobians.append(convert_to_tensor(np.zeros((*result.shape, *x.shape), result.dtype.dtype)))
            continue
        at_once = None if dispatch.current().eager else VMAP.value(column, convert_to_tensor(units))
        rows = stack([column(convert_to_tensor(u))[0] for u in units]) if at_once is None else at_once[0]
        last = transpose(rows, [*range(1, len(rows.shape)), 0])
        jacobians.append(reshape(last, (*last.shape[:-1], *x.shape)))
    return jacobians


def _is_less_forward(arguments: int, results: int) -> bool:
    """Whether forward passes are less work: eagerly, only reverse passes are batched."""
    return arguments < results and (arguments <= _MAX_FORWARD_PASSES or not dispatch.current().eager)


def _check_static(x: Any) -> None:
    if not isinstance(x, TENSORS):
        raise InvalidArgumentError(f"A jacobian needs tensors, not {x!r}; stack the parts.")
    if not x.shape.is_static:
        raise InvalidArgumentError(
            f"A jacobian needs arguments and results of static shape, not {x.shape}; give static shapes."
        )


def _size(x: Any) -> int:
    return math.prod(x.shape)
