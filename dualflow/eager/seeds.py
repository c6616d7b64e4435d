"""The global seed of all streams of random numbers."""

from __future__ import annotations

from dualflow.core import dispatch
from dualflow.core.tracebacks import entry
from dualflow.eager.global_generator import reset_global_generator
from dualflow.ops.random_numbers.streams import STREAMS
from dualflow.ops.static import static_int


@entry
def set_seed(seed: int | None) -> None:
    """Reset all random streams of ``df.random`` to those of ``seed``.

    In the block of an explicit graph it sets the graph's seed, for ops that are added later. None removes the
    seed: the operating system seeds the stream of ops without a ``seed=``.

    Eager calls with the same ``seed=`` share a stream. In a compiled function each op with a ``seed=`` has
    its own stream, which begins with the number of the first eager call and continues from call to call; a
    new trace, and a call in another traced function, restarts it. Ops without a ``seed=`` draw from the
    shared stream, both eagerly and compiled.

    Raises:
        DTypeError: ``seed`` is not an integer.

    >>> import dualflow as df
    >>> df.random.set_seed(7)
    >>> a = df.random.normal([3])
    >>> df.random.set_seed(7)
    >>> bool(df.reduce_all(a == df.random.normal([3])))
    True
    >>> same = df.function(lambda: [df.random.uniform([3], seed=1) for _ in range(2)])
    >>> bool(df.reduce_all(same()[0] == df.random.uniform([3], seed=1)))
    True
    """
    seed = None if seed is None else static_int(seed, "A seed")
    if dispatch.current().innermost.set_own_seed(seed):
        return
    STREAMS.reset(seed)
    if seed is not None:
        reset_global_generator(seed)
