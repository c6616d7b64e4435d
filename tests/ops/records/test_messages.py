"""``tf.train.Example`` and its parts: as protocol buffers, byte for byte those of TensorFlow."""

from __future__ import annotations

import copy
import math
import pickle
import random
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df
from dualflow.core.status_errors import DataLossError
from dualflow.ops.records.wire_format import delimited, encoded_varints, varint_field, varints

T: Any = df.train
BY_TENSORFLOW = Path(__file__).parent / "by_tensorflow"
INTS = st.integers(-(2**63), 2**63 - 1)
LISTS = st.one_of(
    st.lists(INTS, max_size=6).map(lambda v: T.Feature(int64_list=T.Int64List(value=v))),
    st.lists(st.floats(width=32), max_size=6).map(lambda v: T.Feature(float_list=T.FloatList(value=v))),
    st.lists(st.binary(max_size=200), max_size=3).map(lambda v: T.Feature(bytes_list=T.BytesList(value=v))),
    st.just(T.Feature()),
)


def example(i: int) -> Any:
    """The i-th example of the files that TensorFlow has written."""
    features = {
        "x": T.Feature(float_list=T.FloatList(value=[i, i + 0.5])),
        "n": T.Feature(int64_list=T.Int64List(value=[-i, 2**40 + i, i])),
        "s": T.Feature(bytes_list=T.BytesList(value=[b"abc\xff"] * (i % 3))),
    }
    if i % 2:
        features["odd"] = T.Feature(int64_list=T.Int64List(value=[i]))
    return T.Example(features=T.Features(feature=features))


def sequence(i: int) -> Any:
    """The i-th sequence of TensorFlow's file."""
    steps = {
        "w": [T.Feature(int64_list=T.Int64List(value=[k])) for k in range(i)],
        "v": [T.Feature(float_list=T.FloatList(value=[k] * k)) for k in range(i)],
    }
    lists = {name: T.FeatureList(feature=features) for name, features in steps.items()}
    context = T.Features(feature={"id": T.Feature(int64_list=T.Int64List(value=[i]))})
    return T.SequenceExample(context=context, feature_lists=T.FeatureLists(feature_list=lists))


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_tensorflows_files_have_these_examples(compression: str) -> None:
    path = str(BY_TENSORFLOW / f"examples{compression}.tfrecord")
    records = list(df.data.TFRecordDataset(path, compression).as_numpy_iterator())
    assert records == [example(i).SerializeToString() for i in range(4)]
    assert [T.Example.FromString(r) for r in records] == [example(i) for i in range(4)]


def test_tensorflows_sequences_are_read() -> None:
    records = list(df.data.TFRecordDataset(str(BY_TENSORFLOW / "sequences.tfrecord")).as_numpy_iterator())
    assert [T.SequenceExample.FromString(r) for r in records] == [sequence(i) for i in range(3)]


def test_the_text_is_that_of_protocol_buffers() -> None:
    by_tensorflow = (BY_TENSORFLOW / "ex.txt").read_text()  # in no order of names
    assert sorted(str(example(1)).splitlines()) == sorted(by_tensorflow.splitlines())
    assert str(T.BytesList(value=[b"a\"\n\x01'\\"])) == 'value: "a\\"\\n\\001\\\'\\\\"\n'
    assert repr(T.FloatList(value=[0.1, math.inf])) == "value: 0.1\nvalue: inf\n"


@given(st.dictionaries(st.text(max_size=5).filter(lambda s: s.isprintable()), LISTS, max_size=4))
def test_a_message_is_read_from_its_bytes_and_copies_share_nothing(features: dict[str, Any]) -> None:
    message = T.Example(features=T.Features(feature=features))
    data = message.SerializeToString()
    for other in (
        T.Example.FromString(data),
        copy.deepcopy(message),
        pickle.loads(pickle.dumps(message)),
        T.Example(features=message.features),
    ):
        assert other.SerializeToString() == data
        other.features.feature["new"].int64_list.value.append(1)
        assert message.SerializeToString() == data
    assert message.ByteSize() == len(data)


@given(st.lists(INTS, max_size=30))
def test_varints_of_many_numbers_are_those_of_each(numbers: list[int]) -> None:
    assert varints(encoded_varints(numbers)).tolist() == numbers


def test_a_list_that_is_changed_becomes_that_of_the_feature() -> None:
    feature = T.Feature()
    assert (feature.WhichOneof("kind"), feature.int64_list.value) == (None, [])
    feature.int64_list.value.extend([1, 2])
    feature.int64_list.value[0] = 5
    feature.int64_list.value += [7]
    assert (feature.WhichOneof("kind"), feature.int64_list.value) == ("int64_list", [5, 2, 7])
    feature.bytes_list.value.append(b"a")
    feature.bytes_list.value.insert(0, b"b")
    assert (feature.WhichOneof("kind"), feature.HasField("int64_list")) == ("bytes_list", False)
    feature.Clear()
    assert feature == T.Feature()


def test_a_name_that_is_read_is_added() -> None:
    message = T.SequenceExample()
    message.context.feature["n"].float_list.value.append(0.25)
    message.feature_lists.feature_list["w"].feature.add(int64_list=T.Int64List(value=[3]))
    assert list(message.context.feature) == ["n"]
    assert message.feature_lists.feature_list["w"].feature[0].int64_list.value == [3]
    other = T.SequenceExample()
    other.MergeFrom(message)
    other.MergeFromString(message.SerializeToString())
    assert len(other.feature_lists.feature_list["w"].feature) == 1
    other.Clear()
    assert other.SerializeToString() == b""


def test_arrays_become_lists() -> None:
    assert T.FloatList(value=np.arange(3)).value == [0.0, 1.0, 2.0]
    assert T.Int64List(value=np.array([1, 2], np.int8)).value == [1, 2]
    assert T.FloatList(value=[1e300, np.float64(0.1)]).value == [math.inf, float(np.float32(0.1))]


def test_numbers_may_be_packed_or_not_and_unknown_fields_are_skipped() -> None:
    numbers = varint_field(1, 3) + delimited(1, encoded_varints([4, -5])) + varint_field(1, 6)
    data = delimited(3, numbers) + delimited(9, b"later") + varint_field(10, 1) + b"\x5d1234\x6112345678"
    assert T.Feature.FromString(data).int64_list.value == [3, 4, -5, 6]
    floats = b"\x0d" + np.float32(0.5).tobytes() + delimited(1, np.array([1.5, 2.5], np.float32).tobytes())
    assert T.Feature.FromString(delimited(2, floats)).float_list.value == [0.5, 1.5, 2.5]


def test_damaged_bytes_are_an_error_or_another_message() -> None:
    rng = random.Random(3)
    data = sequence(2).SerializeToString() + example(1).SerializeToString()
    refused = 0
    tracemalloc.start()
    try:
        for _ in range(1000):
            damaged = bytearray(data)
            for _ in range(rng.choice([1, 1, 5])):
                damaged[rng.randrange(len(damaged))] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
            del damaged[rng.choice([len(damaged), rng.randrange(len(damaged))]) :]
            for kind in (T.Example, T.SequenceExample):
                try:
                    kind.FromString(bytes(damaged)).SerializeToString()
                except DataLossError:
                    refused += 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused > 500
    assert peak < 1_000_000
