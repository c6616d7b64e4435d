"""Losses over many classes that look at a sample of them, and how the sample is drawn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import float32, int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.choice import where
from dualflow.ops.comparison import equal
from dualflow.ops.contraction import matmul
from dualflow.ops.conversion import cast, stop_gradient
from dualflow.ops.creation import convert_to_tensor, ones_like, zeros_like
from dualflow.ops.exponential import expm1, log1p
from dualflow.ops.forms import Opaque
from dualflow.ops.joining import concat
from dualflow.ops.neural.losses import sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits
from dualflow.ops.powers import log
from dualflow.ops.random_numbers.draws import Source
from dualflow.ops.random_numbers.streams import stream
from dualflow.ops.record import Effect, Op, register
from dualflow.ops.reduction import reduce_any
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor

_HIT: Final = -1e37
"""What is added to the logit of a sampled class that is a true one: its share vanishes."""


class Candidates(NamedTuple):
    """A sample of classes, and how often it holds a class on average."""

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


def _drawn(count: int, classes: int, unique: bool, generator: Source) -> Any:
    """The sampled classes, and after them how many were drawn for it."""
    scale = math.log(classes + 1)

    def more() -> Any:
        return (np.exp(generator.philox.random(2 * count) * scale).astype(np.int64) - 1) % classes

    found = more()
    if not unique:
        return np.append(found[:count], count)
    while len(first := np.unique(found, return_index=True)[1]) < count:
        found = np.append(found, more())
    places = np.sort(first)[:count]
    return np.append(found[places], places[-1] + 1 if count else 0)


LOG_UNIFORM: Final = register(
    Op(
        name="log_uniform_classes",
        doc="""Classes whose chance falls as ``1 / (class + 1)``, and how many were drawn to find them.""",
        infer=lambda count, classes, unique, generator: TensorSpec.of(Shape([count + 1]), int64),
        kernel=_drawn,
        form=Opaque("random numbers come from NumPy's generators"),
        effect=Effect.RANDOM,
    )
)


def _log_uniform(
    generator: Source, true_classes: Any, num_sampled: int, unique: bool, range_max: int
) -> Candidates:
    """A sample of the classes below ``range_max``, by Zipf's law: class ``c`` has the chance
    ``log((c + 2) / (c + 1)) / log(range_max + 1)``.

    Raises:
        InvalidArgumentError: a sample that is empty, or larger than the classes it is to find once each.
    """
    if num_sampled < 1 or (unique and num_sampled > range_max):
        raise InvalidArgumentError(
            f"A sample of {num_sampled} classes can't be drawn from {range_max}; give num_sampled from 1 to "
            "the number of classes."
        )
    attrs = {"count": num_sampled, "classes": range_max, "unique": unique, "generator": generator}
    found = dispatch.current().apply(LOG_UNIFORM, (), attrs)
    sampled, tries = found[:-1], cast(found[-1], float32)

    def expected(classes: Any) -> Tensor:
        chance = log1p(1.0 / (cast(classes, float32) + 1.0)) / math.log(range_max + 1)
        return where(equal(tries, float(num_sampled)), chance * tries, -expm1(tries * log1p(-chance)))

    return Candidates(sampled, expected(true_classes), expected(sampled))


def log_uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: Any = None,
) -> Candidates:
    """A sample of classes that are sorted by how common they are, by Zipf's law.

    Args:
        true_classes: integers ``[batch, num_true]``, of which the expected counts are wanted too.
        num_true: the number of true classes of each row.
        num_sampled: how many classes to sample.
        unique: whether a class is sampled once at most.
        range_max: the number of classes.
        seed: a stream of its own for the calls with this seed.
        name: ignored; as in TensorFlow.

    Returns:
        ``(sampled_candidates, true_expected_count, sampled_expected_count)``: classes ``[num_sampled]``, and
        how often a sample holds the true and the sampled classes on average.

    Raises:
        InvalidArgumentError: no sample of this size can be drawn.

    >>> import dualflow as df
    >>> sampled, true_counts, _ = df.random.log_uniform_candidate_sampler([[0], [9]], 1, 5, True, 10)
    >>> sampled.shape, bool(true_counts[0, 0] > true_counts[1, 0])
    ((5,), True)
    """
    return _log_uniform(stream(seed), true_classes, num_sampled, unique, range_max)


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    name: str = "nce_loss",
) -> Tensor:
    """The noise-contrastive loss of each row, for more classes than a loss can look at.

    Each true class is told from a sample of the others: see Gutmann and Hyvärinen, "Noise-contrastive
    estimation", 2010. Classes are sampled as if they were sorted by how common they are.

    Args:
        weights: ``[num_classes, dim]``.
        biases: ``[num_classes]``.
        labels: integers ``[batch, num_true]``, the true classes.
        inputs: ``[batch, dim]``.
        num_sampled: how many classes to sample.
        num_classes: how many there are.
        num_true: the number of true classes of each row.
        sampled_values: a sample; by default :func:`dualflow.random.log_uniform_candidate_sampler` draws one.
        remove_accidental_hits: whether sampled classes that are true in a row don't count there.
        name: ignored; as in TensorFlow.

    Returns:
        Floats ``[batch]``.

    Raises:
        InvalidArgumentError: the sample is larger than the number of classes.

    >>> import dualflow as df
    >>> df.nn.nce_loss(df.ones([50, 8]), df.zeros([50]), [[3], [7]], df.ones([2, 8]), 5, 50).shape
    (2,)
    """
    sample = sampled_values or log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes)
    labels = reshape(labels, [-1, num_true])
    logits, wanted = _sampled_logits(
        weights, biases, labels, inputs, Candidates(*sample), remove_accidental_hits
    )
    return reduce_sum(sigmoid_cross_entropy_with_logits(wanted, logits), axis=1)


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    seed: int | None = None,
    name: str = "sampled_softmax_loss",
) -> Tensor:
    """The softmax cross entropy of each row over its true classes and a sample of the others.

    The arguments are those of :func:`nce_loss`, and a ``seed`` for the sample. It is for training; evaluate
    with the softmax over all classes.

    >>> import dualflow as df
    >>> df.nn.sampled_softmax_loss(df.ones([50, 8]), df.zeros([50]), [[3], [7]], df.ones([2, 8]), 5, 50).shape
    (2,)
    """
    sample = sampled_values or log_uniform_candidate_sampler(
        labels, num_true, num_sampled, True, num_classes, seed
    )
    labels = reshape(labels, [-1, num_true])
    logits, wanted = _sampled_logits(
        weights, biases, labels, inputs, Candidates(*sample), remove_accidental_hits
    )
    return softmax_cross_entropy_with_logits(stop_gradient(wanted), logits)


def _sampled_logits(
    weights: Any, biases: Any, labels: Any, inputs: Any, candidates: Candidates, remove_hits: bool
) -> tuple[Tensor, Tensor]:
    """The logits of true and of sampled classes, less the logs of their expected counts; and the labels.

    Both are ``[batch, num_true + num_sampled]``.
    """
    inputs, labels = convert_to_tensor(inputs), cast(labels, int64)
    sampled = candidates.sampled_candidates
    true_weights = gather(weights, labels)  # [batch, num_true, dim]
    true = reduce_sum(expand_dims(inputs, 1) * true_weights, axis=2) + gather(biases, labels)
    others = matmul(inputs, gather(weights, sampled), transpose_b=True) + gather(biases, sampled)
    if remove_hits:
        hit = reduce_any(equal(expand_dims(labels, 2), reshape(sampled, [1, 1, -1])), axis=1)
        others = others + where(hit, _HIT, 0.0)
    true = true - log(reshape(candidates.true_expected_count, [-1, labels.shape[1]]))
    others = others - log(candidates.sampled_expected_count)
    shares = ones_like(true) / true.shape[1]
    return concat([true, others], axis=1), concat([shares, zeros_like(others)], axis=1)
