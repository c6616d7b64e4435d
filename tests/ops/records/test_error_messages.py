"""Errors of functions of records: each states the rejected input and what to do."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.status_errors import DataLossError
from dualflow.ops.records.example_parsing import PARSE, PARSE_SEQUENCE, PARSE_SEQUENCES
from dualflow.ops.records.wire_format import delimited, encoded_varint, float_values, varint_field, varints

E = df.errors
io: Any = df.io
T: Any = df.train
INT = io.FixedLenFeature([], df.int64)
STEPS = io.FixedLenSequenceFeature([], df.int64)
FOLDER = Path(tempfile.mkdtemp())


def one(*values: int, name: str = "a") -> bytes:
    feature = {name: T.Feature(int64_list=T.Int64List(value=values))}
    data: bytes = T.Example(features=T.Features(feature=feature)).SerializeToString()
    return data


def ragged(*partitions: Any) -> Any:
    return io.RaggedFeature(df.int64, "a", partitions)


def steps(**lists: Any) -> bytes:
    example = T.SequenceExample()
    for name, values in lists.items():
        for value in values:
            example.feature_lists.feature_list[name].feature.add().int64_list.value.extend(value)
    data: bytes = example.SerializeToString()
    return data


def file(*records: bytes) -> bytes:
    path = FOLDER / "records"
    with io.TFRecordWriter(path) as writer:
        for record in records:
            writer.write(record)
    return path.read_bytes()


def read(data: bytes, compression: str | None = None) -> Any:
    path = FOLDER / "damaged"
    path.write_bytes(data)
    return list(df.data.TFRecordDataset(str(path), compression))


def closed() -> Any:
    writer = io.TFRecordWriter(FOLDER / "closed")
    writer.close()
    writer.close()
    return writer


def full() -> Any:
    """A writer on a full disk."""
    return io.TFRecordWriter("/dev/full")


def written_to(writer: Any) -> None:
    writer.write(b"a")
    with patch.object(writer, "_file", wraps=writer._file) as opened:
        opened.truncate = opened.seek = lambda *_: None  # a device can't
        try:
            writer.flush()
        finally:
            writer._pending = []


def tensor(*parts: bytes, dtype: Any = df.float32) -> Any:
    return io.parse_tensor(b"".join(parts), dtype)


FLOAT = varint_field(1, 1)
TWO = delimited(2, delimited(2, varint_field(1, 2)))
RECORD = file(b"abc")
SEQUENCE = "parse_single_sequence_example"

LONG = delimited(
    1,
    delimited(
        1,
        delimited(1, b"a") + delimited(2, delimited(3, delimited(1, b"\x80" * 11 + encoded_varint(1)))),
    ),
)

CASES = {
    # wire format
    "a cut varint": (lambda: T.Example.FromString(b"\x80"), DataLossError, "no Example", "cut off"),
    "a long varint": (lambda: T.Example.FromString(b"\xff" * 11), DataLossError, "more than 10 bytes"),
    "a wire type": (lambda: T.Example.FromString(b"\x0b"), DataLossError, "wire type 3 before byte 1"),
    "a long value": (
        lambda: T.Example.FromString(b"\x0a\x05a"),
        DataLossError,
        "5 bytes, of which there are 1",
    ),
    "field 0": (lambda: T.Example.FromString(b"\x02\x00"), DataLossError, "number 0"),
    "another wire type": (
        lambda: T.Example.FromString(b"\x08\x01"),
        DataLossError,
        "varint, where a length-",
    ),
    "a cut last varint": (lambda: varints(b"\x01\x80"), ValueError, "cut off"),
    "a long varint of many": (lambda: varints(b"\x01" + b"\x80" * 10 + b"\x01"), ValueError, "10 bytes"),
    "five bytes of floats": (lambda: float_values(b"12345"), ValueError, "no 32-bit floats"),
    "packed floats": (
        lambda: T.Feature.FromString(delimited(2, delimited(1, b"12345"))),
        DataLossError,
        "have 5 bytes",
    ),
    "packed integers": (
        lambda: T.Feature.FromString(delimited(3, delimited(1, b"\x80"))),
        DataLossError,
        "within a varint",
    ),
    # messages
    "a message of text": (
        lambda: T.Example.FromString("a"),
        DTypeError,
        "from bytes, not from a str",
        "numpy",
    ),
    "text in bytes": (lambda: T.BytesList(value=["a"]), DTypeError, "'a' has type str", "encode"),
    "text in floats": (lambda: T.FloatList(value=["a"]), DTypeError, "'a' has type str.*int, float"),
    "floats in integers": (lambda: T.Int64List(value=[0.5]), DTypeError, "0.5 has type float"),
    "a large integer": (
        lambda: T.Int64List(value=[2**63]),
        InvalidArgumentError,
        "9223372036854775808 does not fit",
    ),
    "another oneof": (lambda: T.Feature().WhichOneof("x"), InvalidArgumentError, "oneof 'kind', not 'x'"),
    "another field": (lambda: T.Feature().HasField("x"), InvalidArgumentError, "no field 'x'", "bytes_list"),
    "another list": (lambda: T.Feature(int64_list=T.FloatList()), DTypeError, "Int64List, not a FloatList"),
    "a name of bytes": (lambda: T.Features(feature={b"a": T.Feature()}), DTypeError, "are str, not b'a'"),
    "a list as a feature": (
        lambda: T.Features(feature={"a": T.Int64List()}),
        DTypeError,
        "'a' is a Int64List",
    ),
    "a list in a list": (lambda: T.FeatureList(feature=[T.Int64List()]), DTypeError, "not a Int64List"),
    "features of another type": (
        lambda: T.Example(features=T.Feature()),
        DTypeError,
        "Features, not a Feature",
    ),
    # parsing
    "numbers to parse": (
        lambda: io.parse_example([1], {"a": INT}),
        DTypeError,
        r"\[1\] to a tensor of dtype string",
    ),
    "rows to parse": (
        lambda: io.parse_example([[one(1)]], {"a": INT}),
        InvalidArgumentError,
        "a vector",
        "reshape it",
    ),
    "several to parse": (
        lambda: io.parse_single_example([one(1)], {"a": INT}),
        InvalidArgumentError,
        "one string",
        "vector",
    ),
    "several sequences": (
        lambda: getattr(io, SEQUENCE)([b""], {"a": INT}),
        InvalidArgumentError,
        "one string",
    ),
    "no features": (lambda: io.parse_example([one(1)], {}), InvalidArgumentError, "features was {}"),
    "no sequence features": (lambda: getattr(io, SEQUENCE)(b""), InvalidArgumentError, "neither"),
    "other rows": (
        lambda: io.parse_example([one(1, 5)], {"f": ragged(io.RaggedFeature.RowLengths("a"))}),
        InvalidArgumentError,
        "Its row_lengths are for",
        "describe other rows",
    ),
    "no partition": (
        lambda: io.parse_example([b""], {"f": ragged("row_splits")}),
        DTypeError,
        "not 'row_splits'",
        "name a feature",
    ),
    "rows without values": (
        lambda: io.parse_example([b""], {"f": ragged(io.RaggedFeature.UniformRowLength(0))}),
        InvalidArgumentError,
        "1 or more, not 0",
        "change it",
    ),
    "one sequence": (
        lambda: io.parse_sequence_example(b"", {}, {"a": io.VarLenFeature(df.int64)}),
        InvalidArgumentError,
        "takes a vector of strings",
        "parse_single_sequence_example",
    ),
    "one sequence in a graph": (
        lambda: PARSE_SEQUENCES.specs([df.TensorSpec([], df.string)], {"context": (), "steps": ()}),
        InvalidArgumentError,
        "a vector of strings, not",
    ),
    "a default of steps": (
        lambda: getattr(io, SEQUENCE)(
            b"", {}, {"a": io.FixedLenSequenceFeature([], df.int64, default_value=-1)}
        ),
        InvalidArgumentError,
        "'a' of steps has a default_value",
        "leave it out",
    ),
    "fixed steps": (lambda: getattr(io, SEQUENCE)(b"", {}, {"a": INT}), DTypeError, "Features of steps"),
    "a list of features": (lambda: io.parse_example([one(1)], ["a"]), DTypeError, "a dict of names"),
    "a dtype as a feature": (lambda: io.parse_example([b""], {"a": df.int64}), DTypeError, "FixedLenFeature"),
    "int32": (
        lambda: io.parse_example([b""], {"a": io.VarLenFeature(df.int32)}),
        InvalidArgumentError,
        "int32",
        "cast",
    ),
    "a dynamic shape": (
        lambda: io.parse_example([b""], {"a": io.FixedLenFeature([None], df.int64)}),
        InvalidArgumentError,
        "static shape",
    ),
    "another default": (
        lambda: io.parse_example([b""], {"a": io.FixedLenFeature([2], df.int64, [1, 2, 3])}),
        InvalidArgumentError,
        r"default of the feature 'a' has the shape \(3,\)",
    ),
    "a sequence that must be there": (
        lambda: io.parse_example([b""], {"a": STEPS}),
        InvalidArgumentError,
        "requires allow_missing",
    ),
    "another dtype": (
        lambda: io.parse_example([one(1)], {"a": io.FixedLenFeature([], df.float32)}),
        InvalidArgumentError,
        "Key: a, Index: 0. Data types don't match. Expected type: float, actual type: int64",
    ),
    "a missing feature": (
        lambda: io.parse_example([one(1), one(2, name="b")], {"a": INT}),
        InvalidArgumentError,
        r"Index: 1. Feature: a \(data type: int64\) is required",
        "default_value",
    ),
    "two values": (
        lambda: io.parse_example([one(1, 2)], {"a": INT}),
        InvalidArgumentError,
        r"values size: 2 but output shape: \[\]",
    ),
    "half a step": (
        lambda: io.parse_example([one(1)], {"a": io.FixedLenSequenceFeature([2], df.int64, True)}),
        InvalidArgumentError,
        "not a multiple",
    ),
    "a missing context": (
        lambda: getattr(io, SEQUENCE)(b"", {"a": STEPS}),
        InvalidArgumentError,
        "Feature: a is required",
        "allow_missing",
    ),
    "missing steps": (
        lambda: getattr(io, SEQUENCE)(steps(b=[[1]]), {}, {"a": STEPS}),
        InvalidArgumentError,
        "Feature list: a is",
    ),
    "a damaged example": (
        lambda: io.parse_example([one(1), b"\x80"], {"a": INT}),
        InvalidArgumentError,
        "index 1: a varint",
    ),
    "damaged integers": (
        lambda: io.parse_example(
            [one(1), one(1).replace(delimited(1, b"\x01"), delimited(1, b"\x80" * 11 + b"\x01"))], {"a": INT}
        ),
        InvalidArgumentError,
        "[iI]ndex",
    ),
    "long integers": (
        lambda: io.parse_example([one(1), LONG], {"a": io.VarLenFeature(df.int64)}),
        InvalidArgumentError,
        "Index: 1. a var",
    ),
    "damaged steps": (
        lambda: getattr(io, SEQUENCE)(delimited(2, b"\x80"), {}, {"a": STEPS}),
        InvalidArgumentError,
        "sequence example",
    ),
    "a placeholder of numbers": (
        lambda: df.function(lambda: io.parse_example(df.zeros([2]), {"a": INT}))(),
        DTypeError,
        "float32",
    ),
    # tensors
    "several tensors": (lambda: io.parse_tensor([b"", b""], df.int32), InvalidArgumentError, "one string"),
    "another dtype of a tensor": (
        lambda: tensor(varint_field(1, 3)),
        InvalidArgumentError,
        "its dtype is int32, not float32",
    ),
    "few strings": (
        lambda: tensor(varint_field(1, 7), TWO, dtype=df.string),
        InvalidArgumentError,
        "0 strings, not 2",
    ),
    "few bytes": (lambda: tensor(FLOAT, TWO, delimited(4, b"1234")), InvalidArgumentError, "4 bytes, not 8"),
    "many numbers": (lambda: tensor(FLOAT, delimited(5, bytes(8))), InvalidArgumentError, "2 numbers, not 1"),
    "a large fill": (
        lambda: tensor(FLOAT, delimited(2, delimited(2, varint_field(1, 10**9))), delimited(5, bytes(4))),
        InvalidArgumentError,
        "1 numbers, which stand for 1000000000",
    ),
    "an unknown rank": (
        lambda: tensor(FLOAT, delimited(2, varint_field(3, 1))),
        InvalidArgumentError,
        "rank is unknown",
    ),
    "a large shape": (
        lambda: tensor(FLOAT, delimited(2, delimited(2, varint_field(1, -1)))),
        InvalidArgumentError,
        "no tensor has the shape",
    ),
    # files
    "another compression": (
        lambda: io.TFRecordOptions("ZIP"),
        InvalidArgumentError,
        "'GZIP' or 'ZLIB', not 'ZIP'",
    ),
    "another level": (
        lambda: io.TFRecordOptions("GZIP", compression_level=10),
        InvalidArgumentError,
        "0 to 9, not 10",
    ),
    "a file of a number": (lambda: io.TFRecordWriter(3), DTypeError, "by a path, not by 3"),
    "no folder": (lambda: io.TFRecordWriter("/no/such/file"), E.NotFoundError, "/no/such/file"),
    "a record of text": (lambda: io.TFRecordWriter(FOLDER / "x").write("a"), DTypeError, "not str", "encode"),
    "a closed writer": (lambda: closed().write(b"a"), E.FailedPreconditionError, "is closed"),
    "a full disk": (lambda: written_to(full()), E.ResourceExhaustedError, "No space left"),
    "a matrix in a graph": (
        lambda: PARSE.specs([df.TensorSpec([1, 1], df.string)], {"plan": ()}),
        InvalidArgumentError,
        "vector of strings",
    ),
    "a vector of sequences in a graph": (
        lambda: PARSE_SEQUENCE.specs([df.TensorSpec([1], df.string)], {"context": (), "steps": ()}),
        InvalidArgumentError,
        "is one string",
    ),
    "a wrong length": (
        lambda: read(b"\x04" + RECORD[1:]),
        DataLossError,
        "at 0 in .*damaged.*checksum of its length",
        "again",
    ),
    "wrong data": (
        lambda: read(RECORD + RECORD[:12] + b"X" + RECORD[13:]),
        DataLossError,
        "at 19 in .*checksum of its data",
    ),
    "a cut file": (
        lambda: read(RECORD + RECORD[:-1]),
        DataLossError,
        "at 19 in .*: 1 bytes of it are missing",
    ),
    "a cut stream": (lambda: read(zlib_file()[:-5], "ZLIB"), DataLossError, "compressed data are damaged"),
}


def zlib_file() -> bytes:
    path = FOLDER / "compressed"
    with io.TFRecordWriter(path, "ZLIB") as writer:
        for _ in range(100):
            writer.write(os.urandom(100))
    return path.read_bytes()


class TestErrorMessages(ErrorCases):
    cases = CASES
    internal = (
        "a matrix in a graph",
        "a vector of sequences in a graph",
        "one sequence in a graph",
        "a cut last varint",
        "a long varint of many",
        "five bytes of floats",
    )
    raised_in = ("ops/records/*.py",)
