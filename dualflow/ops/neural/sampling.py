"""Losses over many classes, computed from a sample of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualflow.core.dtypes import int64
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import equal
from dualflow.ops.contraction import matmul
from dualflow.ops.conversion import cast, stop_gradient
from dualflow.ops.creation import convert_to_tensor, ones_like, zeros_like
from dualflow.ops.joining import concat
from dualflow.ops.neural.candidates import Candidates, log_uniform_candidate_sampler
from dualflow.ops.neural.losses import sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits
from dualflow.ops.powers import log
from dualflow.ops.reduction import reduce_any
from dualflow.ops.selection import where
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

_EXCLUDED_LOGIT: Final = -1e37
"""A large negative number, added to the logits of sampled classes that are true, to exclude them."""


def nce_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Sequence[Tensor] | None = None,
    remove_accidental_hits: bool = False,
    name: str = "nce_loss",
) -> Tensor:
    """The noise-contrastive loss of each row: a cheap estimate of a loss over very many classes.

    Each true class is discriminated from a sample of other classes: see Gutmann and Hyvärinen,
    "Noise-Contrastive Estimation" (2010). Classes are sampled by Zipf's law, as if sorted by falling
    frequency.

    Args:
        weights: floats of shape ``(num_classes, dim)``.
        biases: floats of shape ``(num_classes,)``.
        labels: the true classes, integers of shape ``(batch, num_true)``.
        inputs: floats of shape ``(batch, dim)``.
        num_sampled: the number of classes to sample.
        num_classes: the number of classes.
        num_true: the number of true classes of each row.
        sampled_values: a sample; None to draw one by :func:`dualflow.random.log_uniform_candidate_sampler`.
        remove_accidental_hits: whether sampled classes that are true in a row are left out there.

    Returns:
        A loss for each row, floats of shape ``(batch,)``.

    Raises:
        InvalidArgumentError: the sample is larger than the number of classes.

    >>> import dualflow as df
    >>> df.nn.nce_loss(df.ones([50, 8]), df.zeros([50]), [[3], [7]], df.ones([2, 8]), 5, 50).shape
    (2,)
    """
    sample = sampled_values or log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes)
    labels = reshape(labels, [-1, num_true])
    logits, targets = _sampled_logits(
        weights, biases, labels, inputs, Candidates(*sample), remove_accidental_hits
    )
    return reduce_sum(sigmoid_cross_entropy_with_logits(targets, logits), axis=1)


def sampled_softmax_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Sequence[Tensor] | None = None,
    remove_accidental_hits: bool = True,
    seed: int | None = None,
    name: str = "sampled_softmax_loss",
) -> Tensor:
    """The softmax cross entropy of each row over its true classes and a sample of the others.

    Jean et al., "On Using Very Large Target Vocabulary for Neural Machine Translation" (2014). It is for
    training; evaluate with the softmax over all classes.

    Args:
        weights: floats of shape ``(num_classes, dim)``.
        biases: floats of shape ``(num_classes,)``.
        labels: the true classes, integers of shape ``(batch, num_true)``.
        inputs: floats of shape ``(batch, dim)``.
        num_sampled: the number of classes to sample.
        num_classes: the number of classes.
        num_true: the number of true classes of each row.
        sampled_values: a sample; None to draw one by :func:`dualflow.random.log_uniform_candidate_sampler`.
        remove_accidental_hits: whether sampled classes that are true in a row are left out there.
        seed: an integer for a stream of its own for the sample; None for the shared stream.

    Returns:
        A loss for each row, floats of shape ``(batch,)``.

    Raises:
        InvalidArgumentError: the sample is larger than the number of classes.

    >>> import dualflow as df
    >>> df.nn.sampled_softmax_loss(df.ones([50, 8]), df.zeros([50]), [[3], [7]], df.ones([2, 8]), 5, 50).shape
    (2,)
    """
    sample = sampled_values or log_uniform_candidate_sampler(
        labels, num_true, num_sampled, True, num_classes, seed
    )
    labels = reshape(labels, [-1, num_true])
    logits, targets = _sampled_logits(
        weights, biases, labels, inputs, Candidates(*sample), remove_accidental_hits
    )
    return softmax_cross_entropy_with_logits(stop_gradient(targets), logits)


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
    sampled_logits = matmul(inputs, gather(weights, sampled), transpose_b=True) + gather(biases, sampled)
    if remove_hits:
        hit = reduce_any(equal(expand_dims(labels, 2), reshape(sampled, [1, 1, -1])), axis=1)
        sampled_logits = sampled_logits + where(hit, _EXCLUDED_LOGIT, 0.0)
    true = true - log(reshape(candidates.true_expected_count, [-1, labels.shape[1]]))
    sampled_logits = sampled_logits - log(candidates.sampled_expected_count)
    probabilities = ones_like(true) / true.shape[1]
    return concat([true, sampled_logits], axis=1), concat([probabilities, zeros_like(sampled_logits)], axis=1)
