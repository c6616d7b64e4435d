"""Decodes class scores of steps to label sequences, and removes repetitions of labels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import int32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.ops.arrangement import expand_dims, transpose
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import equal, greater_equal, less, logical_and, not_equal
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import concat, stack
from dualflow.ops.masking import WHERE_TRUE
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.positions import range as range_of
from dualflow.ops.record import Op, register
from dualflow.ops.reduction import argmax, reduce_max, reduce_min
from dualflow.ops.samples import Domain, Sample, reals
from dualflow.ops.scans import cumsum
from dualflow.ops.scattering import gather_nd
from dualflow.ops.selection import where
from dualflow.ops.shapes import shape as shape_tensor
from dualflow.ops.sparse.sparse_tensor import SparseTensor
from dualflow.ops.static import static_int
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import axis_size

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, TensorLike
    from dualflow.ops.tensor import Tensor


def _scores(inputs: Any, what: str) -> Any:
    x = convert_to_tensor(inputs)
    if len(x.shape) != 3 or not x.dtype.is_floating or x.shape[2] is None:
        raise InvalidArgumentError(
            f"{what} takes float scores [steps, batch, classes], with known classes, not {x.dtype.name} "
            "of shape "
            f"{x.shape}."
        )
    return x


def _sparse(kept: Any, values: Any) -> SparseTensor:
    """The kept values of each row one after another."""
    rank = cumsum(cast(kept, int64), 1) - 1
    positions = dispatch.current().apply(WHERE_TRUE, (kept,), {})
    indices = stack([positions[:, 0], gather_nd(rank, positions)], 1)
    longest = reduce_max(concat([reduce_sum(cast(kept, int64), 1), convert_to_tensor([0], int64)], 0))
    sizes = stack([cast(shape_tensor(kept)[0], int64), longest])
    return SparseTensor(indices, gather_nd(values, positions), sizes)


def ctc_greedy_decoder(
    inputs: TensorLike,
    sequence_length: TensorLike,
    merge_repeated: bool = True,
    blank_index: IntLike | None = None,
    name: str | None = None,
) -> tuple[list[SparseTensor], Tensor]:
    """The labels of the best path: the most likely class of each step.

    Graves et al., "Connectionist Temporal Classification" (2006).

    Args:
        inputs: logits, floats of shape ``(steps, batch, classes)``.
        sequence_length: the number of steps of each sequence, integers of shape ``(batch,)``.
        merge_repeated: whether equal classes of consecutive steps are one label.
        blank_index: the class that is no label; None for the last. Below 0 it counts from the end.

    Returns:
        A list of one SparseTensor of int64 with shape ``(batch, most labels)``; and minus the sum of the
        largest logits, of shape ``(batch, 1)``.

    Raises:
        InvalidArgumentError: the shapes do not match, ``inputs`` doesn't hold floats, or ``blank_index`` is
            no class.

    >>> import dualflow as df
    >>> steps = df.one_hot([[0], [0], [2], [0], [1]], 3)
    >>> (decoded,), _ = df.nn.ctc_greedy_decoder(steps, [5])
    >>> decoded.values.numpy().tolist()
    [0, 0, 1]
    """
    x = _scores(inputs, "ctc_greedy_decoder")
    classes = x.shape[2]
    blank = static_int(classes - 1 if blank_index is None else blank_index, "blank_index")
    blank += classes if blank < 0 else 0
    if not 0 <= blank < classes:
        raise InvalidArgumentError(f"blank_index {blank_index} is outside of the {classes} classes.")
    best = transpose(argmax(x, 2))
    steps = expand_dims(convert_to_tensor(sequence_length), 1)
    in_sequence = less(cast(range_of(axis_size(x, 0)), steps.dtype), steps)
    kept = logical_and(in_sequence, not_equal(best, blank))
    if merge_repeated:
        kept = logical_and(kept, _changes(best))
    scores = reduce_sum(where(in_sequence, transpose(reduce_max(x, 2)), 0), 1, keepdims=True)
    return [_sparse(kept, best)], -scores


def _changes(ids: Any) -> Any:
    """Whether each element of a row differs from the one before."""
    first = equal(ids[:, :1], ids[:, :1])
    return concat([first, not_equal(ids[:, 1:], ids[:, :-1])], 1)


def collapse_repeated(
    labels: TensorLike, seq_length: TensorLike, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Label sequences with each run of equal labels replaced by one.

    Args:
        labels: integers of shape ``(batch, most labels)``.
        seq_length: the number of labels of each row, integers of shape ``(batch,)``.

    Returns:
        The labels, of shape ``(batch, most remaining labels)``, with 0 after the last of a row; and the
        number of labels of each row.

    Raises:
        InvalidArgumentError: ``labels`` is not a matrix.

    >>> import dualflow as df
    >>> labels, lengths = df.nn.collapse_repeated([[1, 1, 2], [3, 3, 0]], [3, 2])
    >>> labels.numpy().tolist(), lengths.numpy().tolist()
    ([[1, 2], [3, 0]], [2, 1])
    """
    ids, lengths = convert_to_tensor(labels), convert_to_tensor(seq_length)
    _check_matrix(ids, "collapse_repeated")
    at = range_of(ids.shape[1])
    kept = logical_and(less(cast(at, lengths.dtype), expand_dims(lengths, 1)), _changes(ids))
    counts = reduce_sum(cast(kept, lengths.dtype), 1)
    return _compact(ids, kept)[:, : cast(reduce_max(counts), int32)], counts


