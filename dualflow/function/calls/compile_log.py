"""The log of compiles, and of the memory that calls of a compiled graph take."""

from __future__ import annotations

from dualflow.core.spans import logger
from dualflow.function.calls.lazy_backends import backend_of
from dualflow.graph.compiled import Compiled


def log_compile(backend: str, executable: Compiled, seconds: float) -> None:
    """Log the time of a compile in seconds, and the memory of a call, if these are logged."""
    compiles, memory = logger("compile"), logger("memory")
    if compiles is None and memory is None:
        return
    inputs = ", ".join(map(str, (*executable.inputs.arguments, *executable.inputs.capture_specs)))
    call = f"{executable.inputs.name}({inputs})"
    stats = backend_of(backend).compile_stats(executable)
    if compiles is not None:
        compiles.info(
            "compiled %s with %s in %.1f ms: kernels %d, matrix products %d, host calls %d",
            *(call, backend, 1e3 * seconds),
            *(len(stats.kernels), stats.products, stats.host_calls),
        )
    if memory is not None:
        kept = "kept between calls" if stats.keeps_arena else "allocated for each call"
        memory.info("%s: intermediates take %d bytes, %s", call, stats.arena_bytes, kept)
