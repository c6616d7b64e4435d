"""A model of synchronous training on many workers: where it stops scaling, from measured figures.

The batch is divided among the workers, each of which computes for ``compute / n``; then a ring or recursive
halving adds the gradients (Thakur, Rabenseifner and Gropp, "Optimization of collective communication
operations in MPICH", 2005): ``2 log2(n)`` messages one after another, and ``2 (n - 1) / n`` times the bytes
of the gradients through each worker's link.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Final

WORKERS: Final = (1, 2, 8, 32, 64, 128, 256, 512, 1000)
GBIT: Final = 125e6
"""The bytes of a second at 1 Gbit/s."""


@dataclasses.dataclass(frozen=True)
class Network:
    """The seconds until a message arrives, and the bytes of a second, of one worker's link."""

    latency: float
    bandwidth: float


@dataclasses.dataclass(frozen=True)
class Training:
    """The seconds in which one worker computes a step of the whole batch, and the bytes of the gradients."""

    compute: float
    nbytes: float


def all_reduce_seconds(training: Training, network: Network, workers: int) -> float:
    """The seconds of one all-reduce of the gradients.

    >>> all_reduce_seconds(Training(1.0, 4e7), Network(0.0, 25 * GBIT), 2)
    0.0128
    """
    if workers == 1:
        return 0.0
    messages = 2 * math.log2(workers) * network.latency
    return messages + 2 * (workers - 1) / workers * training.nbytes / network.bandwidth


def efficiency(training: Training, network: Network, workers: int) -> float:
    """The speed of ``workers`` workers, divided by ``workers`` times that of one.

    >>> round(efficiency(Training(1.0, 4e7), Network(20e-6, 25 * GBIT), 32), 2)
    0.56
    """
    own = training.compute / workers
    return own / (own + all_reduce_seconds(training, network, workers))


def limit(training: Training, network: Network) -> int:
    """The largest number of workers of which each computes for at least as long as it exchanges.

    >>> limit(Training(1.0, 4e7), Network(20e-6, 25 * GBIT))
    39
    """
    workers = 1
    while workers < 1 << 20 and efficiency(training, network, workers + 1) >= 0.5:
        workers += 1
    return workers


def lines(training: Training, networks: dict[str, Network]) -> Iterator[str]:
    """The rows of a Markdown table: for each number of workers, the times and the efficiency by network."""
    titles = [f"all-reduce, {name} | efficiency" for name in networks]
    yield f"| workers | compute | {' | '.join(titles)} |"
    yield "| ---: | ---: |" + " ---: | ---: |" * len(networks)
    for n in WORKERS:
        cells = [
            f"{1e3 * all_reduce_seconds(training, network, n):.3g} ms | "
            f"{efficiency(training, network, n):.0%}"
            for network in networks.values()
        ]
        yield f"| {n:,} | {1e3 * training.compute / n:.3g} ms | {' | '.join(cells)} |"
    last = [f"{limit(training, network):,} workers with {name}" for name, network in networks.items()]
    yield f"\nAt least half of a step is computation on up to {', '.join(last)}."
