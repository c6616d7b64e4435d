"""Random numbers, drawn from a generator that the caller names.

A generator is an object whose ``philox`` is a :class:`numpy.random.Generator`. Drawing advances it, so these
ops keep their order and draw anew on every call of a compiled function. For many normal or uniform numbers
only a state is drawn; the numbers are a pure function of it, which kernels and threads compute in any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import Engine
from dualflow.core.dtypes import DType, as_dtype, float32, float64, int64, uint64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.core.shape import Shape, check_size
from dualflow.core.spec import TensorSpec
from dualflow.ops.arithmetic import add, maximum, minimum, multiply
from dualflow.ops.attribute_values import written_as, written_value
from dualflow.ops.batching_rules import LEADING, OF_SHAPE, BatchingRule
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import unstack
from dualflow.ops.late_sizes import FixedSpec, once_sized
from dualflow.ops.op_kinds import Opaque, OperandAttributes
from dualflow.ops.operand_attributes import apply_sized
from dualflow.ops.random_numbers.distributions import (
    check_ends,
    fractions,
    integers_between,
    tailed_normals,
)
from dualflow.ops.random_numbers.states import DrawState
from dualflow.ops.record import Effect, Op, register
from dualflow.ops.static import (
    int_or_symbolic,
    ints_or_symbolic,
    partial_shape,
    shape_of,
    static_int,
    static_shape,
    static_value,
)
from dualflow.ops.tensor_sizes import axis_sizes

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor

Draw = Callable[[Any, "tuple[int, ...]", DType], Any]
_KIND = Opaque("random numbers come from NumPy's generators")
_SINGLY: Final = _KIND._replace(drawn_singly=True)
_MAX_UNVECTORISED_DRAWS: Final = 1 << 15
"""The number of normal or uniform numbers up to which NumPy's generator draws them, one by one.

More are computed from a state that it draws.
"""


_POISSON_MEAN_LIMIT: Final = 9.2e18
"""Means from here on may give numbers that 64 bits do not hold."""


class Source(Protocol):
    """A source of random numbers: an eager stream, or the stream of one op in a trace."""

    @property
    def philox(self) -> np.random.Generator: ...

    def for_copied_op(self, engine: Engine) -> Source:
        """The source for the copy of an op that draws from this source; ``engine`` records the copy."""


def _drawn(shape: tuple[int, ...], dtype: DType, generator: Source, **attrs: Any) -> TensorSpec:
    return TensorSpec.of(Shape(shape), dtype)


def _record(
    name: str,
    doc: str,
    kernel: Callable[..., Any],
    infer: Callable[..., TensorSpec] = _drawn,
    batching_rule: BatchingRule | None = OF_SHAPE,
    kind: Opaque = _KIND,
    operand_attributes: OperandAttributes | None = None,
) -> Op:
    return register(
        Op(
            name=name,
            doc=doc,
            infer=infer,
            kernel=kernel,
            kind=kind,
            batching_rule=batching_rule,
            operand_attributes=operand_attributes,
            effect=Effect.RANDOM,
        )
    )


def _in_width(draw: Callable[..., Any], shape: tuple[int, ...], dtype: DType) -> Any:
    """Draws in float32 or float64, the widths that NumPy's generators have."""
    width = np.float64 if dtype.size == 8 else np.float32
    return np.asarray(draw(size=shape, dtype=width), dtype.dtype)


def _truncated(shape: tuple[int, ...], dtype: DType, generator: Source) -> Any:
    draw = generator.philox.standard_normal
    numbers = draw(size=shape)
    far = np.abs(numbers) > 2
    while far.any():
        numbers = np.where(far, draw(size=shape), numbers)
        far = np.abs(numbers) > 2
    return numbers.astype(dtype.dtype)


