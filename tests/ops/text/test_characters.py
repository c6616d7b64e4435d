"""Characters, code points and n-grams of strings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df
from dualflow.core.errors import InvalidArgumentError

S = df.strings
TEXTS = st.lists(st.text(max_size=8), max_size=4)
CODECS = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}
ENCODINGS = st.sampled_from([*CODECS])


def strings(texts: list[str], encoding: str) -> Any:
    return df.constant([text.encode(CODECS[encoding]) for text in texts], df.string, [len(texts)])


@given(TEXTS, ENCODINGS)
def test_code_points_are_those_of_python(texts, encoding):
    points, offsets = S.unicode_decode_with_offsets(strings(texts, encoding), encoding)
    assert points.dtype is df.int32
    assert offsets.dtype is df.int64
    assert points.to_list() == S.unicode_decode(strings(texts, encoding), encoding).to_list()
    assert points.to_list() == [[ord(c) for c in text] for text in texts]
    assert offsets.to_list() == [
        [len(text[:i].encode(CODECS[encoding])) for i in range(len(text))] for text in texts
    ]


@given(st.binary(max_size=12), st.integers(240, 260), ENCODINGS)
def test_invalid_bytes_are_replaced_as_in_python_wherever_they_are(data, before, encoding):
    """Long strings are decoded in windows, which may end inside a character."""
    whole = b"\0\0\0a" * (before // 4) + data * 20
    expected = list(map(ord, whole.decode(CODECS[encoding], "replace")))
    assert S.unicode_decode(whole, encoding).numpy().tolist() == expected


@given(TEXTS, ENCODINGS)
def test_characters_joined_are_the_strings(texts, encoding):
    x = strings(texts, encoding)
    characters, _ = S.unicode_split_with_offsets(x, encoding)
    assert characters.to_list() == [[c.encode(CODECS[encoding]) for c in text] for text in texts]
    assert S.reduce_join(characters, axis=-1).numpy().tolist() == x.numpy().tolist()


@given(TEXTS, ENCODINGS, ENCODINGS)
def test_encoding_inverts_decoding_in_any_encoding(texts, encoding, other):
    points = S.unicode_decode(strings(texts, encoding), encoding)
    expected = [text.encode(CODECS[other]) for text in texts]
    assert S.unicode_encode(points, other).numpy().tolist() == expected
    assert S.unicode_transcode(strings(texts, encoding), encoding, other).numpy().tolist() == expected


def test_invalid_bytes_are_replaced_left_out_or_refused():
    x = b"a\xffb\xc3"
    assert S.unicode_decode(x, "UTF-8").numpy().tolist() == [97, 65533, 98, 65533]
    assert S.unicode_decode(x, "UTF-8", replacement_char=63).numpy().tolist() == [97, 63, 98, 63]
    points, offsets = S.unicode_decode_with_offsets(x, "UTF-8", errors="ignore")
    assert (points.numpy().tolist(), offsets.numpy().tolist()) == ([97, 98], [0, 2])
    assert S.unicode_split(x, "UTF-8").numpy()[1] == "\ufffd".encode()
    with pytest.raises(InvalidArgumentError, match=r"is not UTF-8: .* at byte 1"):
        S.unicode_decode(x, "UTF-8", errors="strict")


def test_integers_that_are_no_code_points_are_replaced_left_out_or_refused():
    x = [97, -1, 0xD800, 0x110000, 98]
    assert S.unicode_encode(x, "UTF-8", replacement_char=63).numpy() == b"a???b"
    assert S.unicode_encode(x, "UTF-8", errors="ignore").numpy() == b"ab"
    with pytest.raises(InvalidArgumentError, match="-1 is no code point"):
        S.unicode_encode(x, "UTF-8", errors="strict")


def test_control_characters_are_replaced_on_request():
    options = {"replace_control_characters": True, "replacement_char": 45}
    assert S.unicode_decode("a\n\tb", "UTF-8", **options).numpy().tolist() == [97, 45, 45, 98]
    assert S.unicode_transcode("a\n\tb", "UTF-8", "UTF-8", **options).numpy() == b"a--b"


@pytest.mark.parametrize("encoding", ["us ascii", "utf8", "UTF_16BE"])
def test_names_of_encodings_are_compared_by_letters_and_digits(encoding):
    data = "ab".encode(encoding.replace(" ", "-"))
    assert S.unicode_decode(data, encoding).numpy().tolist() == [97, 98]


@pytest.mark.parametrize("encoding", ["US-ASCII", "ISO-8859-1"])
def test_single_byte_encodings_are_decoded(encoding):
    expected = 233 if encoding == "ISO-8859-1" else 65533
    assert S.unicode_decode(b"\xe9", encoding).numpy().tolist() == [expected]


def test_axes_stay_and_one_is_added():
    x = df.constant([["ab", "c"], ["", "d"]])
    assert S.unicode_split(x, "UTF-8").to_list() == [[[b"a", b"b"], [b"c"]], [[], [b"d"]]]
    assert S.unicode_encode(S.unicode_decode(x, "UTF-8"), "UTF-8").to_list() == x.numpy().tolist()
    assert S.unicode_encode([[[97, 98]], [[99, 100]]], "UTF-8").numpy().tolist() == [[b"ab"], [b"cd"]]
    rows = df.ragged.constant([["ab"], ["c", "de"]])
    assert S.unicode_split(rows, "UTF-8").to_list() == [[[b"a", b"b"]], [[b"c"], [b"d", b"e"]]]


def test_characters_of_strings_in_functions_and_datasets():
    split = df.function(lambda x: S.unicode_split(x, "UTF-8"))
    for texts in (["ab", "é"], ["xyz", "", "q"]):
        assert split(df.constant(texts)).to_list() == [[c.encode() for c in text] for text in texts]
    rows = df.data.Dataset.from_tensor_slices(["ab", "c"]).map(lambda x: S.unicode_decode(x, "UTF-8"))
    assert [row.tolist() for row in rows.as_numpy_iterator()] == [[97, 98], [99]]


def test_rows_of_strings_are_joined():
    x = df.ragged.constant([["a", "b"], [], ["c"]])
    assert S.reduce_join(x, axis=-1, separator="-").numpy().tolist() == [b"a-b", b"", b"c"]
    assert S.reduce_join(x, axis=1, keepdims=True).numpy().tolist() == [[b"ab"], [b""], [b"c"]]
    assert S.reduce_join(x, separator=",").numpy() == b"a,b,,c"
    deep = df.ragged.constant([[["a", "b"], ["c"]], [["d"]]])
    assert S.reduce_join(deep, axis=2).to_list() == [[b"ab", b"c"], [b"d"]]
    assert S.reduce_join(deep).numpy() == b"abcd"
    assert df.function(lambda x: S.reduce_join(x, axis=-1))(x).numpy().tolist() == [b"ab", b"", b"c"]


# N-grams


@given(
    st.lists(st.lists(st.sampled_from("abc"), max_size=5), max_size=3),
    st.lists(st.integers(1, 4), min_size=1, max_size=2),
)
def test_ngrams_are_runs_of_their_width(rows, widths):
    data = df.RaggedTensor.from_row_lengths(
        df.constant([x for row in rows for x in row], df.string),
        np.array([len(row) for row in rows], np.int64),
    )
    expected = [
        ["-".join(row[i : i + width]).encode() for width in widths for i in range(len(row) - width + 1)]
        for row in rows
    ]
    assert S.ngrams(data, widths, separator="-").to_list() == expected


def test_sequences_are_padded():
    x = ["a", "b"]
    assert S.ngrams(x, 3, pad_values="_").numpy().tolist() == [b"_ _ a", b"_ a b", b"a b _", b"b _ _"]
    assert S.ngrams(x, 3, pad_values=("<", ">"), padding_width=1).numpy().tolist() == [b"< a b", b"a b >"]
    assert S.ngrams(x, 1, pad_values="_").numpy().tolist() == [b"a", b"b"]


def test_short_sequences_are_one_run_on_request():
    x = df.ragged.constant([["a"], [], ["b", "c", "d"]])
    assert S.ngrams(x, 3).to_list() == [[], [], [b"b c d"]]
    assert S.ngrams(x, 3, preserve_short_sequences=True).to_list() == [[b"a"], [], [b"b c d"]]


def test_ngrams_of_a_tensor_are_ragged_and_compile():
    x = df.constant([[["a", "b"]], [["c", "d"]]])
    assert S.ngrams(x, 2).to_list() == [[[b"a b"]], [[b"c d"]]]
    assert df.function(lambda x: S.ngrams(x, 2))(df.constant(["a", "b", "c"])).numpy().tolist() == [
        b"a b",
        b"b c",
    ]
