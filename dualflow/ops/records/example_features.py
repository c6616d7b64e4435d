"""Parsing of serialised ``Example`` messages: ``df.io.parse_example`` and its like."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, as_dtype, float32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import as_shape
from dualflow.core.string_arrays import string
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.ragged.ragged_spec import splits_dtype
from dualflow.ops.ragged.ragged_tensor import RaggedTensor
from dualflow.ops.records.example_parsing import (
    FIXED,
    PARSE,
    PARSE_SEQUENCE,
    PARSE_SEQUENCES,
    RAGGED,
    SEQUENCE,
    VARIABLE,
    Entry,
)
from dualflow.ops.records.feature_partitions import ROW_LENGTHS, UNIFORM
from dualflow.ops.records.feature_specs import (
    FeatureSpec,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    VarLenFeature,
)
from dualflow.ops.sparse.sparse_tensor import SparseTensor
from dualflow.ops.text.mapping import of_strings

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike

_DTYPES: Final = (string, float32, int64)


def parse_example(
    serialized: TensorLike,
    features: Mapping[str, FeatureSpec],
    example_names: object = None,
    name: str | None = None,
) -> dict[str, Any]:
    """The features of a batch of serialised ``Example`` messages.

    Args:
        serialized: a vector of strings, such as a batch of a TFRecordDataset; or one string, whose features
            have no axis of the batch.
        features: how each feature is parsed, by name; others are skipped.
        example_names, name: ignored; as in TensorFlow.

    Returns:
        For each feature a tensor ``[batch, *shape]``; ``[batch, longest, *shape]`` for a
        FixedLenSequenceFeature; a SparseTensor of shape ``[batch, longest]`` for a VarLenFeature; a
        RaggedTensor of shape ``[batch, (values)]``, with more axes for partitions, for a RaggedFeature.

    Raises:
        InvalidArgumentError: a string is no Example; it lacks a feature, or has values of another dtype or
            number; ``features`` is empty or invalid.
        DTypeError: ``serialized`` are no strings, or a feature is described by something else.

    >>> import dualflow as df
    >>> def example(n):
    ...     values = df.train.Feature(int64_list=df.train.Int64List(value=[n, n + 1]))
    ...     return df.train.Example(features=df.train.Features(feature={"n": values})).SerializeToString()
    >>> parsed = df.io.parse_example([example(1), example(5)], {"n": df.io.FixedLenFeature([2], df.int64)})
    >>> parsed["n"].numpy().tolist()
    [[1, 2], [5, 6]]
    """
    strings = of_strings(serialized, "parse_example")
    if len(strings.shape) > 1:
        raise InvalidArgumentError(
            f"parse_example takes a vector of strings, or one, not the shape {strings.shape}; reshape it to "
            "[-1]."
        )
    return _parsed(strings, features)


def parse_single_example(
    serialized: TensorLike,
    features: Mapping[str, FeatureSpec],
    example_names: object = None,
    name: str | None = None,
) -> dict[str, Any]:
    """The features of one serialised ``Example`` message; :func:`parse_example` of a batch is faster.

    Args:
        serialized: a scalar string.
        features: how each feature is parsed, by name; others are skipped.
        example_names, name: ignored; as in TensorFlow.

    Returns:
        As :func:`parse_example`, without the axis of the batch.

    Raises:
        InvalidArgumentError: as :func:`parse_example`.
        DTypeError: as :func:`parse_example`.

    >>> import dualflow as df
    >>> feature = df.train.Feature(float_list=df.train.FloatList(value=[0.5]))
    >>> data = df.train.Example(features=df.train.Features(feature={"x": feature})).SerializeToString()
    >>> print(df.io.parse_single_example(data, {"x": df.io.FixedLenFeature([], df.float32)})["x"].numpy())
    0.5
    """
    strings = of_strings(serialized, "parse_single_example")
    if len(strings.shape):
        raise InvalidArgumentError(
            f"parse_single_example takes one string, not the shape {strings.shape}; parse_example takes a "
            "vector."
        )
    return _parsed(strings, features)


def parse_single_sequence_example(
    serialized: TensorLike,
    context_features: Mapping[str, FeatureSpec] | None = None,
    sequence_features: Mapping[str, FeatureSpec] | None = None,
    example_name: object = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The features of a serialised ``SequenceExample`` message, and those of its steps.

    Args:
        serialized: a scalar string.
        context_features: how the features of the sequence are parsed, as in :func:`parse_single_example`.
        sequence_features: how those of its steps are parsed: FixedLenSequenceFeature, VarLenFeature or
            RaggedFeature.
        example_name, name: ignored; as in TensorFlow.

    Returns:
        The features of the sequence, and those of its steps: tensors ``[steps, *shape]``, SparseTensors
        ``[steps, longest]`` and RaggedTensors ``[steps, (values)]``.

    Raises:
        InvalidArgumentError: as :func:`parse_example`.
        DTypeError: as :func:`parse_example`.

    >>> import dualflow as df
    >>> example = df.train.SequenceExample()
    >>> for n in (3, 4):
    ...     example.feature_lists.feature_list["n"].feature.add().int64_list.value.append(n)
    >>> features = {"n": df.io.FixedLenSequenceFeature([], df.int64)}
    >>> _, steps = df.io.parse_single_sequence_example(example.SerializeToString(), {}, features)
    >>> steps["n"].numpy().tolist()
    [3, 4]
    """
    data = of_strings(serialized, "parse_single_sequence_example")
    if len(data.shape):
        raise InvalidArgumentError(
            f"A sequence example is one string, not the shape {data.shape}; parse_sequence_example takes "
            "a vector."
        )
    context, steps, defaults = _plans(context_features, sequence_features)
    attrs = {"context": context, "steps": steps}
    outputs = iter(dispatch.current().run(PARSE_SEQUENCE, (data, *defaults), attrs))
    return (
        _by_name(context_features, context, outputs, 0),
        _by_name(sequence_features, steps, outputs, 1),
    )


