"""Samples of classes, and the mean number of occurrences of a class in a sample."""

from __future__ import annotations

import math
import os
import threading
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import float32, int32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import NamedTuple, dataclass
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.comparison import equal
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, fill, ones_like
from dualflow.ops.docstrings import documented
from dualflow.ops.masking import WHERE_TRUE
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.positions import range as range_of
from dualflow.ops.random_numbers.draws import Source
from dualflow.ops.random_numbers.streams import stream
from dualflow.ops.record import Effect, Op, register
from dualflow.ops.shapes import shape as shape_tensor
from dualflow.ops.static import static_float, static_int, static_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

Array = np.ndarray[Any, Any]


_SAMPLER: Final = """Args:
    true_classes: integers of shape ``(batch, num_true)``, whose expected counts are returned.
    num_true: the number of true classes of each row.
    num_sampled: the number of classes to sample.
    unique: whether a class is sampled once at most.
    {classes}
    seed: an integer for a stream of its own; None for the shared stream.

Returns:
    A named tuple: ``sampled_candidates``, int64 of shape ``(num_sampled,)``; ``true_expected_count``, float32
    with the shape of ``true_classes``, and ``sampled_expected_count``, float32 of shape ``(num_sampled,)``:
    the mean number of occurrences of these classes in a sample.

Raises:
    InvalidArgumentError: {invalid}.
"""
_RANGE: Final = {
    "classes": "range_max: the number of classes.",
    "invalid": "``num_sampled`` or ``range_max`` is below 1, or there are too few distinct classes",
}


class Candidates(NamedTuple):
    """A sample of classes, and the mean number of occurrences of classes in such a sample."""

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


class AccidentalHits(NamedTuple):
    """Sampled classes that are true: row, position in the sample, and a weight that masks the logit."""

    indices: Tensor
    ids: Tensor
    weights: Tensor


class _Distribution(Protocol):
    """A distribution of classes."""

    def draw(self, generator: np.random.Generator, count: int) -> Array:
        """``count`` classes, int64."""
        ...

    def probabilities(self, classes: Array) -> Array:
        """The probability of each class."""
        ...

    def update(self, classes: Array) -> None:
        """Count true classes, if the distribution depends on them."""
        ...

    @property
    def distinct(self) -> int:
        """The number of classes that may be drawn."""
        ...


@dataclass(frozen=True, slots=True)
class _Zipf:
    """Zipf's law: class ``c`` has the probability ``log((c + 2) / (c + 1)) / log(distinct + 1)``."""

    distinct: int

    def draw(self, generator: np.random.Generator, count: int) -> Array:
        powers = np.exp(generator.random(count) * math.log(self.distinct + 1))
        return (powers.astype(np.int64) - 1) % self.distinct

    def probabilities(self, classes: Array) -> Array:
        return np.log1p(1.0 / (classes + 1.0)) / math.log(self.distinct + 1)

    def update(self, classes: Array) -> None:
        """Does nothing: Zipf's law is fixed."""


@dataclass(frozen=True, slots=True)
class _Uniform:
    """The uniform distribution of classes."""

    distinct: int

    def draw(self, generator: np.random.Generator, count: int) -> Array:
        return generator.integers(0, self.distinct, count)

    def probabilities(self, classes: Array) -> Array:
        return np.full(classes.shape, 1.0 / self.distinct)

    def update(self, classes: Array) -> None:
        """Does nothing: all classes stay equally likely."""


@dataclass(frozen=True, slots=True)
class _Weighted:
    """A distribution in proportion to a fixed weight for each class."""

    weights: tuple[float, ...]

    @property
    def distinct(self) -> int:
        return sum(weight > 0 for weight in self.weights)

    def draw(self, generator: np.random.Generator, count: int) -> Array:
        ends = np.cumsum(self.weights)
        return np.searchsorted(ends, generator.random(count) * ends[-1], side="right").astype(np.int64)

    def probabilities(self, classes: Array) -> Array:
        weights = np.array(self.weights)
        inside = (classes >= 0) & (classes < len(weights))
        return np.where(inside, weights[np.where(inside, classes, 0)] / weights.sum(), 0.0)

    def update(self, classes: Array) -> None:
        """Does nothing: the weights are fixed."""


class _Counted:
    """A distribution in proportion to how often each class has been true, plus 1."""

    def __init__(self, classes: int) -> None:
        self._counts = np.ones(classes)
        self._lock = threading.Lock()

    @property
    def distinct(self) -> int:
        return len(self._counts)

    def _now(self) -> _Weighted:
        with self._lock:
            return _Weighted(tuple(self._counts.tolist()))

    def draw(self, generator: np.random.Generator, count: int) -> Array:
        return self._now().draw(generator, count)

    def probabilities(self, classes: Array) -> Array:
        return self._now().probabilities(classes)

    def update(self, classes: Array) -> None:
        valid = classes[(classes >= 0) & (classes < len(self._counts))]
        with self._lock:
            np.add.at(self._counts, valid, 1.0)


