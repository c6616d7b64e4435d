"""Capabilities: what the programs of a backend can do on this machine.

Passes, the plan and the schedule read them, and no name of a backend. A backend declares its own, in a module
``capabilities`` that imports no compiler; a compile may request less.
"""

from __future__ import annotations

from typing import Final

from dualflow.core.records import NamedTuple, dataclass

KERNEL_DTYPES = "?bBhHiIlLqQefdFD"
"""Characters of the dtypes that loops hold; narrower floats are read and written as float32."""


class CacheBytes(NamedTuple):
    """The sizes of a processor's nearest and last data caches, by default of the cost model's processor."""

    near: int = 1 << 15
    last: int = 1 << 25


CPU_CACHES: Final = CacheBytes()
"""The caches of the processor on which the cost model was measured."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The features that a program may use. The default is all that statements can express.

    Attributes:
        dtypes: characters of the dtypes that kernels compute with. A kernel of others runs through NumPy.
        strided_products: whether matrix products read operands of any strides; if not, only what BLAS reads.
        integer_products: whether there is a routine for matrix products of 8-bit integers.
        integer_matrices: whether there is code for products of matrices of any integers.
        strided_host_calls: whether the kernels of ops that run outside of loops read operands of any strides.
        host_calls_in_bodies: whether conditionals and loops of a program contain host calls. If not, one that
            does is a host call itself.
        complex_products: whether there is code for products of complex matrices, or for their parts alone.
        product_epilogues: whether the kernel of a matrix product computes elementwise ops of its elements.
        windows: whether products, and sums, read the windows of a tensor in place.
        fourier: whether there is a routine for Fourier transforms of long rows.
        collectives: whether machine code exchanges tensors with other workers.
        symbolic_sizes: whether a program serves sizes that are known only at run time.
        size_scalars: whether kernels have arguments that a call computes from sizes.
        vector_bytes: the width of vector registers; None for the processor's.
        cache_bytes: the sizes of the data caches; None for the processor's.
        threads: the number of threads that may share a loop: 1 for the caller alone, None for as many as the
            process uses. If all graphs share one thread pool, any other number means None.
        concurrent_calls: the number of calls of one graph that may run at the same time; None for as many as
            the backend runs, which is one if it doesn't have this attribute either.
        device: the full name of the device in whose memory programs compute; None for that of the host.

    >>> less = Capabilities(fourier=False, threads=1)
    >>> less & Capabilities(windows=False, vector_bytes=32) == Capabilities(
    ...     windows=False, fourier=False, vector_bytes=32, threads=1
    ... )
    True
    """

    dtypes: str = KERNEL_DTYPES
    strided_products: bool = True
    strided_host_calls: bool = True
    host_calls_in_bodies: bool = True
    integer_products: bool = True
    integer_matrices: bool = True
    complex_products: bool = True
    product_epilogues: bool = True
    windows: bool = True
    fourier: bool = True
    collectives: bool = True
    symbolic_sizes: bool = True
    size_scalars: bool = True
    vector_bytes: int | None = None
    cache_bytes: CacheBytes | None = None
    threads: int | None = None
    concurrent_calls: int | None = None
    device: str | None = None

    @property
    def complex_numbers(self) -> bool:
        """Whether kernels compute with complex numbers."""
        return "F" in self.dtypes and "D" in self.dtypes

    @property
    def call_threads(self) -> int:
        """The number of calls of one graph that may run at the same time; 1 for one after another."""
        return 1 if self.threads == 1 else self.concurrent_calls or 1

    def __and__(self, other: Capabilities) -> Capabilities:
        """The capabilities that both have; numbers and caches of this one, unless None."""
        return Capabilities(
            dtypes="".join([char for char in self.dtypes if char in other.dtypes]),
            strided_products=self.strided_products and other.strided_products,
            integer_products=self.integer_products and other.integer_products,
            integer_matrices=self.integer_matrices and other.integer_matrices,
            strided_host_calls=self.strided_host_calls and other.strided_host_calls,
            host_calls_in_bodies=self.host_calls_in_bodies and other.host_calls_in_bodies,
            complex_products=self.complex_products and other.complex_products,
            product_epilogues=self.product_epilogues and other.product_epilogues,
            windows=self.windows and other.windows,
            fourier=self.fourier and other.fourier,
            collectives=self.collectives and other.collectives,
            symbolic_sizes=self.symbolic_sizes and other.symbolic_sizes,
            size_scalars=self.size_scalars and other.size_scalars,
            vector_bytes=other.vector_bytes if self.vector_bytes is None else self.vector_bytes,
            cache_bytes=other.cache_bytes if self.cache_bytes is None else self.cache_bytes,
            threads=other.threads if self.threads is None else self.threads,
            concurrent_calls=(
                other.concurrent_calls if self.concurrent_calls is None else self.concurrent_calls
            ),
            device=other.device if self.device is None else self.device,
        )


ALL = Capabilities()
"""All capabilities, without limits."""