def parse_sequence_example(
    serialized: TensorLike,
    context_features: Mapping[str, FeatureSpec] | None = None,
    sequence_features: Mapping[str, FeatureSpec] | None = None,
    example_names: object = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The features of a batch of serialised ``SequenceExample`` messages, and those of their steps.

    Args:
        serialized: a vector of strings.
        context_features: how the features of the sequences are parsed, as in :func:`parse_example`.
        sequence_features: how those of their steps are parsed: FixedLenSequenceFeature, VarLenFeature or
            RaggedFeature.
        example_names, name: ignored; as in TensorFlow.

    Returns:
        The features of the sequences; those of the steps: tensors ``[batch, longest, *shape]``, SparseTensors
        ``[batch, longest, values]`` and RaggedTensors ``[batch, (steps), (values)]``; and the number of steps
        of each sequence, for each FixedLenSequenceFeature.

    Raises:
        InvalidArgumentError: as :func:`parse_example`.
        DTypeError: as :func:`parse_example`.

    >>> import dualflow as df
    >>> def sequence(numbers):
    ...     example = df.train.SequenceExample()
    ...     for n in numbers:
    ...         example.feature_lists.feature_list["n"].feature.add().int64_list.value.append(n)
    ...     return example.SerializeToString()
    >>> features = {"n": df.io.FixedLenSequenceFeature([], df.int64)}
    >>> _, steps, lengths = df.io.parse_sequence_example([sequence([3, 4]), sequence([5])], {}, features)
    >>> steps["n"].numpy().tolist(), lengths["n"].numpy().tolist()
    ([[3, 4], [5, 0]], [2, 1])
    """
    data = of_strings(serialized, "parse_sequence_example")
    if len(data.shape) != 1:
        raise InvalidArgumentError(
            f"parse_sequence_example takes a vector of strings, not the shape {data.shape}; "
            "parse_single_sequence_example takes one."
        )
    context, steps, defaults = _plans(context_features, sequence_features)
    attrs = {"context": context, "steps": steps}
    outputs = iter(dispatch.current().run(PARSE_SEQUENCES, (data, *defaults), attrs))
    of_context = _by_name(context_features, context, outputs, 1)
    of_steps: dict[str, Any] = {}
    lengths: dict[str, Any] = {}
    for key, entry in zip(sorted(sequence_features or {}), steps, strict=True):
        feature: Any = (sequence_features or {})[key]
        if entry[1] == RAGGED:
            of_steps[key] = _ragged_steps(feature, entry, outputs)
            continue
        of_steps |= _by_name({key: feature}, [entry], outputs, 1)
        if entry[1] == SEQUENCE:
            lengths[key] = next(outputs)
    return of_context, of_steps, lengths


def _ragged_steps(feature: RaggedFeature, entry: Entry, outputs: Any) -> Any:
    """A ragged feature of steps, as a RaggedTensor whose outer axes are sequences and steps."""
    rows = _ragged(feature, entry, outputs, 1)
    counts = cast(next(outputs), rows.row_splits.dtype)
    return RaggedTensor.from_row_lengths(rows, counts, validate=False)


def _plans(context_features: Any, sequence_features: Any) -> tuple[Any, Any, list[Any]]:
    """The features of sequences and of steps to parse, and the tensors of their defaults and paddings."""
    context, defaults = _plan(context_features or {})
    steps, paddings = _plan(sequence_features or {})
    for key, feature in (sequence_features or {}).items():
        if isinstance(feature, FixedLenSequenceFeature) and feature.default_value is not None:
            raise InvalidArgumentError(
                f"The feature {key!r} of steps has a default_value, which sequence examples don't support: "
                "leave it out; shorter sequences are padded with 0 or the empty string."
            )
    if any(kind == FIXED for _, kind, *_ in steps):
        raise DTypeError("Features of steps are FixedLenSequenceFeatures, VarLenFeatures or RaggedFeatures.")
    if not context and not steps:
        raise InvalidArgumentError(
            "Missing features: neither context_features nor sequence_features has one."
        )
    return context, steps, [*defaults, *paddings]


def _parsed(strings: Any, features: Any) -> dict[str, Any]:
    plan, defaults = _plan(features)
    if not plan:
        raise InvalidArgumentError("Missing: features was {}. Name the features to parse.")
    if any(kind == SEQUENCE and not optional for _, kind, _, _, optional in plan):
        raise InvalidArgumentError(
            "Unsupported: FixedLenSequenceFeature requires allow_missing to be True, outside of sequence "
            "examples."
        )
    outputs = iter(dispatch.current().run(PARSE, (strings, *defaults), {"plan": plan}))
    return _by_name(features, plan, outputs, len(strings.shape))


def _by_name(features: Any, plan: Sequence[Entry], outputs: Any, batch_axes: int) -> dict[str, Any]:
    """The parsed features by their names; ``batch_axes`` is 1 for those of several examples or steps."""
    results: dict[str, Any] = {}
    for name, entry in zip(sorted(features or {}), plan, strict=True):
        if entry[1] == RAGGED:
            results[name] = _ragged(features[name], entry, outputs, batch_axes)
            continue
        first = next(outputs)
        results[name] = SparseTensor(first, next(outputs), next(outputs)) if entry[1] == VARIABLE else first
    return results


def _ragged(feature: RaggedFeature, entry: Entry, outputs: Any, batch_axes: int) -> Any:
    """The ragged tensor of a feature; of one example without partitions a tensor."""
    values, dtype = next(outputs), splits_dtype(feature.row_splits_dtype)
    for kind, where in [*reversed(entry[3]), *[(ROW_LENGTHS, "")] * batch_axes]:
        lengths = cast(next(outputs), dtype)
        if kind == UNIFORM:
            values = RaggedTensor.from_uniform_row_length(values, where).with_row_splits_dtype(dtype)
        else:
            values = RaggedTensor.from_row_lengths(values, lengths, validate=False)
    return values


def _plan(features: Any) -> tuple[tuple[Entry, ...], list[Any]]:
    """The features to parse, sorted by key as in TensorFlow, and the tensors of their defaults."""
    if not isinstance(features, Mapping) or not all(isinstance(key, str) for key in features):
        raise DTypeError(f"Features are a dict of names and descriptions, not {features!r}.")
    plan: list[Entry] = []
    defaults: list[Any] = []
    for key in sorted(features):
        feature = features[key]
        if not isinstance(feature, FeatureSpec):
            raise DTypeError(
                f"The feature {key!r} is described by a FixedLenFeature, a VarLenFeature, a "
                f"FixedLenSequenceFeature or a RaggedFeature, not by {feature!r}."
            )
        dtype = as_dtype(feature.dtype)
        if dtype not in _DTYPES:
            raise InvalidArgumentError(
                f"The feature {key!r} is float32, int64 or string, not {dtype.name}; cast it afterwards."
            )
        if isinstance(feature, RaggedFeature):
            partitions = feature.described_partitions()
            plan.append((feature.value_key or key, RAGGED, dtype, partitions, False))
            continue
        if isinstance(feature, VarLenFeature):
            plan.append((key, VARIABLE, dtype, (), False))
            continue
        shape = _shape(key, feature.shape)
        default = _default(key, feature, dtype, shape)
        defaults += [] if default is None else [default]
        kind = FIXED if isinstance(feature, FixedLenFeature) else SEQUENCE
        plan.append((key, kind, dtype, shape, default is not None))
    return tuple(plan), defaults


def _shape(key: str, shape: Any) -> tuple[int, ...]:
    sizes = as_shape(shape)
    if shape is None or not sizes.is_static:
        raise InvalidArgumentError(
            f"The feature {key!r} has the shape {sizes}; a FixedLenFeature has a static shape, and a "
            "FixedLenSequenceFeature that of a step."
        )
    return tuple([int(size) for size in sizes if size is not None])


def _default(
    key: str, feature: FixedLenFeature | FixedLenSequenceFeature, dtype: DType, shape: tuple[int, ...]
) -> Any:
    """The values of an example without the feature, or the padding; None if there may be no such example."""
    value: Any = feature.default_value
    if isinstance(feature, FixedLenSequenceFeature):
        if not feature.allow_missing:
            return None
        if value is None:
            value = b"" if dtype.is_string else 0
    if value is None:
        return None
    tensor: Any = convert_to_tensor(value, dtype)
    single = isinstance(feature, FixedLenSequenceFeature)
    if tensor.size != 1 and (single or tuple(tensor.shape) != shape or tensor.size != math.prod(shape)):
        raise InvalidArgumentError(
            f"The default of the feature {key!r} has the shape {tensor.shape}, not {list(shape)} or one "
            "value."
        )
    return tensor
