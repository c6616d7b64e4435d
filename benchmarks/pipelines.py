"""Times of input pipelines, compared with loops in NumPy, and with tf.data if TensorFlow is installed."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dualflow as df
from benchmarks.steady import SETTLE

Array = np.ndarray[Any, Any]
BATCH = 32


@dataclass(frozen=True, slots=True)
class Piped:
    """Seconds of an element or a batch of one pipeline in its fastest block, by library."""

    name: str
    seconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One row.

    Attributes:
        name: the row's name.
        build: creates the dataset, with ``df`` or ``tensorflow``.
        reference: iterates over the same elements in NumPy.
    """

    name: str
    build: Callable[[Any], Any]
    reference: Callable[[], Iterator[Any]]


def pipelines(quick: bool) -> Iterator[Pipeline]:
    """Every row; ``quick`` has few elements."""
    rng = np.random.default_rng(0)
    count = 1_000 if quick else 60_000
    for width in (8, 784):
        rows = rng.standard_normal((count, width)).astype(np.float32)
        labels = np.arange(count)

        def slices(api: Any, data: Any = (rows, labels)) -> Any:
            return api.data.Dataset.from_tensor_slices(data)

        def gathered(data: Any = (rows, labels)) -> Iterator[Any]:
            order = rng.permutation(len(data[1]))
            for i in range(0, len(order), BATCH):
                indices = order[i : i + BATCH]
                yield data[0][indices], data[1][indices]

        def each(data: Any = (rows, labels)) -> Iterator[Any]:
            yield from zip(*data, strict=True)

        def doubled(data: Any = (rows, labels)) -> Iterator[Any]:
            for x, label in zip(*data, strict=True):
                yield x * 2, label

        def batched(source: Callable[[], Iterator[Any]] = doubled) -> Iterator[Any]:
            elements = source()
            while block := list(itertools.islice(elements, BATCH)):
                yield tuple(map(np.stack, zip(*block, strict=True)))

        yield Pipeline(f"element, {width} floats", slices, each)
        yield Pipeline(f"map, {width} floats", lambda api: slices(api).map(double), doubled)
        yield Pipeline(
            f"shuffle of all, batch of {BATCH}, {width} floats",
            lambda api: slices(api).shuffle(count).batch(BATCH),
            gathered,
        )
        yield Pipeline(
            f"shuffle of 1000, batch of {BATCH}, {width} floats",
            lambda api: slices(api).shuffle(1000).batch(BATCH),
            gathered,
        )
        yield Pipeline(
            f"shuffle, batch, prefetch, {width} floats",
            lambda api: slices(api).shuffle(1000).batch(BATCH).prefetch(2),
            gathered,
        )
        yield Pipeline(
            f"map, batch of {BATCH}, {width} floats",
            lambda api: slices(api).map(double).batch(BATCH),
            batched,
        )


def double(x: Any, label: Any) -> Any:
    return x * 2.0, label


def measure(words: Sequence[str], quick: bool, rounds: int, block: float) -> list[Piped]:
    """The times of the rows whose names contain one of ``words``; the libraries are interleaved."""
    others = [importlib.import_module("tensorflow")] if importlib.util.find_spec("tensorflow") else []
    measured = []
    for pipeline in pipelines(quick):
        if not any(word in pipeline.name for word in words):
            continue
        subjects: dict[str, Callable[[], Iterator[Any]]] = {"numpy": pipeline.reference}
        for name, api in zip(("dualflow", "tf.data"), (df, *others), strict=False):
            subjects[name] = pipeline.build(api).__iter__
        best = dict.fromkeys(subjects, float("inf"))
        for _ in range(rounds):
            for name, begin in subjects.items():
                time.sleep(SETTLE)
                best[name] = min(best[name], _per_item(begin(), block))
        measured.append(Piped(pipeline.name, best))
    return measured


def _per_item(items: Iterator[Any], block: float) -> float:
    """Seconds of an item, except the first, over a block of about this length or up to the end."""
    next(items)
    count, start = 0, time.perf_counter()
    for _ in items:
        count += 1
        if not count % 16 and time.perf_counter() - start > block:
            break
    return (time.perf_counter() - start) / max(count, 1)
