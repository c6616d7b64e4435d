"""Distributions by rejection sampling: the number of random words for a sample depends on the words.

So no native code draws them: inside compiled functions they are host calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, float32, float64, int32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.locks import imported
from dualflow.core.shape import Shape, check_size
from dualflow.core.spec import TensorSpec
from dualflow.ops.arithmetic import maximum
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.op_kinds import Opaque, OperandAttributes
from dualflow.ops.operand_attributes import apply_sized
from dualflow.ops.random_numbers.philox import check_state, state_sample, words_at
from dualflow.ops.random_numbers.states import DrawState
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.static import ints_or_symbolic

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor

Array = np.ndarray[Any, Any]
_KIND: Final = Opaque("numbers that do not fit are drawn again")
_RESERVED: Final = 256
"""The number of random words reserved for each truncated normal number, as in TensorFlow."""


def _normal_pairs(words: Array, dtype: DType) -> Array:
    """Words ``[groups, n]`` as normal numbers, by the transform of Box and Muller, in NumPy."""
    if dtype is float64:
        parts = words.reshape(len(words), -1, 2)
        drawn: Array = (parts[..., 0] & np.uint32(0xFFFFF)) * 2.0**-20 + parts[..., 1] * 2.0**-52
    else:
        drawn = (words & np.uint32(0x7FFFFF)).astype(np.float32) * np.float32(2.0**-23)
    radius = np.sqrt(-2 * np.log(np.maximum(drawn[:, ::2], drawn.dtype.type(1e-7))))
    angle = (drawn[:, 1::2] * np.float64(2 * math.pi)).astype(drawn.dtype)
    return np.stack([np.sin(angle) * radius, np.cos(angle) * radius], -1).reshape(len(words), -1)


def _truncated(low: Any, high: Any, key: Any, count: int, dtype: DType) -> Array:
    if any(x.dtype.kind not in "iu" for x in (low, high, key)):
        raise TypeError("takes integers")
    size = 2 if dtype is float64 else 4  # the numbers of a group, which have words of their own
    groups, reserved = -(-count // size), size * _RESERVED // 4
    out = np.empty((groups, size), dtype.dtype)
    pending, tries = np.arange(groups), 2 * size
    while pending.size:
        indices = pending[:, None].astype(np.uint64) * np.uint64(reserved) + np.arange(tries, dtype=np.uint64)
        words = words_at(indices.reshape(-1), low, high, key).reshape(len(pending), -1)
        drawn = _normal_pairs(words, dtype)
        near = np.abs(drawn) < 2
        done = np.count_nonzero(near, axis=1) >= size
        first = np.argsort(~near, axis=1, kind="stable")[:, :size]
        out[pending[done]] = np.take_along_axis(drawn, first, 1)[done]
        pending, tries = pending[~done], 2 * tries
    return out.reshape(-1)[:count]


def _truncated_infer(low: Any, high: Any, key: Any, count: int, dtype: DType) -> TensorSpec:
    check_state(low, high, key)
    check_size([count])
    return TensorSpec.of(Shape([count]), dtype)


TRUNCATED: Final = register(
    Op(
        name="philox_truncated_normal",
        doc="""Truncated normal numbers, determined by a counter's two halves and a key.""",
        infer=_truncated_infer,
        kernel=_truncated,
        kind=_KIND,
        operand_attributes=OperandAttributes(sizes=("count",)),
        samples=(
            Sample(state_sample(7, 0, 1 << 30), {"count": 30, "dtype": float32}),
            Sample(state_sample(-2, 3, -1), {"count": 3, "dtype": float64}),
            Sample(state_sample(0, 0, 0), {"count": 0, "dtype": float32}),
        ),
    )
)


def truncated_normals(state: DrawState, shape: Any, dtype: DType) -> Tensor:
    """Normal numbers of mean 0 and variance 1, of which those beyond 2 are drawn again."""
    sizes = ints_or_symbolic(shape, "shape")
    numbers = apply_sized(TRUNCATED, state, {"count": math.prod(sizes), "dtype": dtype})
    return reshape(numbers, sizes)


# NumPy's distributions


def _gamma(generator: np.random.Generator, alpha: Array) -> Array:
    _check((alpha >= 0).all(), "the shape parameter of gamma numbers is not negative")
    return generator.standard_gamma(alpha.astype(np.float64))


def _poisson(generator: np.random.Generator, lam: Array) -> Array:
    _check(((lam >= 0) & (lam < 2.0**62)).all(), "the mean of Poisson numbers is from 0 to 2 ** 62")
    return generator.poisson(lam.astype(np.float64))


def _binomial(generator: np.random.Generator, counts: Array, probabilities: Array) -> Array:
    _check(((counts >= 0) & (counts < 2.0**62)).all(), "the counts of binomial numbers are from 0 to 2 ** 62")
    are_valid = ((probabilities >= 0) & (probabilities <= 1)).all()
    _check(are_valid, "the probabilities of binomial numbers are from 0 to 1")
    return generator.binomial(counts.astype(np.int64), probabilities.astype(np.float64))


