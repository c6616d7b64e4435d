"""CRC-32C of many byte strings at once, by NumPy.

A CRC without its initial value is linear over bits: the checksum of 64 bytes is the exclusive or of one table
entry for each byte, where each place has its own table. Blocks of 64 bytes are combined in pairs: the left
one is multiplied by the polynomial of as many zero bytes as the right one has, by four more tables. Zero
bytes before a string change nothing, so that strings are padded there. The initial value is an exclusive or
with the first four bytes.

Koopman, "32-bit cyclic redundancy codes for Internet applications", 2002, has the polynomial; the rotation
by 15 bits and the added number are those of TFRecord files (masked checksums).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from dualflow.core.convert import Array

_POLYNOMIAL: Final = 0x82F63B78
_BLOCK: Final = 64
_BLOCKS_AT_A_TIME: Final = 512
"""The number of blocks whose table entries fit into a cache."""
_MAX_LOOPED: Final = 512
"""Up to this number of bytes a Python loop is faster."""
_MASK: Final = 0xA282EAD8


def masked(checksum: int) -> int:
    """The form in which TFRecord files store a checksum.

    >>> hex(masked(0xE3069283))
    '0xc78ab0e5'
    """
    return ((checksum >> 15 | checksum << 17) + _MASK) & 0xFFFFFFFF


def checksum(data: bytes) -> int:
    """The CRC-32C of a byte string.

    >>> hex(checksum(b"123456789"))
    '0xe3069283'
    """
    if len(data) > _MAX_LOOPED:
        return int(_linear([data])[0]) ^ 0xFFFFFFFF
    table = _byte_table()
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def checksums(strings: Sequence[bytes]) -> Array:
    """The CRC-32C of each byte string, as uint32.

    >>> [hex(x) for x in checksums([b"123456789", b"", bytes(1000)])]
    ['0xe3069283', '0x0', '0xd84dda57']
    """
    if sum(map(len, strings)) <= _MAX_LOOPED:
        return np.array([checksum(s) for s in strings], np.uint32)
    results = np.zeros(len(strings), np.uint32)
    short = [i for i, s in enumerate(strings) if len(s) < 4]
    for i in short:
        results[i] = checksum(strings[i])
    long = [i for i, s in enumerate(strings) if len(s) >= 4]
    if long:
        results[long] = _linear([strings[i] for i in long]) ^ np.uint32(0xFFFFFFFF)
    return results


def _linear(strings: Sequence[bytes]) -> Array:
    """The checksums, without the final inversion, of strings of at least four bytes."""
    sizes = np.array([len(s) for s in strings])
    parts: list[bytes] = []
    for string in strings:
        parts += [_ZEROS[: -len(string) % _BLOCK], string]
    data = np.frombuffer(bytearray().join(parts), np.uint8)
    counts = -(-sizes // _BLOCK)
    starts = np.cumsum(counts) * _BLOCK - sizes
    for index in range(4):
        data[starts + index] ^= 0xFF
    return _combined(_block_checksums(data.reshape(-1, _BLOCK)), counts)


def _block_checksums(blocks: Array) -> Array:
    table, indices = _place_tables(), np.arange(_BLOCK) * 256
    results = np.empty(len(blocks), np.uint32)
    for start in range(0, len(blocks), _BLOCKS_AT_A_TIME):
        part = blocks[start : start + _BLOCKS_AT_A_TIME]
        results[start : start + _BLOCKS_AT_A_TIME] = np.bitwise_xor.reduce(table.take(part + indices), axis=1)
    return results


def _combined(crcs: Array, counts: Array) -> Array:
    """The checksum of each run of ``counts`` blocks."""
    level = 0
    while (counts > 1).any():
        odd = counts % 2
        width = counts + odd
        padded = np.zeros(int(width.sum()), np.uint32)
        indices = np.arange(len(crcs)) + np.repeat(np.cumsum(odd), counts)
        padded[indices] = crcs
        crcs = _shifted(padded[::2], level) ^ padded[1::2]
        counts = width // 2
        level += 1
    return crcs


def _shifted(crcs: Array, level: int) -> Array:
    """The checksums of the same bytes and ``64 * 2**level`` zero bytes after them."""
    tables = _shift_tables(level)
    result = tables[0][crcs & 0xFF]
    for i in range(1, 4):
        result ^= tables[i][crcs >> np.uint32(8 * i) & 0xFF]
    return result


@cache
def _byte_table() -> list[int]:
    table = []
    for crc in range(256):
        for _ in range(8):
            crc = crc >> 1 ^ _POLYNOMIAL * (crc & 1)
        table.append(crc)
    return table


@cache
def _place_tables() -> Any:
    """The checksum of a block with one byte that is not zero, at ``place * 256 + byte``."""
    table = np.array(_byte_table(), np.uint32)
    tables = [table]
    for _ in range(_BLOCK - 1):
        tables.append(table[tables[-1] & 0xFF] ^ tables[-1] >> np.uint32(8))
    return np.concatenate(tables[::-1])


@cache
def _shift_tables(level: int) -> Array:
    """Tables that append ``64 * 2**level`` zero bytes to a checksum: one for each of its bytes, (4, 256)."""
    if level:
        before = _shift_tables(level - 1)
        return _shifted(before.ravel(), level - 1).reshape(4, 256)
    tables = np.arange(256, dtype=np.uint32) << np.uint32(8) * np.arange(4, dtype=np.uint32)[:, None]
    bytewise = np.array(_byte_table(), np.uint32)
    for _ in range(_BLOCK):
        tables = bytewise[tables & 0xFF] ^ tables >> np.uint32(8)
    return tables


_ZEROS: Final = bytes(_BLOCK)
