"""The digest that names cache entries and long expressions, and detects damage: BLAKE2b of 32 bytes."""

from __future__ import annotations

from typing import Final

try:
    from _blake2 import blake2b  # hashlib loads OpenSSL too, which takes 3 ms
except ImportError:
    from hashlib import blake2b

SIZE: Final = 32
"""Bytes of a digest."""


def digest(content: bytes) -> bytes:
    """The digest of ``content``.

    >>> len(digest(b"any")) == SIZE
    True
    """
    return blake2b(content, digest_size=SIZE).digest()