def _draw_candidates(
    true: Array, count: int, unique: bool, distribution: _Distribution, generator: Source
) -> Any:
    philox = generator.philox
    drawn = distribution.draw(philox, 2 * count)
    tries = count
    if unique:
        while len(first := np.unique(drawn, return_index=True)[1]) < count:
            drawn = np.append(drawn, distribution.draw(philox, 2 * count))
        indices = np.sort(first)[:count]
        sampled, tries = drawn[indices], int(indices[-1]) + 1
    else:
        sampled = drawn[:count]

    def expected(classes: Array) -> Array:
        probability = distribution.probabilities(classes)
        if tries == count:
            return (probability * tries).astype(np.float32)
        return (-np.expm1(tries * np.log1p(-probability))).astype(np.float32)

    result = sampled, expected(true), expected(sampled)
    distribution.update(true)
    return result


def _infer(true: TensorSpec, count: int, **attrs: Any) -> tuple[TensorSpec, ...]:
    sample = Shape([count])
    return TensorSpec.of(sample, int64), TensorSpec.of(true.shape, float32), TensorSpec.of(sample, float32)


SAMPLE: Final = register(
    Op(
        name="candidate_sample",
        doc="""Sampled classes, and the expected counts of the true and of the sampled classes.""",
        infer=_infer,
        kernel=_draw_candidates,
        kind=Opaque("random numbers come from NumPy's generators"),
        effect=Effect.RANDOM,
        outputs=3,
    )
)


def _sample(
    true_classes: Any, num_sampled: Any, unique: bool, distribution: _Distribution, seed: int | None
) -> Candidates:
    count = static_int(num_sampled, "num_sampled")
    if count < 1 or (unique and count > distribution.distinct):
        raise InvalidArgumentError(
            f"A sample of {count} classes can't be drawn from {distribution.distinct}; give num_sampled "
            "from 1 to "
            "the number of classes."
        )
    attrs = {"count": count, "unique": bool(unique), "distribution": distribution, "generator": stream(seed)}
    return Candidates(*dispatch.current().apply(SAMPLE, (cast(true_classes, int64),), attrs))


def _classes(range_max: Any) -> int:
    count = static_int(range_max, "range_max")
    if count < 1:
        raise InvalidArgumentError(f"range_max is the number of classes, 1 or more, not {count}.")
    return count


@documented(_SAMPLER, **_RANGE)
def log_uniform_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """A sample of classes that are sorted by falling frequency, drawn by Zipf's law.

    >>> import dualflow as df
    >>> sampled, true_counts, _ = df.random.log_uniform_candidate_sampler([[0], [9]], 1, 5, True, 10)
    >>> sampled.shape, bool(true_counts[0, 0] > true_counts[1, 0])
    ((5,), True)
    """
    return _sample(true_classes, num_sampled, unique, _Zipf(_classes(range_max)), seed)


@documented(_SAMPLER, **_RANGE)
def uniform_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """A sample of classes with equal probabilities.

    >>> import dualflow as df
    >>> sample = df.random.uniform_candidate_sampler([[0], [9]], 1, 5, False, 10)
    >>> sample.true_expected_count.numpy().tolist()
    [[0.5], [0.5]]
    """
    return _sample(true_classes, num_sampled, unique, _Uniform(_classes(range_max)), seed)


def fixed_unigram_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """A sample of classes with listed weights; see :func:`log_uniform_candidate_sampler`.

    Args:
        true_classes: integers of shape ``(batch, num_true)``, whose expected counts are returned.
        num_true: the number of true classes of each row.
        num_sampled: the number of classes to sample.
        unique: whether a class is sampled once at most.
        range_max: the number of classes.
        vocab_file: the path of a file with a line for each class, whose last field after a comma is its
            weight.
        distortion: the exponent of the weights: 0 makes them equal.
        num_reserved_ids: the number of first classes that are never sampled.
        num_shards: the number of shards of the list of weights: every ``num_shards``-th is used.
        shard: the index of the first weight used.
        unigrams: the weights, instead of a file.
        seed: an integer for a stream of its own; None for the shared stream.

    Returns:
        A named tuple as of :func:`log_uniform_candidate_sampler`.

    Raises:
        InvalidArgumentError: there isn't one weight of 0 or more for each class, or no sample of this size
            exists.
        DTypeError: ``vocab_file`` is not a path.

    >>> import dualflow as df
    >>> f = df.nn.fixed_unigram_candidate_sampler
    >>> f([[0, 1]], 2, 1, False, 2, unigrams=[1.0, 3.0]).true_expected_count.numpy().tolist()
    [[0.25, 0.75]]
    """
    if not isinstance(vocab_file, str | os.PathLike):
        raise DTypeError(f"vocab_file is the path of a file, not {vocab_file!r}.")
    listed = _weights_of(vocab_file) if vocab_file else _floats(unigrams, "unigrams")
    distortion = static_float(distortion, "distortion")
    num_reserved_ids = static_int(num_reserved_ids, "num_reserved_ids")
    num_shards, shard = static_int(num_shards, "num_shards"), static_int(shard, "shard")
    if num_shards < 1:
        raise InvalidArgumentError(f"num_shards is 1 or more, not {num_shards}.")
    weights = ([0.0] * num_reserved_ids + [weight**distortion for weight in listed])[shard::num_shards]
    if len(weights) != _classes(range_max) or min(weights) < 0 or not 0 <= shard < num_shards:
        raise InvalidArgumentError(
            f"{len(weights)} weights, with {num_reserved_ids} reserved classes, shard {shard} of "
            f"{num_shards}, are "
            f"not one of 0 or more for each of range_max={range_max} classes."
        )
    return _sample(true_classes, num_sampled, unique, _Weighted(tuple(weights)), seed)


