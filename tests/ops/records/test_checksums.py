"""CRC-32C by NumPy, compared with its definition: the remainder of a polynomial division, bit by bit."""

from __future__ import annotations

import random

import pytest

from dualflow.ops.records.checksums import checksum, checksums, masked


def divided(data: bytes) -> int:
    """The definition: a register that is shifted by each bit of ``data``, the lowest bit of a byte first."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ 0x82F63B78 * (register & 1)
    return register ^ 0xFFFFFFFF


SIZES = [*range(10), 63, 64, 65, 127, 128, 129, 191, 192, 193, 511, 512, 513, 640, 4095, 20000]


@pytest.mark.parametrize("seed", range(3))
def test_many_checksums_are_those_of_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    strings = [rng.randbytes(n) for n in SIZES] + [bytes(700), b"\xff" * 700]
    rng.shuffle(strings)
    assert checksums(strings).tolist() == [divided(s) for s in strings]
    assert [checksum(s) for s in strings] == [divided(s) for s in strings]


def test_no_strings_have_no_checksums() -> None:
    assert checksums([]).tolist() == []
    assert checksums([b"", b""]).tolist() == [0, 0]


def test_published_values() -> None:
    """RFC 3720, appendix B.4; and the masked value of the length of an empty TFRecord."""
    assert checksum(bytes(32)) == 0x8A9136AA
    assert checksum(b"\xff" * 32) == 0x62A8AB43
    assert checksum(bytes(range(32))) == 0x46DD794E
    assert masked(checksum(bytes(8))) == 0x07980329
