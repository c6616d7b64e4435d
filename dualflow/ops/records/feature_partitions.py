"""Ragged features of examples: values, and row lengths that partitions in other features describe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.convert import Array
from dualflow.core.errors import InvalidArgumentError

ROW_SPLITS: Final = "row_splits"
ROW_LENGTHS: Final = "row_lengths"
ROW_STARTS: Final = "row_starts"
ROW_LIMITS: Final = "row_limits"
VALUE_ROWIDS: Final = "value_rowids"
UNIFORM: Final = "uniform_row_length"
Partition = tuple[str, Any]
"""What describes the rows: one of the names above, and the key of the feature that has it, or the length."""


def keys_of(entry: Sequence[Any]) -> list[str]:
    """The keys of the features that an entry of a plan reads: its own, and those of its partitions."""
    key, _, _, shape, _ = entry
    return [key, *[part[1] for part in shape if isinstance(part, tuple) and part[0] != UNIFORM]]


def ragged(
    values: Any, key: str, partitions: Sequence[Partition], values_of: Callable[[str], Any]
) -> list[Array]:
    """The values of a ragged feature of several examples, and the row lengths of each ragged axis.

    Args:
        values: the column of the values.
        key: its key, for errors.
        partitions: the outermost first.
        values_of: the column of a partition, by its key.

    Returns:
        The values, the row lengths of the innermost axis, and so on; the last are the lengths of rows that
        are examples.

    Raises:
        InvalidArgumentError: a partition doesn't have as many values as there are.
    """
    counts, levels = values.counts, []
    for kind, where in reversed(partitions):
        described = None if kind == UNIFORM else _split(values_of(where))
        lengths = [
            _lengths(kind, where if described is None else described[i], int(count), key)
            for i, count in enumerate(counts.tolist())
        ]
        levels.append(np.concatenate([np.zeros(0, np.int64), *lengths]))
        counts = np.array([len(x) for x in lengths], np.int64)
    return [values.values, *levels, counts]


def _split(column: Any) -> list[Array]:
    """The values of each example."""
    return np.split(column.values, np.cumsum(column.counts)[:-1])


def _lengths(kind: str, described: Any, count: int, key: str) -> Array:
    """The row lengths of ``count`` values."""
    if kind == UNIFORM:
        lengths = np.full(count // described if described else 0, described)
    elif kind == ROW_SPLITS:
        lengths = np.diff(described)
    elif kind == ROW_STARTS:
        lengths = np.diff(described, append=count)
    elif kind == ROW_LIMITS:
        lengths = np.diff(described, prepend=0)
    elif kind == VALUE_ROWIDS:
        lengths = np.bincount(described) if described.size and described.min() >= 0 else np.zeros(0)
    else:
        lengths = described
    if lengths.sum() != count or lengths.min(initial=0) < 0:
        raise InvalidArgumentError(
            f"Key: {key}. Its {kind} are for {int(lengths.sum())} values, but an example has {count}; they "
            "describe other rows."
        )
    return lengths.astype(np.int64)
