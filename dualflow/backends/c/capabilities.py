"""The capabilities of exported C programs."""

from __future__ import annotations

from dualflow.graph.capabilities import Capabilities

CAPABILITIES = Capabilities(
    dtypes="?bBhHiIlLqQfdFD",
    size_scalars=False,
    integer_products=False,
    integer_matrices=False,
    strided_host_calls=False,
    host_calls_in_bodies=False,
    product_epilogues=False,
    windows=False,
    fourier=False,
    collectives=False,
    vector_bytes=32,
    threads=1,
)


def capabilities() -> Capabilities:
    """The capabilities, which are the same on every machine."""
    return CAPABILITIES
