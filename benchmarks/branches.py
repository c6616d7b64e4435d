"""Graphs of independent parts, each too small to be split over threads: the parts run concurrently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

BRANCHES, MODELS, HEADS = 16, 8, 8


def branch_rows(rng: np.random.Generator, quick: bool) -> Iterator[tuple[str, tuple[Array, ...], Any]]:
    """The name, inputs and body of each row; a body is a function of a library's functions and tensors."""

    def normal(*shape: int) -> Array:
        shape = tuple([min(n, 8) for n in shape]) if quick else shape
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    weights = [normal(96, 96) for _ in range(2 * BRANCHES)]
    yield f"{BRANCHES} branches of two products, 96", (normal(96, 96), *weights), branches
    layers = [normal(a, b) for _ in range(MODELS) for a, b in ((64, 256), (256, 256), (256, 10))]
    yield f"ensemble of {MODELS} MLPs 64-256-256-10, batch 32", (normal(32, 64), *layers), ensemble
    projections = [normal(256, 32) for _ in range(3 * HEADS)]
    yield f"attention, {HEADS} heads one by one, 128x256", (normal(128, 256), *projections), attention


def branches(m: Any, x: Any, *weights: Any) -> Any:
    """The sum of independent branches."""
    pairs = zip(weights[::2], weights[1::2], strict=True)
    return sum(m.tanh(m.matmul(m.tanh(m.matmul(x, a)), b)) for a, b in pairs)


def ensemble(m: Any, x: Any, *layers: Any) -> Any:
    """The mean of the predictions of several models."""
    models = zip(layers[::3], layers[1::3], layers[2::3], strict=True)
    return (
        sum(m.softmax(m.matmul(m.tanh(m.matmul(m.tanh(m.matmul(x, a)), b)), c)) for a, b, c in models)
        / MODELS
    )


def attention(m: Any, x: Any, *projections: Any) -> Any:
    """Self-attention in which each head is written out."""
    parts = zip(projections[::3], projections[1::3], projections[2::3], strict=True)
    heads = []
    for query, key, value in parts:
        scores = m.matmul(m.matmul(x, query), m.transpose(m.matmul(x, key))) * 0.176776695
        heads.append(m.matmul(m.softmax(scores), m.matmul(x, value)))
    return m.concat(heads)