def _check_matrix(ids: Any, what: str) -> None:
    if len(ids.shape) != 2 or not ids.dtype.is_integer or ids.shape[1] is None:
        raise InvalidArgumentError(
            f"{what} takes integers [batch, labels], with a known number of labels, not {ids.dtype.name} "
            "of shape "
            f"{ids.shape}."
        )


def _compact(ids: Any, kept: Any) -> Any:
    """The selected elements of each row moved to its beginning, followed by 0."""
    rank = cumsum(cast(kept, int32), 1) - 1
    goes = logical_and(expand_dims(kept, 2), equal(expand_dims(rank, 2), range_of(ids.shape[1])))
    return reduce_sum(where(goes, expand_dims(ids, 2), 0), 1)


def ctc_unique_labels(labels: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The distinct labels of each row in order of occurrence, and the index of each label among them.

    Args:
        labels: integers of shape ``(batch, labels)``.

    Returns:
        The distinct labels, padded with 0, and the indices, int32; both of shape ``(batch, labels)``.

    Raises:
        InvalidArgumentError: ``labels`` is not a matrix.

    >>> import dualflow as df
    >>> distinct, indices = df.nn.ctc_unique_labels([[3, 4, 4, 3]])
    >>> distinct.numpy().tolist(), indices.numpy().tolist()
    ([[3, 4, 0, 0]], [[0, 1, 1, 0]])
    """
    ids = convert_to_tensor(labels)
    _check_matrix(ids, "ctc_unique_labels")
    count = ids.shape[1]
    same = equal(expand_dims(ids, 2), expand_dims(ids, 1))
    first = reduce_min(where(same, range_of(count), count), 2)
    kept = equal(first, range_of(count))
    rank = cumsum(cast(kept, int32), 1) - 1
    return _compact(ids, kept), gather(rank, first, axis=1, batch_dims=1)


# The search


def _search(scores: Any, lengths: Any, beam_width: int, top_paths: int) -> Any:
    """The most likely label sequences of each row, padded with -1, and their log-probabilities."""
    if scores.dtype.kind != "f" or lengths.dtype.kind not in "iu":
        raise TypeError("scores are floats and lengths integers")
    steps, batch, classes = scores.shape
    paths = np.full((top_paths, batch, steps), -1, np.int64)
    log_probabilities = np.full((batch, top_paths), -np.inf, scores.dtype)
    for row in range(batch):
        beams = _beams(scores[: lengths[row], row].astype(np.float64), classes - 1, beam_width)
        for path, (labels, log_probability) in enumerate(beams[:top_paths]):
            paths[path, row, : len(labels)] = labels
            log_probabilities[row, path] = log_probability
    return paths, log_probabilities


def _beams(scores: Any, blank: int, beam_width: int) -> list[tuple[tuple[int, ...], float]]:
    beams: dict[tuple[int, ...], tuple[float, float]] = {
        (): (0.0, -math.inf)
    }  # ends with a blank, with a label
    for step in scores:
        highest = step.max()
        logs = (step - highest - math.log(np.exp(step - highest).sum())).tolist()
        after: dict[tuple[int, ...], list[float]] = {}
        for prefix, (by_blank, by_label) in beams.items():
            either = _log_add(by_blank, by_label)
            _add(after, prefix, 0, either + logs[blank])
            last = prefix[-1] if prefix else -1
            for label, logarithm in enumerate(logs):
                if label == blank:
                    continue
                if label == last:
                    _add(after, prefix, 1, by_label + logarithm)
                _add(after, (*prefix, label), 1, (by_blank if label == last else either) + logarithm)
        best = sorted(after.items(), key=lambda item: -_log_add(*item[1]))[:beam_width]
        beams = {prefix: (ends[0], ends[1]) for prefix, ends in best}
    return [(prefix, _log_add(*ends)) for prefix, ends in beams.items()]


def _add(
    after: dict[tuple[int, ...], list[float]], prefix: tuple[int, ...], end: int, logarithm: float
) -> None:
    ends = after.setdefault(prefix, [-math.inf, -math.inf])
    ends[end] = _log_add(ends[end], logarithm)


def _log_add(x: float, y: float) -> float:
    high, low = (x, y) if x > y else (y, x)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


def _search_infer(
    scores: TensorSpec, lengths: TensorSpec, beam_width: int, top_paths: int
) -> tuple[TensorSpec, ...]:
    if not scores.dtype.is_floating or not lengths.dtype.is_integer:
        raise DTypeError(
            f"takes scores of floats and lengths of integers, not {scores.dtype.name} and "
            f"{lengths.dtype.name}; "
            "convert them with df.cast."
        )
    steps, batch, _ = scores.shape
    return (
        TensorSpec.of(Shape([top_paths, batch, steps]), int64),
        TensorSpec.of(Shape([batch, top_paths]), scores.dtype),
    )


SEARCH: Final = register(
    Op(
        name="ctc_beam_search",
        doc="""The most likely label sequences, by a beam search, and their log-probabilities.""",
        infer=_search_infer,
        kernel=_search,
        kind=Opaque("the beams are a dictionary of label sequences"),
        outputs=2,
        samples=(
            Sample(
                (reals(-3, 3, shape=(4, 2, 3)), Domain(0, 5, "i", (2,), values=np.array([4, 2]))),
                {"beam_width": 4, "top_paths": 2},
            ),
        ),
    )
)


@entry
def ctc_beam_search_decoder(
    inputs: TensorLike, sequence_length: TensorLike, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Tensor]:
    """The most likely label sequences, by a beam search over prefixes.

    Graves, "Supervised Sequence Labelling with Recurrent Neural Networks" (2012), chapter 7.5.

    Args:
        inputs: logits, floats of shape ``(steps, batch, classes)``; the last class is the blank.
        sequence_length: the number of steps of each sequence, integers of shape ``(batch,)``.
        beam_width: the number of prefixes to keep after each step.
        top_paths: the number of sequences to return.

    Returns:
        A list of SparseTensors of int64 with shape ``(batch, most labels)``, the most likely first; and the
        logarithms of their probabilities, of shape ``(batch, top_paths)``.

    Raises:
        InvalidArgumentError: the shapes do not match, ``inputs`` doesn't hold floats, or ``top_paths`` is
            above ``beam_width``.

    >>> import dualflow as df
    >>> steps = 9.0 * df.one_hot([[0], [2], [0]], 3)
    >>> (decoded,), _ = df.nn.ctc_beam_search_decoder(steps, [3])
    >>> decoded.values.numpy().tolist()
    [0, 0]
    """
    x = _scores(inputs, "ctc_beam_search_decoder")
    width, paths = static_int(beam_width, "beam_width"), static_int(top_paths, "top_paths")
    if not 1 <= paths <= width:
        raise InvalidArgumentError(
            f"top_paths is from 1 to beam_width, not {paths} of {width}; give a wider beam."
        )
    attrs = {"beam_width": width, "top_paths": paths}
    labels, log_probabilities = dispatch.current().apply(SEARCH, (x, cast(sequence_length, int32)), attrs)
    return [_sparse(greater_equal(labels[i], 0), labels[i]) for i in range(paths)], log_probabilities