NORMAL = _record(
    "random_normal",
    """Numbers of the normal distribution of mean 0 and variance 1.""",
    lambda shape, dtype, generator: _in_width(generator.philox.standard_normal, shape, dtype),
    kind=_SINGLY,
)
UNIFORM = _record(
    "random_uniform",
    """Uniformly distributed numbers in [0, 1).""",
    lambda shape, dtype, generator: _in_width(generator.philox.random, shape, dtype),
    kind=_SINGLY,
)
TRUNCATED_NORMAL = _record(
    "truncated_normal", """Standard normal numbers within 2 of 0; others are drawn again.""", _truncated
)
WORDS = _record(
    "random_words",
    """Integers of 64 random bits.""",
    lambda shape, dtype, generator: generator.philox.integers(0, 1 << 64, shape, dtype.dtype),
    kind=_SINGLY,
)
INTEGERS = _record(
    "random_integers",
    """Uniformly distributed integers in [low, high).""",
    lambda shape, dtype, generator, low, high: generator.philox.integers(low, high, shape, dtype.dtype),
)
SHUFFLE = _record(
    "random_shuffle",
    """``x`` with the slices of its first axis in random order.""",
    lambda x, generator: generator.philox.permutation(x) if x.size else x.copy(),
    lambda x, generator: x,
    None,
)


def _categorical(logits: Any, count: int, dtype: DType, generator: Source) -> Any:
    """Draws by the Gumbel-max trick: the largest logit after adding Gumbel noise has softmax distribution."""
    noise = generator.philox.gumbel(size=(logits.shape[0], count, logits.shape[1]))
    return (logits[:, None, :] + noise).argmax(-1).astype(dtype.dtype)


def _categorical_infer(logits: TensorSpec, count: int, dtype: DType, generator: Source) -> TensorSpec:
    if len(logits.shape) != 2 or not logits.dtype.is_floating:
        raise InvalidArgumentError(f"takes float logits of shape (rows, classes), not {logits}.")
    if logits.shape[1] == 0:
        raise InvalidArgumentError(f"draws from 1 class or more, and {logits} has none.")
    check_size([count])
    return TensorSpec.of(Shape([logits.shape[0], count]), dtype)


CATEGORICAL = _record(
    "random_categorical",
    """Class numbers drawn by the softmax of each row of logits.""",
    _categorical,
    _categorical_infer,
    BatchingRule(merged=True),
    operand_attributes=OperandAttributes(sizes=("count",)),
)


def _gamma(alpha: Any, generator: Source) -> Any:
    if (alpha < 0).any():
        raise InvalidArgumentError(f"gamma numbers take alpha of 0 or more, not {alpha.min()}.")
    return np.asarray(generator.philox.standard_gamma(alpha), alpha.dtype)


def _poisson(lam: Any, dtype: DType, generator: Source) -> Any:
    if not ((lam >= 0) & (lam < _POISSON_MEAN_LIMIT)).all():
        raise InvalidArgumentError(
            f"Poisson numbers take a mean from 0 to {_POISSON_MEAN_LIMIT:.0e}, not {lam!r}."
        )
    return np.asarray(generator.philox.poisson(lam), dtype.dtype)


GAMMA = _record(
    "random_gamma",
    """Numbers of the gamma distributions of shape parameter ``alpha``, one for each element.""",
    _gamma,
    lambda alpha, generator: alpha,
    LEADING,
)
POISSON = _record(
    "random_poisson",
    """Numbers of the Poisson distributions of mean ``lam``, one for each element.""",
    _poisson,
    lambda lam, dtype, generator: TensorSpec.of(lam.shape, dtype),
    LEADING,
)


def _floating(dtype: Any, what: str) -> DType:
    float_dtype = as_dtype(dtype)
    if not float_dtype.is_floating:
        raise DTypeError(
            f"{what} numbers are floats, not {float_dtype.name}; df.random.uniform draws integers."
        )
    return float_dtype


def _draw(op: Op, generator: Source, shape: tuple[int, ...], dtype: DType, **attrs: Any) -> Any:
    return dispatch.current().apply(op, (), {"shape": shape, "dtype": dtype, "generator": generator, **attrs})


