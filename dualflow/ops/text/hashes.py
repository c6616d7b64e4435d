"""Hashes of byte strings, computed for all strings of one length at once.

The numbers are those of FarmHash, SipHash and MurmurHash, which TensorFlow uses, and so never change.
Sources: FarmHash, Google, MIT licence (Fingerprint64, which is ``farmhashna::Hash64``); Aumasson and
Bernstein, SipHash: a fast short-input PRF, 2012; Appleby, MurmurHash64A, public domain.

A function takes a matrix of bytes, whose rows are strings of equal length, and returns a uint64 for each row.
Integers of arrays wrap around, as these hashes require; constants are therefore arrays of one element, since
NumPy warns when a scalar overflows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

Words = np.ndarray[Any, np.dtype[np.uint64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def _word(value: int) -> Words:
    return np.array([value & 0xFFFFFFFFFFFFFFFF], np.uint64)


_K0: Final = _word(0xC3A5C85C97CB3127)
_K1: Final = _word(0xB492B66FBE98F273)
_K2: Final = _word(0x9AE16A3B2F90404F)
_MURMUR: Final = _word(0xC6A4A7935BD1E995)
_MURMUR_SEED: Final = 0xDECAFCAFFE


def hash_strings(strings: Sequence[bytes], function: Callable[[Bytes], Words]) -> Words:
    """The hash of each string: ``function`` is called once for each length that occurs."""
    by_length: defaultdict[int, list[int]] = defaultdict(list)
    for i, text in enumerate(strings):
        by_length[len(text)].append(i)
    hashes = np.empty(len(strings), np.uint64)
    for length, indices in by_length.items():
        joined = b"".join([strings[i] for i in indices])
        hashes[indices] = function(np.frombuffer(joined, np.uint8).reshape(len(indices), length))
    return hashes


def _load(rows: Bytes, start: int) -> Words:
    """The eight bytes from ``start`` on as a little-endian integer, of each row."""
    return np.ascontiguousarray(rows[:, start : start + 8]).view("<u8")[:, 0].astype(np.uint64)


def _load32(rows: Bytes, start: int) -> Words:
    return np.ascontiguousarray(rows[:, start : start + 4]).view("<u4")[:, 0].astype(np.uint64)


def _byte(rows: Bytes, at: int) -> Words:
    return rows[:, at].astype(np.uint64)


def _rotate_right(x: Words, bits: int) -> Words:
    return (x >> np.uint64(bits)) | (x << np.uint64(64 - bits))


def _rotate_left(x: Words, bits: int) -> Words:
    return _rotate_right(x, 64 - bits)


def _mix(x: Words) -> Words:
    return x ^ (x >> np.uint64(47))


def _combine(u: Words, v: Words, factor: Words) -> Words:
    mixed = _mix((u ^ v) * factor)
    return _mix((v ^ mixed) * factor) * factor


def fingerprint64(rows: Bytes) -> Words:
    """FarmHash's Fingerprint64 of each row."""
    length = rows.shape[1]
    if length <= 16:
        return _fingerprint_up_to_16(rows, length)
    if length <= 32:
        return _fingerprint_up_to_32(rows, length)
    return _fingerprint_up_to_64(rows, length) if length <= 64 else _fingerprint_of_blocks(rows, length)