def _floats(numbers: Any, what: str) -> list[float]:
    values = static_value(numbers)
    if values is None or len(values.shape) != 1 or values.dtype.kind not in "iufV":
        raise DTypeError(f"{what} is a list of numbers, not {numbers!r}.")
    return [float(value) for value in values]


def _weights_of(path: str | os.PathLike[str]) -> list[float]:
    with open(path, encoding="utf-8") as lines:
        return [float(line.rpartition(",")[2]) for line in lines if line.strip()]


_COUNTED: Final[dict[tuple[int, int | None], _Counted]] = {}


@documented(_SAMPLER, **_RANGE)
def learned_unigram_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """A sample of classes whose probabilities are learned from the true classes of earlier calls.

    The probability of a class is proportional to the number of times it was true, plus 1, in all calls with
    the same ``range_max`` and ``seed``.

    >>> import dualflow as df
    >>> sample = df.nn.learned_unigram_candidate_sampler([[0]], 1, 2, True, 3)
    >>> sample.sampled_candidates.shape
    (2,)
    """
    classes = _classes(range_max)
    seed = None if seed is None else static_int(seed, "seed")
    counted = _COUNTED.setdefault((classes, seed), _Counted(classes))
    return _sample(true_classes, num_sampled, unique, counted, seed)


def all_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """All ``num_sampled`` classes, to compare the results of another sampler with.

    Args:
        true_classes: integers of shape ``(batch, num_true)``.
        num_true: the number of true classes of each row.
        num_sampled: the number of classes.
        unique: ignored: each class occurs once.
        seed: ignored: nothing is drawn.

    Returns:
        A named tuple as of :func:`log_uniform_candidate_sampler`; all expected counts are 1.

    Raises:
        InvalidArgumentError: ``num_sampled`` is below 1.

    >>> import dualflow as df
    >>> df.nn.all_candidate_sampler([[1]], 1, 3, True).sampled_candidates.numpy().tolist()
    [0, 1, 2]
    """
    sampled = cast(range_of(_classes(num_sampled)), int64)
    return Candidates(sampled, ones_like(cast(true_classes, float32)), ones_like(cast(sampled, float32)))


def compute_accidental_hits(
    true_classes: TensorLike,
    sampled_candidates: TensorLike,
    num_true: int,
    seed: int | None = None,
    name: str | None = None,
) -> AccidentalHits:
    """The sampled classes that are among the true classes of a row.

    Args:
        true_classes: integers of shape ``(batch, num_true)``.
        sampled_candidates: integers of shape ``(num_sampled,)``.
        num_true: the number of true classes of each row.
        seed: ignored: nothing is drawn.

    Returns:
        A named tuple with an element for each hit: ``indices``, int32, its row; ``ids``, int64, its position
        in the sample; ``weights``, the lowest float32, to be added to the logit there.

    Raises:
        InvalidArgumentError: ``true_classes`` can't be reshaped to rows of ``num_true``.

    >>> import dualflow as df
    >>> indices, ids, _ = df.nn.compute_accidental_hits([[1, 2], [3, 7]], [1, 3, 5], 2)
    >>> indices.numpy().tolist(), ids.numpy().tolist()
    ([0, 1], [0, 1])
    """
    true = reshape(cast(true_classes, int64), [-1, num_true])
    hit = equal(expand_dims(true, 2), cast(convert_to_tensor(sampled_candidates), int64))
    indices = dispatch.current().apply(WHERE_TRUE, (hit,), {})
    weights = fill(shape_tensor(indices)[:1], float32.min)
    return AccidentalHits(cast(indices[:, 0], int32), indices[:, 2], weights)