def _state(generator: Source) -> DrawState:
    """A drawn state, from which kernels and threads compute many numbers."""
    return DrawState(*unstack(_draw(WORDS, generator, (3,), uint64)))


def _once_sized(draw: Draw, generator: Source, shape: Any, dtype: DType) -> Any:
    """``draw(generator, shape, dtype)``, where ``shape`` may be known only when the function runs."""
    sizes_now = partial_shape(shape)
    if None not in sizes_now:
        return draw(generator, static_shape(sizes_now), dtype)

    sizes_given = [convert_to_tensor(size) for size in ints_or_symbolic(shape, "shape")]
    result = FixedSpec(TensorSpec.of(Shape(sizes_now), dtype))
    return once_sized(DynamicDraw(draw, dtype), result, integers=sizes_given, generator=generator)


@written_as("dynamic_draw", "draw", "dtype")
@dataclass(frozen=True, slots=True)
class DynamicDraw:
    """A draw whose sizes are arguments: ``draw(generator, sizes, dtype)``."""

    draw: Draw
    dtype: DType

    def __call__(self, source: Source, *sizes: int) -> Any:
        check_size(sizes)
        return self.draw(source, sizes, self.dtype)


@written_as("integers_draw", "low", "high")
@dataclass(frozen=True, slots=True)
class _IntegersDraw:
    """A :data:`Draw` of integers in ``[low, high)``."""

    low: int
    high: int

    def __call__(self, source: Source, sizes: tuple[int, ...], dtype: DType) -> Any:
        return _draw(INTEGERS, source, sizes, dtype, low=self.low, high=self.high)


def _standard_normal(generator: Source, shape: tuple[int, ...], dtype: DType) -> Any:
    if math.prod(shape) <= _MAX_UNVECTORISED_DRAWS:
        return _draw(NORMAL, generator, shape, dtype)
    return tailed_normals(_state(generator), shape, dtype)


def _fraction(generator: Source, shape: tuple[int, ...], dtype: DType) -> Any:
    """Uniform numbers in [0, 1); 16-bit ones are rounded from 32 bits if there are many."""
    if math.prod(shape) <= _MAX_UNVECTORISED_DRAWS:
        return _draw(UNIFORM, generator, shape, dtype)
    drawn = fractions(_state(generator), shape, float64 if dtype.size == 8 else float32)
    if dtype.size > 2:
        return drawn
    one = dtype.dtype.type(1)
    return minimum(cast(drawn, dtype), np.nextafter(one, dtype.dtype.type(0)))


def _truncated_numbers(generator: Source, shape: tuple[int, ...], dtype: DType) -> Any:
    return _draw(TRUNCATED_NORMAL, generator, shape, dtype)


written_value("normal_draw", _standard_normal)
written_value("truncated_normal_draw", _truncated_numbers)
written_value("uniform_draw", _fraction)


def normal(generator: Source, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32) -> Tensor:
    """Normal numbers of the given mean and standard deviation, which broadcast to ``shape``."""
    drawn = _once_sized(_standard_normal, generator, shape, _floating(dtype, "normal"))
    return _scale_and_shift(drawn, mean, stddev)


def truncated_normal(
    generator: Source, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32
) -> Tensor:
    """Normal numbers within two standard deviations of the mean."""
    drawn = _once_sized(_truncated_numbers, generator, shape, _floating(dtype, "normal"))
    return _scale_and_shift(drawn, mean, stddev)


def _scale_and_shift(x: Any, mean: Any, stddev: Any) -> Any:
    if not (type(stddev) is float and stddev == 1.0):
        x = multiply(x, stddev)
    return x if type(mean) is float and mean == 0.0 else add(x, mean)


