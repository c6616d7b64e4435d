"""Parsing of serialised ``Example`` messages: ``df.io.parse_example`` and its like."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, as_dtype, float32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import as_shape
from dualflow.core.string_arrays import string
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.records.example_parsing import FIXED, PARSE, PARSE_SEQUENCE, SEQUENCE, VARIABLE, Entry
from dualflow.ops.sparse.sparse_tensor import SparseTensor
from dualflow.ops.text.mapping import of_strings

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, ShapeLike, TensorLike

_DTYPES: Final = (string, float32, int64)


@dataclass(frozen=True, slots=True)
class FixedLenFeature:
    """A feature with the same number of values in each example; it is parsed to a dense tensor.

    Args:
        shape: the shape of the values of an example; ``[]`` for one value.
        dtype: float32, int64 or string.
        default_value: the values of an example without the feature; by default that is an error.

    >>> import dualflow as df
    >>> df.io.FixedLenFeature([2], df.float32).default_value is None
    True
    """

    shape: ShapeLike
    dtype: DTypeLike
    default_value: TensorLike | None = None


@dataclass(frozen=True, slots=True)
class VarLenFeature:
    """A feature with any number of values; it is parsed to a SparseTensor.

    Args:
        dtype: float32, int64 or string.

    >>> import dualflow as df
    >>> df.io.parse_single_example(b"", {"words": df.io.VarLenFeature(df.string)})["words"].shape
    (0,)
    """

    dtype: DTypeLike


@dataclass(frozen=True, slots=True)
class FixedLenSequenceFeature:
    """A feature with any number of steps of one shape; it is parsed to a dense tensor, padded in a batch.

    Args:
        shape: the shape of the values of a step.
        dtype: float32, int64 or string.
        allow_missing: whether an example may lack the feature; ``parse_example`` needs True.
        default_value: the padding, 0 or the empty string by default.

    >>> import dualflow as df
    >>> steps = df.io.FixedLenSequenceFeature([2], df.float32, allow_missing=True)
    >>> df.io.parse_single_example(b"", {"steps": steps})["steps"].shape
    (0, 2)
    """

    shape: ShapeLike
    dtype: DTypeLike
    allow_missing: bool = False
    default_value: TensorLike | None = None


FeatureSpec = FixedLenFeature | VarLenFeature | FixedLenSequenceFeature
"""How a feature is parsed."""


def parse_example(
    serialized: TensorLike,
    features: Mapping[str, FeatureSpec],
    example_names: object = None,
    name: str | None = None,
) -> dict[str, Any]:
    """The features of a batch of serialised ``Example`` messages.

    Args:
        serialized: a vector of strings, such as a batch of a TFRecordDataset.
        features: how each feature is parsed, by name; others are skipped.
        example_names, name: ignored; as in TensorFlow.

    Returns:
        For each feature a tensor ``[batch, *shape]``; ``[batch, longest, *shape]`` for a
        FixedLenSequenceFeature; a SparseTensor of shape ``[batch, longest]`` for a VarLenFeature.

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
    if len(strings.shape) != 1:
        raise InvalidArgumentError(
            f"parse_example takes a vector of strings, not the shape {strings.shape}; parse_single_example "
            "takes one."
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
        sequence_features: how those of its steps are parsed: FixedLenSequenceFeature or VarLenFeature.
        example_name, name: ignored; as in TensorFlow.

    Returns:
        The features of the sequence, and those of its steps: tensors ``[steps, *shape]`` and SparseTensors
        ``[steps, longest]``.

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
        raise InvalidArgumentError(f"A sequence example is one string, not the shape {data.shape}.")
    context, defaults = _plan(context_features or {})
    steps, paddings = _plan(sequence_features or {})
    if any(kind == FIXED for _, kind, *_ in steps):
        raise DTypeError("Features of steps are FixedLenSequenceFeatures or VarLenFeatures.")
    if not context and not steps:
        raise InvalidArgumentError(
            "Missing features: neither context_features nor sequence_features has one."
        )
    attrs = {"context": context, "steps": steps}
    outputs = iter(dispatch.current().run(PARSE_SEQUENCE, (data, *defaults, *paddings), attrs))
    return _by_name(context, outputs), _by_name(steps, outputs)


def _parsed(strings: Any, features: Any) -> dict[str, Any]:
    plan, defaults = _plan(features)
    if not plan:
        raise InvalidArgumentError("Missing: features was {}. Name the features to parse.")
    if any(kind == SEQUENCE and not optional for _, kind, _, _, optional in plan):
        raise InvalidArgumentError(
            "Unsupported: FixedLenSequenceFeature requires allow_missing to be True, outside of sequence "
            "examples."
        )
    return _by_name(plan, iter(dispatch.current().run(PARSE, (strings, *defaults), {"plan": plan})))


def _by_name(plan: Sequence[Entry], outputs: Any) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for key, kind, *_ in plan:
        first = next(outputs)
        results[key] = SparseTensor(first, next(outputs), next(outputs)) if kind == VARIABLE else first
    return results


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
                f"The feature {key!r} is described by a FixedLenFeature, a VarLenFeature or a "
                f"FixedLenSequenceFeature, not by {feature!r}."
            )
        dtype = as_dtype(feature.dtype)
        if dtype not in _DTYPES:
            raise InvalidArgumentError(
                f"The feature {key!r} is float32, int64 or string, not {dtype.name}; cast it afterwards."
            )
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
