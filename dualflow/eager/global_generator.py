"""The global generator of random numbers, and the seed of all streams."""

from __future__ import annotations

import threading
from typing import Final

from dualflow.core import dispatch
from dualflow.core.tracebacks import entry
from dualflow.eager.engine import EAGER
from dualflow.eager.generator import Generator
from dualflow.ops.random_numbers.streams import STREAMS


class _Global:
    """The global generator, and whether it was created here, so that :func:`set_seed` resets it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.generator: Generator | None = None
        self.own = True


_global: Final = _Global()


@entry
def get_global_generator() -> Generator:
    """The global generator; :func:`set_seed` resets it."""
    with _global.lock:
        if _global.generator is None:
            with dispatch.using(EAGER):
                seed = STREAMS.seed
                generator = (
                    Generator.from_non_deterministic_state() if seed is None else Generator.from_seed(seed)
                )
            _global.generator = generator
        return _global.generator


@entry
def set_global_generator(generator: Generator) -> None:
    """Replace the global generator; :func:`set_seed` doesn't reset the new one."""
    with _global.lock:
        _global.generator, _global.own = generator, False


@entry
def set_seed(seed: int | None) -> None:
    """Reset all random streams of ``df.random`` to those of ``seed``.

    In the block of an explicit graph it sets the graph's seed, for ops that are added later. None removes the
    seed: the operating system seeds the stream of ops without a ``seed=``.

    Eager calls with the same ``seed=`` share a stream. In a compiled function each op with a ``seed=`` has
    its own stream, which begins with the number of the first eager call and continues from call to call; a
    new trace, and a call in another traced function, restarts it. Ops without a ``seed=`` draw from the
    shared stream, both eagerly and compiled.

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
    if dispatch.current().innermost.set_own_seed(seed):
        return
    STREAMS.reset(seed)
    if seed is None:
        return
    with _global.lock:
        if _global.generator is not None and _global.own:
            with dispatch.using(EAGER):
                _global.generator.reset_from_seed(seed)