def uniform(
    generator: Source, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = float32
) -> Tensor:
    """Uniformly distributed numbers in ``[minval, maxval)``; ``maxval`` is 1 by default, for floats.

    Raises:
        InvalidArgumentError: integers without ``maxval``, or an empty range of them.
    """
    target = as_dtype(dtype)
    if target.is_integer:
        return _uniform_integers(generator, shape, minval, maxval, target)
    x = _once_sized(_fraction, generator, shape, _floating(target, "uniform"))
    if maxval is None:
        maxval = 1
    low, high = static_value(minval), static_value(maxval)
    if low is not None and high is not None and not low.any() and (high == 1).all():
        return x
    numbers = add(multiply(x, maxval - minval), minval)
    if high is None or low is None:
        return numbers
    below = np.nextafter(high.astype(target.dtype), low.astype(target.dtype))
    return minimum(numbers, below) if (high > low).all() else numbers  # for rounding can reach maxval


def _uniform_integers(generator: Source, shape: Any, minval: Any, maxval: Any, dtype: DType) -> Any:
    if maxval is None:
        raise InvalidArgumentError("uniform of integers needs maxval, which is never drawn.")
    if static_value(minval) is None or static_value(maxval) is None:
        ends = convert_to_tensor(minval, dtype), convert_to_tensor(maxval, dtype)
        check_ends(*ends)
        return integers_between(_state(generator), shape, *ends)
    low, high = static_int(minval, "minval"), static_int(maxval, "maxval")
    if low >= high and 0 not in partial_shape(shape):
        raise InvalidArgumentError(f"uniform takes minval < maxval, not {low} and {high}.")
    return _once_sized(_IntegersDraw(low, high), generator, shape, dtype)


def shuffle(generator: Source, value: Any) -> Tensor:
    """``value`` with the slices of its first axis in random order."""
    if not shape_of(value):
        raise InvalidArgumentError("takes a tensor of one axis or more, but the shape is ().")
    return dispatch.current().apply(SHUFFLE, (value,), {"generator": generator})


def categorical(generator: Source, logits: Any, num_samples: Any, dtype: Any = int64) -> Tensor:
    """For each row of ``logits``, ``num_samples`` class numbers drawn by its softmax."""
    attrs = {
        "count": int_or_symbolic(num_samples, "num_samples"),
        "dtype": as_dtype(dtype),
        "generator": generator,
    }
    logits = convert_to_tensor(logits)
    count = attrs["count"] if type(attrs["count"]) is int else None
    CATEGORICAL.specs([logits.spec], {**attrs, "count": count})  # kernels that draw are not analysed
    return apply_sized(CATEGORICAL, (logits,), attrs)


def gamma(generator: Source, shape: Any, alpha: Any, beta: Any = None, dtype: Any = float32) -> Tensor:
    """Gamma numbers of shape parameter ``alpha`` and rate ``beta``: of shape ``shape + alpha.shape``.

    All are positive: those that the dtype would round to 0 are its least normal number.
    """
    alpha = convert_to_tensor(alpha, dtype_hint=dtype)
    if not alpha.dtype.is_floating:
        raise DTypeError(f"alpha is of floats, not {alpha.dtype.name}; use df.cast.")
    wide = _for_each(alpha, shape)
    numbers = dispatch.current().apply(GAMMA, (wide,), {"generator": generator})
    numbers = numbers if beta is None else numbers / beta
    return maximum(numbers, float(np.finfo(numbers.dtype.dtype).tiny))


def poisson(generator: Source, shape: Any, lam: Any, dtype: Any = float32) -> Tensor:
    """Poisson numbers of mean ``lam``: of shape ``shape + lam.shape``."""
    lam = convert_to_tensor(lam, dtype_hint=float32)
    if not (lam.dtype.is_floating or lam.dtype.is_integer):
        raise DTypeError(f"lam is of numbers, not {lam.dtype.name}; use df.cast.")
    wide = _for_each(lam, shape)
    return dispatch.current().apply(POISSON, (wide,), {"dtype": as_dtype(dtype), "generator": generator})


def _for_each(parameter: Any, shape: Any) -> Any:
    """``parameter`` repeated over the new leading axes ``shape``."""
    return broadcast_to(parameter, [*ints_or_symbolic(shape, "shape"), *axis_sizes(parameter)])
