"""TensorFlow 1's functions that version 2 has changed or removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, as_dtype, float32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.function.control.control_flow import cond as v2_cond
from dualflow.function.control.control_flow import while_loop as v2_while_loop
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.graph_mode.operation import Operation
from dualflow.ops.arithmetic import divide, floordiv
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.creation import convert_to_tensor, ones_like, zeros_like
from dualflow.ops.creation import ones as v2_ones
from dualflow.ops.creation import zeros as v2_zeros
from dualflow.ops.neural.dropout import check_is_number
from dualflow.ops.neural.dropout import dropout as v2_dropout
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.random_numbers.draws import Source
from dualflow.ops.random_numbers.functions import categorical, normal, uniform
from dualflow.ops.random_numbers.functions import poisson as v2_poisson
from dualflow.ops.random_numbers.streams import stream
from dualflow.ops.record import Effect, Op, register
from dualflow.ops.selection import where as v2_where
from dualflow.ops.tensor_sizes import SHAPE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import SupportsInt

    from dualflow.core.argument_types import DTypeLike, IntLike, ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor


def div(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``x / y``, rounded down for integers, as in Python 2.

    >>> from dualflow.compat import v1
    >>> int(v1.div(7, 2)), float(v1.div(7.0, 2.0))
    (3, 3.5)
    """
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    integers = not (x.dtype.is_inexact or y.dtype.is_inexact)
    return floordiv(x, y) if integers else divide(x, y)


