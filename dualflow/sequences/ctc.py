"""Connectionist temporal classification: the loss of a sequence whose labels aren't aligned with its steps.

Graves et al., "Connectionist temporal classification", 2006. The probability of the labels is a sum over
all paths through them and the blanks between, which one loop over the steps adds up, in logarithms.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core.dtypes import float16, float32, int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.function.control.maps import foldl
from dualflow.ops.arithmetic import maximum
from dualflow.ops.arrangement import expand_dims, reshape, transpose
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import equal, less, logical_and, logical_or, not_equal
from dualflow.ops.conversion import cast, stop_gradient
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.exponential import exp
from dualflow.ops.joining import concat, stack
from dualflow.ops.neural.activations import log_softmax
from dualflow.ops.positions import range as range_of
from dualflow.ops.powers import log
from dualflow.ops.repetition import pad
from dualflow.ops.selection import where
from dualflow.ops.sparse.dense import to_dense
from dualflow.ops.sparse.sparse_tensor import SparseTensor
from dualflow.ops.static import static_int
from dualflow.ops.statistics import as_float, reduce_logsumexp
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import axis_size

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

_UNLIKELY: Final = math.log(np.finfo(np.float64).tiny)
"""The log-probability of beginning or ending in another state: labels that don't fit have a finite loss."""
_NEVER: Final = -1e30
"""The log-probability of a step that no path takes; finite, since differences of infinities are nan."""


@entry
def ctc_loss(
    labels: TensorLike,
    logits: TensorLike,
    label_length: TensorLike,
    logit_length: TensorLike,
    logits_time_major: bool = True,
    unique: TensorLike | None = None,
    blank_index: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Minus the log-probability of the labels of each sequence of logits, over all alignments with its steps.

    Args:
        labels: integers ``[batch, most labels]``, or a SparseTensor of them.
        logits: floats ``[steps, batch, classes]``, of one step or more.
        label_length: how many labels each sequence has, integers ``[batch]``; ignored for a SparseTensor.
        logit_length: how many steps each sequence has, integers ``[batch]``.
        logits_time_major: False for logits ``[batch, steps, classes]``.
        unique: ignored: it makes no difference to the result.
        blank_index: the class that stands between labels: 0 by default, and below 0 counted from the last. It
            must be given with a SparseTensor.
        name: ignored; as in TensorFlow.

    Returns:
        Losses ``[batch]`` in the dtype of the logits; for float16 they are computed in float32. Where the
        labels do not fit into the steps it is about 700.

    Raises:
        OutOfRangeError: a label is no class.
        InvalidArgumentError: shapes that do not match, or no ``blank_index`` with a SparseTensor.

    >>> import dualflow as df
    >>> logits = df.zeros([2, 1, 3])  # two steps of three equal classes
    >>> probability = 3 / 9  # (1, 1), (blank, 1) and (1, blank)
    >>> bool(abs(df.nn.ctc_loss([[1]], logits, [1], [2])[0] - -df.math.log(probability)) < 1e-6)
    True
    """
    x = as_float(logits)
    if len(x.shape) != 3 or x.shape[2] is None:
        raise InvalidArgumentError(
            f"ctc_loss takes logits [steps, batch, classes], with known classes, not shape {x.shape}."
        )
    x = x if logits_time_major else transpose(x, (1, 0, 2))
    if isinstance(labels, SparseTensor):
        if blank_index is None:
            raise InvalidArgumentError("ctc_loss needs blank_index with a SparseTensor; TensorFlow's is -1.")
        ones = labels.with_values(equal(labels.values, labels.values))
        label_length = reduce_sum(cast(to_dense(ones), int32), 1)
        labels = to_dense(labels)
    ids, classes = cast(convert_to_tensor(labels), int32), x.shape[2]
    blank = static_int(0 if blank_index is None else blank_index, "blank_index")
    blank += classes if blank < 0 else 0
    if not 0 <= blank < classes:
        raise InvalidArgumentError(f"blank_index {blank_index} is outside of the {classes} classes.")
    lengths, steps = _lengths(label_length, "label_length"), _lengths(logit_length, "logit_length")
    batch = {n for n in (*ids.shape[:1], *lengths.shape, *steps.shape, x.shape[1]) if n is not None}
    if len(ids.shape) != 2 or len(batch) > 1:
        raise InvalidArgumentError(
            f"labels of shape {ids.shape}, lengths {lengths.shape} and {steps.shape} and logits of shape "
            f"{x.shape}, steps first, are not of one batch."
        )
    wide = cast(x, float32) if x.dtype is float16 else x
    return cast(-_likelihood(wide, ids, lengths, steps, blank), x.dtype)


def _lengths(value: Any, what: str) -> Any:
    lengths = convert_to_tensor(value)
    if len(lengths.shape) != 1:
        raise InvalidArgumentError(f"{what} has an integer for each sequence, not shape {lengths.shape}.")
    return cast(lengths, int32)


def _likelihood(x: Any, ids: Any, lengths: Any, steps: Any, blank: int) -> Any:
    """The log-probability by a recursion over CTC states: blank, label, blank, label, ..., blank."""
    count = axis_size(ids, 1)
    ids = where(less(range_of(count), expand_dims(lengths, 1)), ids, blank)
    pairs = reshape(stack([zeros_like(ids) + blank, ids], -1), [axis_size(ids, 0), 2 * count])
    states = concat([pairs, zeros_like(expand_dims(lengths, 1)) + blank], 1)
    within = less(expand_dims(range_of(axis_size(x, 0)), 1), expand_dims(steps, 0))
    scores = log_softmax(where(expand_dims(within, 2), x, 0.0))  # a nan in padding would reach the gradient
    by_batch = gather(transpose(scores, (1, 2, 0)), states, axis=1, batch_dims=1)
    shown = transpose(by_batch, (2, 0, 1))  # [steps, batch, states]: how likely a state's class is
    size = 2 * count + 1
    at = range_of(size)
    # A blank follows a blank two states before; so does no label but one that repeats.
    skips = logical_and(less(1, at), not_equal(states, _moved(states, 2, size, 0)))
    begins = where(less(at, 2), convert_to_tensor(0.0, x.dtype), _UNLIKELY)
    ends = expand_dims(2 * lengths, 1)
    last = where(logical_or(equal(at, ends), equal(at, ends - 1)), convert_to_tensor(0.0, x.dtype), _UNLIKELY)

    def advance(reached: Any, row: Any) -> Any:
        emitted, step = row
        one = _moved(reached, 1, size, _NEVER)
        two = where(skips, _moved(reached, 2, size, _NEVER), _NEVER)
        highest = stop_gradient(maximum(maximum(reached, one), two))
        total = exp(reached - highest) + exp(one - highest) + exp(two - highest)
        return where(expand_dims(less(step, steps), 1), highest + log(total) + emitted, reached)

    first = where(expand_dims(less(0, steps), 1), begins + shown[0], begins)
    reached = foldl(advance, (shown[1:], range_of(axis_size(shown, 0))[1:]), initializer=first)
    return reduce_logsumexp(reached + last, 1)


def _moved(states: Any, by: int, size: Any, first: Any) -> Any:
    """The values ``by`` states before, for each of ``size`` states; ``first`` where there are none."""
    return pad(states, [[0, 0], [by, 0]], constant_values=first)[:, :size]