def _bounded(generator: np.random.Generator, low: Array, high: Array) -> Array:
    """Standard normal numbers in [low, high], after Robert, "Simulation of truncated normal variables".

    Statistics and Computing, 1995.
    """
    _check((low < high).all(), "the least number of a bounded normal distribution is below its largest")
    mirrored = low + high < 0  # then the end that is nearer to 0 is the lower one
    a, b = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    root = np.sqrt(np.maximum(a, 0) ** 2 + 4)
    rate = (np.maximum(a, 0) + root) / 2
    narrow = b - a < np.where(a > 0, math.sqrt(math.e) / rate, math.sqrt(2 * math.pi))
    out, pending = np.empty(low.shape), np.arange(low.size)
    while pending.size:
        lower, upper, slope = a[pending], b[pending], rate[pending]
        flat, tail = narrow[pending], lower > 0
        even, uniform = generator.random((2, pending.size))
        steps = generator.standard_exponential(pending.size) / slope
        normal = generator.standard_normal(pending.size)
        with np.errstate(invalid="ignore", over="ignore"):
            level = np.where(flat, lower + even * (upper - lower), np.where(tail, lower + steps, normal))
            peak = np.where(flat, np.maximum(lower, 0) ** 2 - level**2, -((level - slope) ** 2))
        accepted = (flat | tail) & (uniform < np.exp(np.minimum(peak / 2, 0))) | ~(flat | tail)
        accepted &= (level >= lower) & (level <= upper)
        out[pending[accepted]] = level[accepted]
        pending = pending[~accepted]
    return np.where(mirrored, -out, out)


def _check(holds: Any, rule: str) -> None:
    if not holds:
        raise InvalidArgumentError(f"{rule}; check the parameters.")


_DRAWS: Final[dict[str, Callable[..., Array]]] = {
    "gamma": _gamma,
    "poisson": _poisson,
    "binomial": _binomial,
    "bounded normal": _bounded,
}


def _sampled(low: Any, high: Any, key: Any, *parameters: Any, kind: str, dtype: DType) -> Array:
    """Numbers by NumPy's generator, started at the given counter and key."""
    if any(x.dtype.kind not in "iu" for x in (low, high, key)) or parameters[0].dtype.kind not in "iuf":
        raise TypeError("takes integers and real numbers")
    words = [int(x) & 0xFFFFFFFFFFFFFFFF for x in (low, high, key)]
    random = imported("numpy.random")
    generator = random.Generator(random.Philox(counter=[*words[:2], 0, 0], key=[words[2], 0]))
    shape = parameters[0].shape
    numbers = _DRAWS[kind](generator, *[x.reshape(-1) for x in parameters])
    return numbers.reshape(shape).astype(dtype.dtype)


def _sampled_infer(
    low: TensorSpec, high: TensorSpec, key: TensorSpec, *parameters: TensorSpec, kind: str, dtype: DType
) -> TensorSpec:
    check_state(low, high, key)
    if parameters[0].dtype.kind not in "iuf":
        raise DTypeError(f"{kind} numbers have real parameters, not {parameters[0].dtype.name}; use df.cast.")
    return TensorSpec.of(parameters[0].shape, dtype)


def _sample(kind: str, dtype: DType, *parameters: Domain) -> Sample:
    return Sample((*state_sample(5, 3, 1), *parameters), {"kind": kind, "dtype": dtype})


def _domain(low: float, high: float) -> Domain:
    return Domain(low, high, "f", (2, 3))


SAMPLED: Final = register(
    Op(
        name="philox_sampled",
        doc="""Random numbers of a distribution, by NumPy's generator from a counter and a key.""",
        infer=_sampled_infer,
        kernel=_sampled,
        kind=_KIND,
        samples=(
            _sample("gamma", float32, _domain(0.1, 5)),
            _sample("poisson", int32, _domain(0, 50)),
            _sample("binomial", int32, _domain(0, 50), _domain(0, 1)),
            _sample("bounded normal", float64, _domain(-4, 0), _domain(1, 5)),
        ),
    )
)


def sampled(state: DrawState, kind: str, shape: Any, dtype: DType, *parameters: Any) -> Tensor:
    """Random numbers of a distribution, whose parameters are broadcast to ``shape``."""
    wide = [broadcast_to(convert_to_tensor(x), shape) for x in parameters]
    return dispatch.current().apply(SAMPLED, (*state, *wide), {"kind": kind, "dtype": dtype})


def gammas(state: DrawState, shape: Any, alpha: Any, beta: Any, dtype: DType) -> Tensor:
    """Gamma numbers; those that the dtype would round to 0 are its least normal number."""
    numbers = sampled(state, "gamma", shape, dtype, convert_to_tensor(alpha, dtype_hint=dtype))
    numbers = numbers if beta is None else numbers / cast(beta, dtype)
    return maximum(numbers, float(np.finfo(numbers.dtype.dtype).tiny))


def binomials(state: DrawState, shape: Any, counts: Any, probabilities: Any, dtype: DType) -> Tensor:
    """Numbers of binomial distributions: the successes in ``counts`` trials."""
    probabilities = convert_to_tensor(probabilities, dtype_hint=float32)
    return sampled(state, "binomial", shape, dtype, cast(counts, float64), probabilities)
