"""The capabilities of the Numba backend."""

from __future__ import annotations

from dualflow.graph.capabilities import Capabilities
from dualflow.graph.ir import Graph, Node

CAPABILITIES = Capabilities(
    dtypes="?bBhHiIlLqQfd",
    size_scalars=False,
    integer_products=False,
    integer_matrices=False,
    host_calls_in_bodies=False,
    product_epilogues=False,
    windows=False,
    fourier=False,
    collectives=False,
)


def capabilities() -> Capabilities:
    """The capabilities, which are the same on every machine."""
    return CAPABILITIES


def has_kernel(node: Node) -> bool:
    """Whether a fused node can be a kernel: kernels support the dtypes of all its values."""
    body: Graph = node.attrs["body"]
    values = (*body.inputs, *(v for n in body.nodes for v in n.outputs))
    return all(v.spec.dtype.char in CAPABILITIES.dtypes and not v.spec.dtype.narrow for v in values)