def _fingerprint_up_to_16(rows: Bytes, length: int) -> Words:
    factor = _K2 + _word(2 * length)
    if length >= 8:
        first, last = _load(rows, 0) + _K2, _load(rows, length - 8)
        u = _rotate_right(last, 37) * factor + first
        return _combine(u, (_rotate_right(first, 25) + last) * factor, factor)
    if length >= 4:
        first = _load32(rows, 0)
        return _combine(_word(length) + (first << np.uint64(3)), _load32(rows, length - 4), factor)
    if length:
        y = _byte(rows, 0) + (_byte(rows, length // 2) << np.uint64(8))
        z = _word(length) + (_byte(rows, length - 1) << np.uint64(2))
        return _mix(y * _K2 ^ z * _K0) * _K2
    return np.repeat(_K2, len(rows))


def _fingerprint_up_to_32(rows: Bytes, length: int) -> Words:
    factor = _K2 + _word(2 * length)
    a, b = _load(rows, 0) * _K1, _load(rows, 8)
    c, d = _load(rows, length - 8) * factor, _load(rows, length - 16) * _K2
    u = _rotate_right(a + b, 43) + _rotate_right(c, 30) + d
    return _combine(u, a + _rotate_right(b + _K2, 18) + c, factor)


def _fingerprint_up_to_64(rows: Bytes, length: int) -> Words:
    factor = _K2 + _word(2 * length)
    a, b = _load(rows, 0) * _K2, _load(rows, 8)
    c, d = _load(rows, length - 8) * factor, _load(rows, length - 16) * _K2
    y = _rotate_right(a + b, 43) + _rotate_right(c, 30) + d
    z = _combine(y, a + _rotate_right(b + _K2, 18) + c, factor)
    e, f = _load(rows, 16) * factor, _load(rows, 24)
    g, h = (y + _load(rows, length - 32)) * factor, (z + _load(rows, length - 24)) * factor
    u = _rotate_right(e + f, 43) + _rotate_right(g, 30) + h
    return _combine(u, e + _rotate_right(f + a, 18) + g, factor)


Pair = tuple[Words, Words]


def _hash_32_bytes(rows: Bytes, start: int, a: Words, b: Words) -> Pair:
    w, x, y, z = (_load(rows, start + offset) for offset in (0, 8, 16, 24))
    a = a + w
    b = _rotate_right(b + a + z, 21)
    total = a + x + y
    return total + z, b + _rotate_right(total, 44) + a


def _fingerprint_of_blocks(rows: Bytes, length: int) -> Words:
    """The hash of more than 64 bytes: blocks of 64, then the last 64 bytes, which may overlap a block."""
    zero = _word(0)
    y = _word(81) * _K1 + _word(113)
    x, z = _word(81) * _K2 + _load(rows, 0), _mix(y * _K2 + _word(113)) * _K2
    state = x, y, z, (zero, zero), (zero, zero)
    for start in range(0, (length - 1) // 64 * 64, 64):
        state = _hash_block(rows, start, state, _K1, _word(1))
    x, y, z, v, w = state
    factor = _K1 + ((z & _word(0xFF)) << np.uint64(1))
    w0 = w[0] + _word((length - 1) & 63)
    v0 = v[0] + w0
    state = x, y, z, (v0, v[1]), (w0 + v0, w[1])
    x, y, z, v, w = _hash_block(rows, length - 64, state, factor, _word(9))
    u = _combine(v[0], w[0], factor) + _mix(y) * _K0 + z
    return _combine(u, _combine(v[1], w[1], factor) + x, factor)


State = tuple[Words, Words, Words, Pair, Pair]


def _hash_block(rows: Bytes, start: int, state: State, factor: Words, weight: Words) -> State:
    x, y, z, v, w = state
    x = _rotate_right(x + y + v[0] + _load(rows, start + 8), 37) * factor
    y = _rotate_right(y + v[1] + _load(rows, start + 48), 42) * factor
    x = x ^ (w[1] * weight)
    y = y + v[0] * weight + _load(rows, start + 40)
    z = _rotate_right(z + w[0], 33) * factor
    v = _hash_32_bytes(rows, start, v[1] * factor, x + w[0])
    w = _hash_32_bytes(rows, start + 32, z + w[1], y + _load(rows, start + 16))
    return z, y, x, v, w


def combined_fingerprints(first: Words, second: Words) -> Words:
    """FarmHash's fingerprint of two fingerprints, element by element."""
    mixed = (first ^ _MURMUR) ^ (_mix(second * _MURMUR) * _MURMUR)
    return _mix(_mix(mixed * _MURMUR) * _MURMUR)


def siphash(rows: Bytes, key: tuple[int, int]) -> Words:
    """SipHash-2-4 of each row, with a key of two 64-bit integers."""
    length = rows.shape[1]
    k0, k1 = _word(key[0]), _word(key[1])
    v = (
        k0 ^ _word(0x736F6D6570736575),
        k1 ^ _word(0x646F72616E646F6D),
        k0 ^ _word(0x6C7967656E657261),
        k1 ^ _word(0x7465646279746573),
    )
    padded = np.zeros((len(rows), length // 8 * 8 + 8), np.uint8)
    padded[:, :length] = rows
    padded[:, -1] = length & 0xFF
    for start in range(0, padded.shape[1], 8):
        message = _load(padded, start)
        v = v[0], v[1], v[2], v[3] ^ message
        v = _sip_round(_sip_round(v))
        v = v[0] ^ message, v[1], v[2], v[3]
    v = v[0], v[1], v[2] ^ _word(0xFF), v[3]
    for _ in range(4):
        v = _sip_round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


SipState = tuple[Words, Words, Words, Words]


def _sip_round(v: SipState) -> SipState:
    a, b, c, d = v
    a, c = a + b, c + d
    b, d = _rotate_left(b, 13) ^ a, _rotate_left(d, 16) ^ c
    a = _rotate_left(a, 32)
    c, a = c + b, a + d
    b, d = _rotate_left(b, 17) ^ c, _rotate_left(d, 21) ^ a
    return a, b, _rotate_left(c, 32), d


def murmur64(rows: Bytes) -> Words:
    """MurmurHash64A of each row, with TensorFlow's seed."""
    length = rows.shape[1]
    hashes = np.repeat(_word(_MURMUR_SEED) ^ (_word(length) * _MURMUR), len(rows))
    for start in range(0, length // 8 * 8, 8):
        block = _mix(_load(rows, start) * _MURMUR) * _MURMUR
        hashes = (hashes ^ block) * _MURMUR
    if length % 8:
        tail = np.zeros((len(rows), 8), np.uint8)
        tail[:, : length % 8] = rows[:, length // 8 * 8 :]
        hashes = (hashes ^ _load(tail, 0)) * _MURMUR
    return _mix(_mix(hashes) * _MURMUR)
