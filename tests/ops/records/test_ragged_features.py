"""Features with rows of different lengths, and batches of sequences, as TensorFlow 2.21 parses them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualflow as df

io: Any = df.io
T: Any = df.train
Ragged = io.RaggedFeature


def feature(values: list[Any]) -> Any:
    if values and isinstance(values[0], bytes):
        return T.Feature(bytes_list=T.BytesList(value=values))
    return T.Feature(int64_list=T.Int64List(value=values))


def example(**features: list[Any]) -> bytes:
    data: bytes = T.Example(
        features=T.Features(feature={key: feature(values) for key, values in features.items()})
    ).SerializeToString()
    return data


def sequence(context: dict[str, list[Any]], **lists: list[list[Any]]) -> bytes:
    message = T.SequenceExample(context=T.Features(feature={k: feature(v) for k, v in context.items()}))
    for key, rows in lists.items():
        message.feature_lists.feature_list[key].feature.extend(map(feature, rows))
    data: bytes = message.SerializeToString()
    return data


A = example(
    v=[1, 2, 3], splits=[0, 2, 3], lengths=[2, 1], starts=[0, 2], limits=[2, 3], ids=[0, 0, 1], outer=[1, 1]
)
B = example(
    v=[4, 5, 6, 7],
    splits=[0, 1, 4],
    lengths=[1, 3],
    starts=[0, 1],
    limits=[1, 4],
    ids=[0, 1, 1, 1],
    outer=[2],
)
ROWS = [[[1, 2], [3]], [[4], [5, 6, 7]]]
PARTITIONS = {
    "none": ((), [[1, 2, 3], [4, 5, 6, 7]]),
    "splits": ((Ragged.RowSplits("splits"),), ROWS),
    "lengths": ((Ragged.RowLengths("lengths"),), ROWS),
    "starts": ((Ragged.RowStarts("starts"),), ROWS),
    "limits": ((Ragged.RowLimits("limits"),), ROWS),
    "ids": ((Ragged.ValueRowIds("ids"),), ROWS),
    "two": (
        (Ragged.RowLengths("outer"), Ragged.RowLengths("lengths")),
        [[[[1, 2]], [[3]]], [[[4], [5, 6, 7]]]],
    ),
}


def listed(value: Any) -> Any:
    return value.to_list() if isinstance(value, df.RaggedTensor) else value.numpy().tolist()


@pytest.mark.parametrize("kind", PARTITIONS)
def test_a_ragged_feature_has_the_rows_that_other_features_describe(kind: str) -> None:
    partitions, rows = PARTITIONS[kind]
    features = {"f": Ragged(df.int64, "v", partitions)}
    assert listed(io.parse_example([A, B], features)["f"]) == rows
    assert listed(io.parse_single_example(A, features)["f"]) == rows[0]
    parse = df.function(lambda x: io.parse_example(x, features)["f"])
    assert listed(parse(df.constant([A, B]))) == rows


def test_rows_of_one_length_need_no_feature() -> None:
    pairs = Ragged(df.int64, "v", [Ragged.UniformRowLength(2)])
    parsed = io.parse_example([example(v=[1, 2]), example(v=[3, 4, 5, 6])], {"f": pairs})["f"]
    assert parsed.shape == (2, None, 2)
    assert parsed.to_list() == [[[1, 2]], [[3, 4], [5, 6]]]


def test_an_example_may_lack_the_feature() -> None:
    words = Ragged(df.string, row_splits_dtype=df.int64)
    parsed = io.parse_example([example(w=[b"a", b"b"]), example()], {"w": words})["w"]
    assert parsed.to_list() == [[b"a", b"b"], []]
    assert parsed.row_splits.dtype is df.int64


def test_features_share_values() -> None:
    features = {"flat": Ragged(df.int64, "v"), "rows": Ragged(df.int64, "v", [Ragged.RowLengths("lengths")])}
    parsed = io.parse_example([A, B], features | {"lengths": Ragged(df.int64)})
    assert parsed["rows"].to_list() == ROWS
    assert parsed["flat"].to_list() == [[1, 2, 3], [4, 5, 6, 7]]
    assert parsed["lengths"].to_list() == [[2, 1], [1, 3]]


FIRST = sequence({"c": [7]}, n=[[1], [2], [3]], v=[[1, 2], [], [3]], w=[[b"x"], [b"y", b"z"]])
SECOND = sequence({"c": [8]}, n=[[4]], v=[[5]])
STEPS = {
    "n": io.FixedLenSequenceFeature([], df.int64),
    "v": io.VarLenFeature(df.int64),
    "w": Ragged(df.string),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_batch_of_sequences_is_padded_sparse_or_ragged(compiled: bool) -> None:
    def parse(data: Any) -> Any:
        return io.parse_sequence_example(data, {"c": io.FixedLenFeature([], df.int64)}, STEPS)

    context, steps, lengths = (df.function(parse) if compiled else parse)(df.constant([FIRST, SECOND]))
    assert context["c"].numpy().tolist() == [7, 8]
    assert steps["n"].numpy().tolist() == [[1, 2, 3], [4, 0, 0]]
    assert steps["v"].indices.numpy().tolist() == [[0, 0, 0], [0, 0, 1], [0, 2, 0], [1, 0, 0]]
    assert steps["v"].values.numpy().tolist() == [1, 2, 3, 5]
    assert np.asarray(steps["v"].dense_shape).tolist() == [2, 3, 2]
    assert steps["w"].to_list() == [[[b"x"], [b"y", b"z"]], []]
    assert {key: counts.numpy().tolist() for key, counts in lengths.items()} == {"n": [3, 1]}


def test_a_sequence_has_ragged_steps() -> None:
    context, steps = io.parse_single_sequence_example(FIRST, {"c": Ragged(df.int64)}, {"v": Ragged(df.int64)})
    assert context["c"].numpy().tolist() == [7]
    assert steps["v"].to_list() == [[1, 2], [], [3]]


def test_a_sequence_may_lack_a_list_if_it_is_allowed_to() -> None:
    optional = {"n": io.FixedLenSequenceFeature([], df.int64, allow_missing=True)}
    _, steps, lengths = io.parse_sequence_example([sequence({}), SECOND], {}, optional)
    assert steps["n"].numpy().tolist() == [[0], [4]]
    assert lengths["n"].numpy().tolist() == [0, 1]
    with pytest.raises(ValueError, match="Feature list: n is required"):
        io.parse_sequence_example([sequence({})], {}, STEPS)
