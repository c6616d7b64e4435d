"""Hash buckets: the numbers are TensorFlow's, for strings of every length class of the hashes."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.ops.text.hashes import fingerprint64, hash_strings, siphash

S = df.strings
TEXTS = [bytes((i * 7 + j * 13) % 256 for j in range(i)) for i in range(200)]
BUCKETS = 2**62


def checksum(buckets: Any) -> int:
    """A checksum of integers, to compare many with those of TensorFlow."""
    return zlib.crc32(buckets.numpy().astype("<i8").tobytes())


def test_siphash_has_the_published_values() -> None:
    """The first and last vectors of the reference implementation: key 0 1 2 ... 15, message 0 1 2 ..."""
    key = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
    messages = [bytes(range(n)) for n in (0, 1, 8, 15, 63)]
    hashes = hash_strings(messages, lambda rows: siphash(rows, key)).tolist()
    assert hashes == [
        0x726FDB47DD0E0E31,
        0x74F839C593DC67FD,
        0x93F5F5799A932462,
        0xA129CA6149BE45E5,
        0x958A324CEB064572,
    ]


def test_the_buckets_are_those_of_tensorflow() -> None:
    """Checksums of the buckets of TensorFlow 2.21, for strings of 0 to 199 bytes."""
    assert checksum(S.to_hash_bucket_fast(TEXTS, BUCKETS)) == 3954640093
    assert checksum(S.to_hash_bucket_strong(TEXTS, BUCKETS, [123456789, 987654321])) == 903479948
    assert checksum(S.to_hash_bucket(TEXTS, BUCKETS)) == 2118273317


def test_a_hash_does_not_depend_on_the_other_strings() -> None:
    hashes = hash_strings(TEXTS, fingerprint64)
    assert [hash_strings([text], fingerprint64)[0] for text in TEXTS] == hashes.tolist()
    assert hash_strings([], fingerprint64).shape == (0,)


@pytest.mark.parametrize("function", [S.to_hash_bucket_fast, S.to_hash_bucket])
def test_buckets_have_the_shape_of_the_strings(function: Any) -> None:
    words = df.constant([["a", "b"], ["a", ""]])
    buckets = function(words, 10).numpy()
    assert buckets.shape == (2, 2)
    assert buckets[0, 0] == buckets[1, 0]
    assert np.all((buckets >= 0) & (buckets < 10))
    assert df.function(lambda x: function(x, 10))(words).numpy().tolist() == buckets.tolist()
    ragged = function(df.ragged.constant([["a", "b"], [], [""]]), 10).to_list()
    assert ragged == [buckets[0].tolist(), [], [buckets[1, 1]]]