def poisson(
    lam: TensorLike,
    shape: ShapeLike,
    dtype: DTypeLike = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Poisson numbers of mean ``lam``, of shape ``shape + lam.shape``; version 2 has the shape first.

    >>> from dualflow.compat import v1
    >>> v1.random.poisson(3.0, [2, 2]).shape
    (2, 2)
    """
    return v2_poisson(shape, lam, dtype, seed)


def multinomial(
    logits: TensorLike,
    num_samples: IntLike,
    seed: int | None = None,
    name: str | None = None,
    output_dtype: DTypeLike | None = None,
) -> Tensor:
    """Classes drawn for each row of ``logits``; version 2 has ``random.categorical``.

    >>> from dualflow.compat import v1
    >>> v1.multinomial([[-100.0, 0.0]], 3).numpy().tolist()
    [[1, 1, 1]]
    """
    return categorical(logits, num_samples, output_dtype, seed)


def unary_assertion(function: Callable[..., Any]) -> Callable[..., Any]:
    """An assertion of ``debugging`` about one tensor, with the arguments that it has in TensorFlow 1."""

    def check(
        x: TensorLike,
        data: object = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Any:
        return function(x, message=message, summarize=summarize)

    return _described_as(function, check)


def rank_assertion(function: Callable[..., Any]) -> Callable[..., Any]:
    """An assertion of ``debugging`` about a tensor's rank, with the arguments that it has in TensorFlow 1."""

    def check(
        x: TensorLike,
        rank: TensorLike | Sequence[TensorLike] | None = None,
        data: object = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
        ranks: Sequence[TensorLike] | None = None,
    ) -> Any:
        return function(x, rank if ranks is None else ranks, message=message)

    return _described_as(function, check)


def binary_assertion(function: Callable[..., Any]) -> Callable[..., Any]:
    """An assertion of ``debugging`` about two tensors, with the arguments that it has in TensorFlow 1."""

    def check(
        x: TensorLike,
        y: TensorLike,
        data: object = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Any:
        return function(x, y, message=message, summarize=summarize)

    return _described_as(function, check)


def _described_as(function: Callable[..., Any], check: Callable[..., Any]) -> Callable[..., Any]:
    """``check`` with the name and the docstring of ``function``, but with its own signature."""
    check.__name__ = check.__qualname__ = function.__name__
    check.__doc__ = function.__doc__
    return check


def dropout(
    x: TensorLike,
    keep_prob: TensorLike | None = None,
    noise_shape: ShapeLike | None = None,
    seed: int | None = None,
    name: str | None = None,
    rate: TensorLike | None = None,
) -> Any:
    """``x`` with each element kept with probability ``keep_prob`` and divided by it, else 0.

    Args:
        x: floats of any shape, in a graph also of dynamic sizes.
        keep_prob: the probability to keep an element, in (0, 1]; required if there is no ``rate``.
        rate: the probability to drop an element, in [0, 1); required if there is no ``keep_prob``.
        noise_shape: the shape of the random numbers, which broadcast to ``x``; by default that of ``x``.
        seed: the seed of a random stream for this call.
        name: of the result, in a graph.

    Raises:
        InvalidArgumentError: neither or both of ``keep_prob`` and ``rate``, or one out of its range.
        DTypeError: ``x`` is not of floats.

    >>> from dualflow.compat import v1
    >>> float(v1.reduce_max(v1.nn.dropout(v1.ones([1000]), keep_prob=0.25)))
    4.0
    """
    if (keep_prob is None) == (rate is None):
        raise InvalidArgumentError(
            "dropout takes either keep_prob or rate, the probability to keep or to drop an element."
        )
    probability: Any = keep_prob
    dropped: Any = 1 - probability if rate is None else rate
    check_is_number(dropped)
    x = convert_to_tensor(x)
    if noise_shape is not None or x.shape.is_static or not x.dtype.is_floating:
        return v2_dropout(x, dropped, noise_shape, seed)
    return v2_where(_draw_like(_UNIFORM_LIKE, x, x.dtype, seed) >= dropped, x / (1 - dropped), 0)


def where(
    condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """``x`` where ``condition`` is true, else ``y``; version 2 broadcasts, and doesn't select rows.

    Args:
        condition: a bool tensor of the shape of ``x``, a scalar for all of it, or a vector with an element
            for each row of ``x``.
        x: by default the indices of true elements are returned, as by :func:`dualflow.where`.
        y: of the shape of ``x``.
        name: of the result, in a graph.

    Raises:
        InvalidArgumentError: ``x`` and ``y`` differ in shape, or ``condition`` has another one.

    >>> from dualflow.compat import v1
    >>> v1.where([True, False], [[1, 2], [3, 4]], [[5, 6], [7, 8]]).numpy().tolist()
    [[1, 2], [7, 8]]
    """
    if x is None or y is None:
        return v2_where(condition, x, y)
    condition, x, y = convert_to_tensor(condition), convert_to_tensor(x), convert_to_tensor(y)
    shape = condition.shape
    if not _may_be_equal(x.shape, y.shape):
        raise InvalidArgumentError(
            f"v1.where takes two tensors of one shape, not {x.shape} and {y.shape}; df.where broadcasts."
        )
    if (
        shape
        and not _may_be_equal(shape, x.shape)
        and not (len(shape) == 1 and _may_be_equal(shape, x.shape[:1]))
    ):
        raise InvalidArgumentError(
            f"The condition of v1.where has shape {shape}, which is neither the shape {x.shape} of its "
            "operands, nor one element for each of their rows; df.where broadcasts."
        )
    if len(shape) == 1:
        for _ in range(len(x.shape) - 1):
            condition = expand_dims(condition, -1)
    return v2_where(condition, x, y)


def _may_be_equal(a: Any, b: Any) -> bool:
    """Whether two shapes may be equal."""
    return len(a) == len(b) and all(m == n or None in (m, n) for m, n in zip(a, b, strict=True))


def cond(
    pred: TensorLike, true_fn: Callable[[], Any], false_fn: Callable[[], Any], name: str | None = None
) -> Any:
    """The result of ``true_fn`` if ``pred`` is true, else of ``false_fn``, as :func:`dualflow.cond`.

    Args:
        pred: a bool scalar.
        true_fn, false_fn: functions without parameters, which return tensors of one structure, or operations.

    Returns:
        What the functions return; in a graph, for operations the operation that runs one of them.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     v, add = v1.Variable(1.0), v1.placeholder(v1.bool, [])
    ...     step = v1.cond(add, lambda: v1.assign_add(v, 10.0).op, v1.no_op)
    ...     session.run(v1.global_variables_initializer())
    ...     session.run(step, {add: False})
    ...     session.run(step, {add: True})
    ...     print(session.run(v))
    11.0
    """
    return v2_cond(pred, _without_operation(true_fn), _without_operation(false_fn))


def _without_operation(branch: Callable[[], Any]) -> Callable[[], Any]:
    """``branch`` with None as its result in place of an operation, which it has recorded."""

    def call() -> Any:
        result = branch()
        return None if isinstance(result, Operation) else result

    return call


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: object,
    shape_invariants: object = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: SupportsInt | None = None,
    return_same_structure: bool = False,
) -> Any:
    """``loop_vars = body(*loop_vars)`` while ``cond(*loop_vars)`` is true, as :func:`dualflow.while_loop`.

    Args:
        cond: a function of the loop variables that returns a scalar.
        body: a function of the loop variables that returns their new values.
        loop_vars: tensors, or structures of them.
        maximum_iterations: the most iterations; no limit by default.
        return_same_structure: whether a single loop variable is returned in a list. If not, a graph returns
            it alone; so does an eager loop whose body does.

    The other arguments are those of :func:`dualflow.while_loop`.

    >>> from dualflow.compat import v1
    >>> int(v1.while_loop(lambda i: i < 10, lambda i: i + 3, [0]))
    12
    """
    unwrap_single = not dispatch.current().eager

    def iteration(*values: Any) -> Any:
        nonlocal unwrap_single
        new_values = body(*values)
        unwrap_single = unwrap_single or not isinstance(new_values, list | tuple)
        return new_values

    results = v2_while_loop(
        cond,
        iteration,
        loop_vars,
        shape_invariants,
        maximum_iterations=maximum_iterations,
        back_prop=back_prop,
    )
    is_single = isinstance(loop_vars, list | tuple) and len(loop_vars) == 1
    return results[0] if is_single and unwrap_single and not return_same_structure else results


# Functions whose shape may be another tensor's, which may be dynamic: shape=shape(x)


def random_normal(
    shape: ShapeLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normal numbers, as :func:`dualflow.random.normal`; ``shape`` may be that of a tensor of dynamic sizes.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     x = v1.placeholder(v1.float32, [None, 2])
    ...     print(session.run(v1.random_normal(v1.shape(x)), {x: [[1.0, 2.0]]}).shape)
    (1, 2)
    """
    x, drawn_dtype = _tensor_with_shape(shape), as_dtype(dtype)
    if x is None or not drawn_dtype.is_floating:
        return normal(shape, mean, stddev, dtype, seed)
    numbers: Tensor = _draw_like(_NORMAL_LIKE, x, drawn_dtype, seed) * stddev + mean
    return numbers


def random_uniform(
    shape: ShapeLike,
    minval: TensorLike = 0,
    maxval: TensorLike | None = None,
    dtype: DTypeLike = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Uniform numbers, as :func:`dualflow.random.uniform`; see :func:`random_normal` for ``shape``.

    >>> from dualflow.compat import v1
    >>> v1.random_uniform([2, 3]).shape
    (2, 3)
    """
    x, drawn_dtype = _tensor_with_shape(shape), as_dtype(dtype)
    if x is None or not drawn_dtype.is_floating:
        return uniform(shape, minval, maxval, dtype, seed)
    upper: Any = 1 if maxval is None else maxval
    lower: Any = minval
    numbers: Tensor = _draw_like(_UNIFORM_LIKE, x, drawn_dtype, seed) * (upper - lower) + lower
    return numbers


def zeros(shape: ShapeLike, dtype: DTypeLike = float32, name: str | None = None) -> Tensor:
    """Zeros, as :func:`dualflow.zeros`; see :func:`random_normal` for ``shape``.

    >>> from dualflow.compat import v1
    >>> v1.zeros([2]).numpy().tolist()
    [0.0, 0.0]
    """
    x = _tensor_with_shape(shape)
    return v2_zeros(shape, dtype) if x is None else zeros_like(x, dtype)


def ones(shape: ShapeLike, dtype: DTypeLike = float32, name: str | None = None) -> Tensor:
    """Ones, as :func:`dualflow.ones`; see :func:`random_normal` for ``shape``.

    >>> from dualflow.compat import v1
    >>> v1.ones([2]).numpy().tolist()
    [1.0, 1.0]
    """
    x = _tensor_with_shape(shape)
    return v2_ones(shape, dtype) if x is None else ones_like(x, dtype)


def _tensor_with_shape(shape: Any) -> SymbolicTensor | None:
    """The tensor ``x`` if ``shape`` is ``shape(x)`` of a symbolic tensor; else None."""
    node = shape._value.node if isinstance(shape, SymbolicTensor) else None
    return shape._tracer.tensor_of(node.inputs[0]) if node is not None and node.op is SHAPE else None


def _draw_like(op: Op, x: Any, dtype: DType, seed: int | None) -> Any:
    return dispatch.current().apply(op, (x,), {"dtype": dtype, "generator": stream(seed)})


def _register_draw_like(name: str, doc: str, draw: Callable[[np.random.Generator], Callable[..., Any]]) -> Op:
    """Register an op that draws floats of the shape of its input, and return it."""

    def kernel(x: np.ndarray[Any, Any], dtype: DType, generator: Source) -> Any:
        width = np.float64 if dtype.size == 8 else np.float32
        return np.asarray(draw(generator.philox)(size=x.shape, dtype=width), dtype.dtype)

    return register(
        Op(
            name=name,
            doc=doc,
            infer=lambda x, dtype, generator: TensorSpec.of(x.shape, dtype),
            kernel=kernel,
            kind=Opaque("random numbers come from NumPy's generators"),
            effect=Effect.RANDOM,
        )
    )


_UNIFORM_LIKE: Final = _register_draw_like(
    "random_uniform_like",
    """Uniform numbers in [0, 1), of the shape that ``x`` has at run time.""",
    lambda philox: philox.random,
)
_NORMAL_LIKE: Final = _register_draw_like(
    "random_normal_like",
    """Normal numbers of mean 0 and variance 1, of the shape that ``x`` has at run time.""",
    lambda philox: philox.standard_normal,
)
