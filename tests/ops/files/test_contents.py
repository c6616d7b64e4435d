"""Decoding of byte strings: numbers, tables, compressed data. Values are those of TensorFlow 2.21."""

import gzip
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df

io = df.io


@given(st.sampled_from(["int8", "uint16", "int64", "float32", "complex64", "bool"]), st.booleans(), st.data())
def test_numbers_come_back_from_their_bytes(dtype, little, data):
    numbers = np.array(data.draw(st.lists(st.integers(0, 1), max_size=4)), dtype)
    part = np.dtype(f"<f{numbers.itemsize // 2}") if numbers.dtype.kind == "c" else numbers.dtype
    ordered = numbers.view(part).astype(part.newbyteorder("<" if little else ">"))
    result = io.decode_raw([ordered.tobytes()], dtype, little_endian=little)
    np.testing.assert_array_equal(result, numbers[None])


def test_raw_bytes_have_an_axis_of_their_own():
    assert io.decode_raw([[b"ab"], [b"cd"]], df.uint8).shape == (2, 1, 2)
    assert io.decode_raw(b"", df.float32).shape == (0,)
    assert io.decode_raw(df.constant([], df.string), df.uint8).shape == (0, 0)
    assert io.decode_raw(b"\x01\x00\x80\x3f", df.bfloat16)[1].numpy() == 1.0


def test_a_fixed_length_cuts_and_pads():
    result = io.decode_raw([b"ab", b"cdefgh"], df.uint8, fixed_length=4)
    assert result.numpy().tolist() == [[97, 98, 0, 0], [99, 100, 101, 102]]


def test_base64_is_safe_in_addresses():
    assert io.encode_base64(["hello?", "a"], pad=True).numpy().tolist() == [b"aGVsbG8_", b"YQ=="]
    assert io.decode_base64(["aGVsbG8_", "aGVsbG8", "aGVsbG8=", "_-4"]).numpy().tolist() == [
        b"hello?",
        b"hello",
        b"hello",
        b"\xff\xee",
    ]


@pytest.mark.parametrize(
    ("kind", "compress"), [("ZLIB", zlib.compress), ("GZIP", gzip.compress), ("", bytes)]
)
def test_compressed_data_come_back(kind, compress):
    assert io.decode_compressed([compress(b"abc" * 50), compress(b"")], kind).numpy().tolist() == [
        b"abc" * 50,
        b"",
    ]


TABLES = {
    "three kinds": (lambda: io.decode_csv("1,2,a", [[0], [0.0], [""]]), [1, 2.0, b"a"]),
    "two records": (lambda: io.decode_csv(["1,a", "3,b"], [[0], [""]]), [[1, 3], [b"a", b"b"]]),
    "defaults": (lambda: io.decode_csv("1,,", [[0], [7.5], ["d"]]), [1, 7.5, b"d"]),
    "scalars as defaults": (lambda: io.decode_csv("1,", [0, "d"]), [1, b"d"]),
    "quotes": (lambda: io.decode_csv('"a,b","c""d","e\nf"', [""] * 3), [b"a,b", b'c"d', b"e\nf"]),
    "no quotes": (lambda: io.decode_csv('"a""b",c', [""] * 2, use_quote_delim=False), [b'"a""b"', b"c"]),
    "another delimiter": (lambda: io.decode_csv("1 2", [0, 0], field_delim=" "), [1, 2]),
    "some columns": (lambda: io.decode_csv("1,2,3", [0, 0], select_cols=[0, 2]), [1, 3]),
    "another empty field": (lambda: io.decode_csv('NA,"NA"', ["d", 5], na_value="NA"), [b"d", 5]),
    "spaces": (lambda: io.decode_csv(" 1 , b", [0, ""]), [1, b" b"]),
    "empty quotes": (lambda: io.decode_csv('"",x', ["d", ""]), [b"d", b"x"]),
    "other numbers": (
        lambda: io.decode_csv(
            "1e3,0x10,5", [0.0, df.constant([1.0], df.float64), df.constant([1], df.int64)]
        ),
        [1000.0, 16.0, 5],
    ),
    "no records": (lambda: io.decode_csv(df.constant([], df.string), [0]), [[]]),
    "records of two axes": (lambda: io.decode_csv([["1"], ["2"]], [0]), [[[1], [2]]]),
}


@pytest.mark.parametrize("case", TABLES)
def test_the_columns_of_a_table(case, mode):
    call, expected = TABLES[case]
    columns = [x.numpy() for x in mode(call)()]
    assert [x if isinstance(x, bytes) else x.tolist() for x in columns] == expected


def test_columns_have_the_dtypes_of_their_defaults():
    defaults = [1, 1.0, "", df.constant([1], df.int64), df.constant(1.0, df.float64)]
    result = io.decode_csv("1,1,1,1,1", defaults)
    assert [x.dtype for x in result] == [df.int32, df.float32, df.string, df.int64, df.float64]
