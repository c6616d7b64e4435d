"""A classifier of scikit-learn's images of digits, for tests of exported programs."""

from __future__ import annotations

from typing import Any

import numpy as np
from required_tools import require_module

import dualflow as df

Array = np.ndarray[Any, Any]


def digits() -> tuple[Array, Array]:
    """The images, float32[1797, 8, 8] from 0 to 16, and their labels."""
    data = require_module("sklearn.datasets").load_digits()
    return data.images.astype(np.float32), data.target


def digits_classifier() -> Any:
    """A function from images, float32[n, 8, 8], to probabilities: of two layers, the second fitted."""
    images, labels = digits()
    rng = np.random.default_rng(0)
    hidden = df.constant((rng.normal(size=(64, 192)) / 64).astype(np.float32))
    offsets = df.constant(rng.normal(size=192).astype(np.float32))
    features = np.asarray(df.nn.relu(images.reshape(-1, 64) @ hidden + offsets), np.float64)
    normal = features.T @ features + np.eye(192)
    targets = 10.0 * (np.eye(10)[labels] - 0.5)
    weights = df.constant(np.linalg.solve(normal, features.T @ targets).astype(np.float32))

    @df.function
    def classify(image: Any) -> Any:
        features = df.nn.relu(df.matmul(df.reshape(image, [-1, 64]), hidden) + offsets)
        return df.nn.softmax(df.matmul(features, weights))

    return classify
