"""Times of first calls in fresh processes: with an empty cache, then with the cache of that process.

``python -m benchmarks.first_call CASE`` is the process that is measured; it prints its figures as JSON.
"""

from __future__ import annotations

import functools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.processes import figures_of

CASES = ("gelu", "MLP step", "5000-op chain")
OTHER_SIZES = 10
STATES: dict[str, dict[str, str]] = {"cold": {}, "objects": {"DUALFLOW_DISABLE": "programs"}, "warm": {}}
"""The states of the cache, with environment variables: empty, with machine code, and with whole programs."""

CompileStats = dict[str, float]


def first_calls(
    rounds: int, cases: Sequence[str] = CASES, backend: str = "llvm", quick: bool = False
) -> dict[str, dict[str, CompileStats]]:
    """Seconds by case and by state of the cache, each the best of several processes.

    The figures are ``import`` (of dualflow, after NumPy), ``first`` (trace, compile and call) and ``other
    sizes`` (the total of the first calls at ten other sizes). With ``quick``, a hundredth of the chain is
    compiled, and one other size.
    """
    results: dict[str, dict[str, CompileStats]] = {case: {} for case in cases}
    if not quick:
        # writes the modules' bytecode, which an installed package has
        _child(cases[0], "", backend, quick, {})
    for _ in range(rounds):
        for case in cases:
            with tempfile.TemporaryDirectory() as cache:
                for state, settings in STATES.items():
                    figures = _child(case, cache, backend, quick, settings)
                    best = results[case].setdefault(state, figures)
                    results[case][state] = {k: min(best[k], v) for k, v in figures.items()}
    return results


def _child(case: str, cache: str, backend: str, quick: bool, settings: dict[str, str]) -> CompileStats:
    environment = {"DUALFLOW_CACHE_DIR": cache, "DUALFLOW_BACKEND": backend, **settings}
    figures: CompileStats = figures_of("first_call", [case, *["--quick"] * quick], environment)
    return figures


def _prepare(case: str, quick: bool) -> tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]:
    """The compiled function of a case, and a function that returns its arguments at the ``i``-th size."""
    import numpy as np

    import dualflow as df
    from benchmarks import workloads

    rng = np.random.default_rng(0)
    if case == "MLP step":
        layers = workloads.parameters(rng, (784, 512, 512, 10))
        images = rng.random((128, 784), dtype=np.float32)
        labels = rng.integers(0, 10, 128).astype(np.int32)
        step = df.function(workloads.descent(layers))
        return step, lambda i: (df.constant(images[: 128 - i]), df.constant(labels[: 128 - i]))
    chain = functools.partial(workloads.long_chain, steps=10 if quick else 1000)
    functions: dict[str, Callable[..., Any]] = {"gelu": workloads.gelu, "5000-op chain": chain}
    size = {"gelu": 1000, "5000-op chain": 64}[case]
    return df.function(functions[case]), lambda i: (df.constant(np.ones(size + i, np.float32)),)


def _measure(case: str, quick: bool) -> CompileStats:
    import numpy as np  # noqa: F401  # its import is not measured

    start = time.perf_counter()
    import dualflow  # noqa: F401

    imported = time.perf_counter() - start
    function, arguments = _prepare(case, quick)
    first, *others = (arguments(i) for i in range(2 if quick else OTHER_SIZES + 1))
    start = time.perf_counter()
    function(*first)
    called = time.perf_counter() - start
    start = time.perf_counter()
    for other in others:
        function(*other)
    return {"import": imported, "first": called, "other sizes": time.perf_counter() - start}


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], "--quick" in sys.argv)))
