"""The global generator of random numbers."""

from __future__ import annotations

import threading
from typing import Final

from dualflow.core import dispatch
from dualflow.core.tracebacks import entry
from dualflow.eager.engine import EAGER
from dualflow.eager.generator import Generator
from dualflow.ops.random_numbers.streams import STREAMS


class _Global:
    """The global generator, and whether it was created here, so that ``set_seed`` resets it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.generator: Generator | None = None
        self.own = True


_global: Final = _Global()


@entry
def get_global_generator() -> Generator:
    """The global generator; :func:`dualflow.random.set_seed` resets it."""
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
    """Replace the global generator; :func:`dualflow.random.set_seed` doesn't reset the new one."""
    with _global.lock:
        _global.generator, _global.own = generator, False


def reset_global_generator(seed: int) -> None:
    """Set the global generator's state to that of ``seed``, unless the program has replaced the generator."""
    with _global.lock:
        if _global.generator is not None and _global.own:
            with dispatch.using(EAGER):
                _global.generator.reset_from_seed(seed)
