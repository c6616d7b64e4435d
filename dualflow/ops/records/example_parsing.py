"""The ops that parse serialised ``Example`` messages: a batch at a time, one NumPy call for each feature."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.convert import Array
from dualflow.core.dtypes import DType, float32, int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.string_arrays import string
from dualflow.ops.records.example_format import (
    EMPTY,
    FLOAT,
    INT64,
    STRING,
    FeatureValues,
    feature_values,
    features_of,
    message_field,
)
from dualflow.ops.records.feature_partitions import keys_of, ragged
from dualflow.ops.records.wire_format import delimited, varints
from dualflow.ops.samples import Sample
from dualflow.ops.text.mapping import filled, one_word, text_op, words

FIXED: Final = "fixed"
VARIABLE: Final = "variable"
SEQUENCE: Final = "sequence"
RAGGED: Final = "ragged"
_KINDS: Final = {string: STRING, float32: FLOAT, int64: INT64}
_TYPES: Final = {STRING: "string", FLOAT: "float", INT64: "int64"}
Entry = tuple[str, str, DType, tuple[Any, ...], bool]
"""A feature to parse: its key, ``FIXED``, ``VARIABLE``, ``SEQUENCE`` or ``RAGGED``, dtype, shape, and whether
it may be missing. A fixed or sequence feature that may be missing has a default or padding, an input of the
op. A ragged feature has its partitions in place of a shape."""


class Column(NamedTuple):
    """A feature of several examples.

    Attributes:
        values: the values of all examples.
        counts: the number of values of each example.
        present: whether each example has the feature.
    """

    values: Array
    counts: Array
    present: Array


def column(lists: Sequence[FeatureValues], key: str, dtype: DType) -> Column:
    """The values of a feature in each example, as one array.

    Raises:
        InvalidArgumentError: an example has values of another dtype.
    """
    kind = _KINDS[dtype]
    kinds = np.array([x.kind for x in lists], np.int64)
    wrong = np.flatnonzero((kinds != kind) & (kinds != 0))
    if wrong.size:
        raise InvalidArgumentError(
            f"Key: {key}, Index: {wrong[0]}. Data types don't match. Expected type: {_TYPES[kind]}, actual "
            f"type: {_TYPES[int(kinds[wrong[0]])]}."
        )
    contents = [x.content if x.kind else b"" for x in lists]
    sizes = np.array([len(x) for x in contents], np.int64)
    if kind == STRING:
        flat = [s for content in contents if content for s in content]
        return Column(filled(flat, (len(flat),)), sizes, kinds != 0)
    data = b"".join(contents)  # type: ignore[arg-type]  # numbers are bytes here
    if kind == FLOAT:
        return Column(np.frombuffer(data, "<f4").astype(np.float32), sizes // 4, kinds != 0)
    ends = np.concatenate([[0], np.cumsum(np.frombuffer(data, np.uint8) < 128)])
    counts = np.diff(ends[np.concatenate([[0], np.cumsum(sizes)])])
    try:
        return Column(varints(data), counts, kinds != 0)
    except ValueError as error:
        raise InvalidArgumentError(f"Key: {key}, Index: {_damaged(contents)}. {error}.") from None


def _damaged(contents: Sequence[Any]) -> int:
    """The index of the first example whose varints are damaged."""
    for index, content in enumerate(contents):
        try:
            varints(content)
        except ValueError:
            return index
    return len(contents)


def dense(values: Column, entry: Entry, default: Array | None) -> Array:
    """The values of a fixed feature, of shape ``[examples, *shape]``.

    Raises:
        InvalidArgumentError: an example has another number of values, or none without a default.
    """
    key, _, dtype, shape, _ = entry
    size = math.prod(shape)
    missing = np.flatnonzero(~values.present)
    if missing.size and default is None:
        raise InvalidArgumentError(
            f"Index: {missing[0]}. Feature: {key} (data type: {_TYPES[_KINDS[dtype]]}) is required but could "
            "not be found. Give it a default_value, or parse it as a VarLenFeature."
        )
    wrong = np.flatnonzero(values.present & (values.counts != size))
    if wrong.size:
        raise InvalidArgumentError(
            f"Key: {key}, Index: {wrong[0]}. Number of {_TYPES[_KINDS[dtype]]} values != expected. values "
            f"size: {values.counts[wrong[0]]} but output shape: {list(shape)}."
        )
    count = len(values.counts)
    if not missing.size:
        return values.values.reshape(count, *shape)
    result = np.empty((count, size), dtype.dtype)
    result[values.present] = values.values.reshape(-1, size)
    result[missing] = np.broadcast_to(np.asarray(default).reshape(-1), (size,))
    return result.reshape(count, *shape)


def padded(values: Column, entry: Entry, padding: Array | None) -> Array:
    """The values of a sequence feature, of shape ``[examples, steps, *shape]``, padded to the longest.

    Raises:
        InvalidArgumentError: a number of values is no multiple of a step's, or the feature is missing and
            may not be.
    """
    key, _, dtype, shape, _ = entry
    size = math.prod(shape)
    wrong = np.flatnonzero(values.counts % size) if size else np.flatnonzero(values.counts)
    if wrong.size:
        raise InvalidArgumentError(
            f"Key: {key}, Index: {wrong[0]}. Number of {_TYPES[_KINDS[dtype]]} values is not a multiple of "
            f"the step's. values size: {values.counts[wrong[0]]} but output shape: {list(shape)}."
        )
    missing = np.flatnonzero(~values.present)
    if missing.size and padding is None:
        raise InvalidArgumentError(
            f"Index: {missing[0]}. Feature: {key} is required but could not be found; it needs allow_missing."
        )
    steps = values.counts // max(size, 1)
    longest = int(steps.max(initial=0))
    fill = filled([b""], ()) if dtype.is_string else np.zeros((), dtype.dtype)
    result = np.empty((len(steps), longest, size), dtype.dtype)
    result[...] = fill if padding is None else padding
    result[np.arange(longest) < steps[:, None]] = values.values.reshape(-1, size)
    return result.reshape(len(steps), longest, *shape)


def sparse(values: Column) -> tuple[Array, Array, Array]:
    """The values of a variable feature: indices, values and shape ``[examples, longest]``."""
    counts = values.counts
    rows = np.repeat(np.arange(len(counts)), counts)
    starts = np.cumsum(counts) - counts
    indices = np.arange(len(rows)) - np.repeat(starts, counts)
    shape = np.array([len(counts), counts.max(initial=0)], np.int64)
    return np.stack([rows, indices], axis=1).astype(np.int64), values.values, shape


# ops


def _parsed(data: bytes, index: int, keys: dict[bytes, int], context: bool = False) -> list[FeatureValues]:
    """The lists of the features ``keys`` of an example, in their order."""
    lists = [EMPTY] * len(keys)
    try:
        for key, span in features_of(data, keys).items():
            lists[keys[key]] = feature_values(data, span)
    except ValueError as error:
        what = "sequence example" if context else "example"
        raise InvalidArgumentError(f"Could not parse {what} input, index {index}: {error}.") from None
    return lists


def _results(lists: Sequence[Sequence[FeatureValues]], plan: Sequence[Entry], defaults: Any) -> list[Any]:
    """The outputs for each feature of ``plan``; ``lists`` has those of each example."""
    outputs: list[Any] = []
    places = _keys(plan)

    def values_of(key: str, dtype: DType) -> Column:
        return column([row[places[key.encode()]] for row in lists], key, dtype)

    for entry in plan:
        key, kind, dtype, shape, optional = entry
        values = values_of(key, dtype)
        if kind == VARIABLE:
            outputs += sparse(values)
        elif kind == RAGGED:
            outputs += ragged(values, key, shape, lambda key: values_of(key, int64))
        else:
            assemble = dense if kind == FIXED else padded
            outputs.append(assemble(values, entry, next(defaults) if optional else None))
    return outputs


def _without_batch(outputs: Sequence[Any], plan: Sequence[Entry]) -> list[Any]:
    """The outputs for a batch of one example, as those of the example alone."""
    unbatched: list[Any] = []
    results = iter(outputs)
    for _, kind, _, shape, _ in plan:
        if kind == VARIABLE:
            unbatched += [next(results)[:, 1:], next(results), next(results)[1:]]
        elif kind == RAGGED:  # without the last, the lengths of rows that are examples
            unbatched += [next(results) for _ in range(len(shape) + 1)]
            next(results)
        else:
            unbatched.append(next(results)[0])
    return unbatched


def _keys(plan: Sequence[Entry]) -> dict[bytes, int]:
    keys = [key for entry in plan for key in keys_of(entry)]
    return {key.encode(): i for i, key in enumerate(dict.fromkeys(keys))}


def _parse(serialized: Array, *defaults: Array, plan: tuple[Entry, ...]) -> tuple[Array, ...]:
    keys = _keys(plan)
    lists = [_parsed(data, i, keys) for i, data in enumerate(serialized.ravel().tolist())]
    outputs = _results(lists, plan, iter(defaults))
    return tuple(outputs if serialized.ndim else _without_batch(outputs, plan))


def _specs(plan: Sequence[Entry], batch: Sequence[Any]) -> list[TensorSpec]:
    specs: list[TensorSpec] = []
    for _, kind, dtype, shape, _ in plan:
        if kind == VARIABLE:
            rank = len(batch) + 1
            specs += [TensorSpec.of(Shape([None, rank]), int64), TensorSpec.of(Shape([None]), dtype)]
            specs.append(TensorSpec.of(Shape([rank]), int64))
        elif kind == RAGGED:
            levels = len(shape) + len(batch)
            specs += [TensorSpec.of(Shape([None]), t) for t in (dtype, *[int64] * levels)]
        else:
            steps = [None] if kind == SEQUENCE else []
            specs.append(TensorSpec.of(Shape([*batch, *steps, *shape]), dtype))
    return specs


def _infer(serialized: TensorSpec, *defaults: TensorSpec, plan: tuple[Entry, ...]) -> tuple[TensorSpec, ...]:
    if not serialized.dtype.is_string or len(serialized.shape) > 1:
        raise InvalidArgumentError(f"Serialised examples are a vector of strings, or one, not {serialized}.")
    return tuple(_specs(plan, serialized.shape))


def _parse_sequence(
    serialized: Array, *defaults: Array, context: tuple[Entry, ...], steps: tuple[Entry, ...]
) -> tuple[Array, ...]:
    data, remaining = serialized.item(), iter(defaults)
    lists = _parsed(data, 0, _keys(context), context=True)
    outputs = _without_batch(_results([lists], context, remaining), context)
    rows = _rows_of_steps(data, steps, _keys(steps))
    for entry in steps:
        key, kind, dtype, shape, _ = entry
        values = column(rows.get(key.encode(), []), key, dtype)
        if kind == VARIABLE:
            outputs += sparse(values)
        elif kind == RAGGED:
            outputs += ragged(values, key, shape, lambda key: column(rows.get(key.encode(), []), key, int64))
        else:
            outputs.append(dense(values, entry, None))
    return tuple(outputs)


def _rows_of_steps(
    data: bytes, steps: Sequence[Entry], keys: dict[bytes, int]
) -> dict[bytes, list[FeatureValues]]:
    """The values of each step of each feature list that a sequence example has.

    Raises:
        InvalidArgumentError: the data are damaged, or lack a list that may not be missing.
    """
    try:
        spans = features_of(data, keys, number=2)
        rows = {
            key: [feature_values(data, span_of_field) for span_of_field in message_field(data, span, 1)]
            for key, span in spans.items()
        }
    except ValueError as error:
        raise InvalidArgumentError(f"Could not parse sequence example input: {error}.") from None
    for key, kind, _, _, optional in steps:
        if kind == SEQUENCE and not optional and key.encode() not in rows:
            raise InvalidArgumentError(
                f"Feature list: {key} is required but could not be found; it needs allow_missing."
            )
    return rows


def _parse_sequences(
    serialized: Array, *defaults: Array, context: tuple[Entry, ...], steps: tuple[Entry, ...]
) -> tuple[Array, ...]:
    texts = serialized.tolist()
    context_keys, step_keys = _keys(context), _keys(steps)
    lists = [_parsed(data, i, context_keys, context=True) for i, data in enumerate(texts)]
    outputs = _results(lists, context, iter(defaults))
    examples = [_rows_of_steps(data, steps, step_keys) for data in texts]

    def rows_of(key: str) -> list[list[FeatureValues]]:
        return [rows.get(key.encode(), []) for rows in examples]

    def values_of(key: str, dtype: DType) -> Column:
        return column([row for rows in rows_of(key) for row in rows], key, dtype)

    for entry in steps:
        key, kind, dtype, shape, _ = entry
        values = values_of(key, dtype)
        lengths = np.array([len(rows) for rows in rows_of(key)], np.int64)
        if kind == VARIABLE:
            outputs += _sparse_steps(values, lengths)
        elif kind == RAGGED:
            outputs += [*ragged(values, key, shape, lambda key: values_of(key, int64)), lengths]
        else:
            outputs += [_padded_steps(dense(values, entry, None), lengths), lengths]
    return tuple(outputs)


def _padded_steps(rows: Array, lengths: Array) -> Array:
    """Steps of several sequences, one after the other, in rows padded to the longest."""
    longest = int(lengths.max(initial=0))
    fill = filled([b""], ()) if rows.dtype.kind == "O" else np.zeros((), rows.dtype)
    result = np.empty((len(lengths), longest, *rows.shape[1:]), rows.dtype)
    result[...] = fill
    result[np.arange(longest) < lengths[:, None]] = rows
    return result


def _sparse_steps(values: Column, lengths: Array) -> tuple[Array, Array, Array]:
    """The values of steps of several sequences: indices, values and shape ``[sequences, steps, longest]``."""
    indices, flat, shape = sparse(values)
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    step = np.arange(len(sequence)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    places = np.stack([sequence[indices[:, 0]], step[indices[:, 0]], indices[:, 1]], axis=1)
    return places, flat, np.array([len(lengths), lengths.max(initial=0), shape[1]], np.int64)


def _infer_sequences(
    serialized: TensorSpec, *defaults: TensorSpec, context: tuple[Entry, ...], steps: tuple[Entry, ...]
) -> tuple[TensorSpec, ...]:
    if not serialized.dtype.is_string or len(serialized.shape) != 1:
        raise InvalidArgumentError(f"Serialised sequence examples are a vector of strings, not {serialized}.")
    count = serialized.shape[0]
    specs: list[TensorSpec] = []
    for entry in steps:
        _, kind, dtype, shape, _ = entry
        if kind == SEQUENCE:
            specs.append(TensorSpec.of(Shape([count, None, *shape]), dtype))
        else:
            specs += _specs([entry], [count, None] if kind == VARIABLE else [None])
        if kind != VARIABLE:
            specs.append(TensorSpec.of(Shape([count]), int64))
    return (*_specs(context, [count]), *specs)


def _infer_sequence(
    serialized: TensorSpec, *defaults: TensorSpec, context: tuple[Entry, ...], steps: tuple[Entry, ...]
) -> tuple[TensorSpec, ...]:
    if not serialized.dtype.is_string or len(serialized.shape):
        raise InvalidArgumentError(f"A serialised sequence example is one string, not {serialized}.")
    fixed: list[Entry] = [
        (key, FIXED if kind == SEQUENCE else kind, dtype, shape, optional)
        for key, kind, dtype, shape, optional in steps
    ]
    return (*_specs(context, ()), *_specs(fixed, [None]))


_NUMBER: Final = delimited(3, delimited(1, b"\x07"))
_SAMPLE: Final = delimited(1, delimited(1, delimited(1, b"a") + delimited(2, _NUMBER)))
_STEPS: Final = delimited(1, delimited(1, b"a") + delimited(2, delimited(1, _NUMBER) * 2))
_SEQUENCE_SAMPLE: Final = delimited(2, _STEPS)
PARSE: Final = text_op(
    "parse_examples",
    "The features of serialised examples.",
    infer=_infer,
    kernel=_parse,
    samples=[Sample((words(_SAMPLE, _SAMPLE),), {"plan": (("a", FIXED, int64, (1,), False),)})],
    outputs=None,
)
PARSE_SEQUENCE: Final = text_op(
    "parse_sequence_example",
    "The features of a serialised sequence example, and those of its steps.",
    infer=_infer_sequence,
    kernel=_parse_sequence,
    samples=[
        Sample(
            (one_word(_SEQUENCE_SAMPLE),),
            {"context": (), "steps": (("a", SEQUENCE, int64, (), False), ("b", VARIABLE, string, (), False))},
        )
    ],
    outputs=None,
)
PARSE_SEQUENCES: Final = text_op(
    "parse_sequence_examples",
    "The features of several serialised sequence examples, and those of their steps.",
    infer=_infer_sequences,
    kernel=_parse_sequences,
    samples=[
        Sample(
            (words(_SEQUENCE_SAMPLE, _SEQUENCE_SAMPLE),),
            {"context": (), "steps": (("a", SEQUENCE, int64, (), False), ("b", VARIABLE, string, (), False))},
        )
    ],
    outputs=None,
)
