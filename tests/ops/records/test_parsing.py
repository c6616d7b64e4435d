"""``parse_example`` and its like, and tensors as strings: results of TensorFlow, in batches and in traces."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.errors import InvalidArgumentError

io: Any = df.io
T: Any = df.train
BY_TENSORFLOW = Path(__file__).parent / "by_tensorflow"
FEATURES = {
    "x": io.FixedLenFeature([2], df.float32),
    "s": io.VarLenFeature(df.string),
    "n": io.FixedLenSequenceFeature([], df.int64, allow_missing=True),
    "odd": io.FixedLenFeature([], df.int64, default_value=-9),
}
N = [[0, 2**40, 0], [-1, 2**40 + 1, 1], [-2, 2**40 + 2, 2], [-3, 2**40 + 3, 3]]


def records(name: str = "examples") -> list[bytes]:
    return list(df.data.TFRecordDataset(str(BY_TENSORFLOW / f"{name}.tfrecord")).as_numpy_iterator())


def one(**features: list[Any]) -> bytes:
    """A serialised example with these features."""
    kinds = {bytes: ("bytes_list", T.BytesList), float: ("float_list", T.FloatList)}
    feature = {}
    for name, values in features.items():
        field, kind = kinds.get(type(values[0]) if values else float, ("int64_list", T.Int64List))
        feature[name] = T.Feature(**{field: kind(value=values)})
    data: bytes = T.Example(features=T.Features(feature=feature)).SerializeToString()
    return data


def plain(parsed: dict[str, Any]) -> dict[str, Any]:
    """The parsed features as lists; a SparseTensor as its three parts."""

    def listed(x: Any) -> Any:
        parts = (x.indices, x.values, x.dense_shape) if isinstance(x, df.SparseTensor) else (x,)
        return [np.asarray(part.numpy()).tolist() for part in parts]

    return {name: listed(x) for name, x in parsed.items()}


EXPECTED = {
    "n": [N],
    "odd": [[-9, 1, -9, 3]],
    "s": [[[1, 0], [2, 0], [2, 1]], [b"abc\xff"] * 3, [4, 2]],
    "x": [[[0.0, 0.5], [1.0, 1.5], [2.0, 2.5], [3.0, 3.5]]],
}
"""What TensorFlow parses."""


def test_a_batch_has_tensorflows_values() -> None:
    assert plain(io.parse_example(records(), FEATURES)) == EXPECTED


def test_one_string_is_parsed_without_an_axis_of_the_batch() -> None:
    one = records()[0]
    assert plain(io.parse_example(one, FEATURES)) == plain(io.parse_single_example(one, FEATURES))


def test_a_traced_function_and_a_dataset_parse_the_same() -> None:
    parse = df.function(lambda data: io.parse_example(data, FEATURES))
    assert plain(parse(df.constant(records()))) == EXPECTED
    path = str(BY_TENSORFLOW / "examples.tfrecord")
    (batch,) = df.data.TFRecordDataset(path).batch(4).map(lambda data: io.parse_example(data, FEATURES))
    assert plain(batch) == EXPECTED


def test_single_examples_have_no_batch_axis() -> None:
    for i, data in enumerate(records()):
        parsed = plain(io.parse_single_example(data, FEATURES))
        assert parsed["n"] == [N[i]]
        assert parsed["x"] == [[i, i + 0.5]]
        assert parsed["s"] == [[[k] for k in range(i % 3)], [b"abc\xff"] * (i % 3), [i % 3]]


def test_an_empty_batch_has_no_rows() -> None:
    parsed = io.parse_example(df.constant([], df.string), FEATURES)
    assert {name: tuple(x.shape) for name, x in parsed.items()} == {
        "n": (0, 0), "odd": (0,), "s": (0, 0), "x": (0, 2),
    }  # fmt: skip


def test_sequences_are_padded_with_their_default() -> None:
    feature = {
        "a": io.FixedLenSequenceFeature([2], df.float32, allow_missing=True, default_value=-1.0),
        "b": io.FixedLenSequenceFeature([], df.string, allow_missing=True),
    }
    data = [one(a=[1.0, 2.0, 3.0, 4.0], b=[b"x"]), one(), one(a=[5.0, 6.0], b=[b"y", b"z"])]
    parsed = plain(io.parse_example(data, feature))
    assert parsed["a"] == [[[[1, 2], [3, 4]], [[-1, -1], [-1, -1]], [[5, 6], [-1, -1]]]]
    assert parsed["b"] == [[[b"x", b""], [b"", b""], [b"y", b"z"]]]


def test_defaults_fill_the_shape() -> None:
    features = {
        "a": io.FixedLenFeature([2], df.float32, default_value=[3.0, 4.0]),
        "b": io.FixedLenFeature([2, 1], df.string, default_value="d"),
    }
    parsed = plain(io.parse_example([one(), one(a=[1.0, 2.0], b=[b"x", b"y"])], features))
    assert parsed == {"a": [[[3, 4], [1, 2]]], "b": [[[[b"d"], [b"d"]], [[b"x"], [b"y"]]]]}


def test_sequence_examples_have_tensorflows_values() -> None:
    context = {"id": io.FixedLenFeature([], df.int64)}
    steps = {"w": io.FixedLenSequenceFeature([], df.int64), "v": io.VarLenFeature(df.float32)}
    for i, data in enumerate(records("sequences")):
        parsed = df.function(lambda d: io.parse_single_sequence_example(d, context, steps))(df.constant(data))
        assert plain(parsed[0]) == {"id": [i]}
        expected = [[[1, 0]], [1.0], [2, 1]] if i == 2 else [[], [], [i, 0]]
        assert plain(parsed[1]) == {"w": [list(range(i))], "v": expected}
    missing = {"z": io.FixedLenSequenceFeature([3], df.int64, allow_missing=True)}
    _, parsed = io.parse_single_sequence_example(data, sequence_features=missing)
    assert parsed["z"].shape == (0, 3)


def test_damaged_examples_are_errors_with_their_index() -> None:
    rng = random.Random(7)
    good = records()[1]
    refused: list[str] = []
    for _ in range(300):
        damaged = bytearray(good)
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            io.parse_example([good, bytes(damaged)], FEATURES)
        except InvalidArgumentError as error:
            refused.append(str(error))
    assert len(refused) > 50
    assert [text for text in refused if "ndex 1" not in text and "Index: 1" not in text] == []


# Tensors


@pytest.mark.parametrize(
    ("name", "dtype", "value"),
    [
        ("f32", df.float32, [[1.0, 2.0]]),
        ("str", df.string, [b"a", b"bc"]),
        ("bf16", df.bfloat16, [1.5]),
        ("i64", df.int64, 7),
        ("bool", df.bool, [True, False]),
        ("c", df.complex128, [1 + 2j]),
        ("proto", df.float32, [[3.5, 3.5], [3.5, 3.5]]),
    ],
)
def test_tensors_are_tensorflows_strings(name: str, dtype: Any, value: Any) -> None:
    data = (BY_TENSORFLOW / f"{name}.tensor").read_bytes()
    tensor = io.parse_tensor(data, dtype)
    assert (tensor.dtype, tensor.numpy().tolist()) == (dtype, value)
    if name != "proto":
        assert io.serialize_tensor(df.constant(value, dtype)).numpy() == data


def test_a_traced_function_parses_tensors() -> None:
    f = df.function(lambda s: df.ensure_shape(io.parse_tensor(s, df.float32), [2]) * 2.0)
    assert f(io.serialize_tensor([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]


def test_damaged_tensors_are_errors() -> None:
    rng = random.Random(1)
    for path in BY_TENSORFLOW.glob("*.tensor"):
        good = path.read_bytes()
        for _ in range(40):
            damaged = bytearray(good)
            damaged[rng.randrange(len(damaged))] = rng.choice([0, 255, rng.randrange(256)])
            with suppress(InvalidArgumentError):
                io.parse_tensor(bytes(damaged), df.float32)
