"""``fit``, ``evaluate`` and ``predict``: each step is one compiled graph."""

from __future__ import annotations

from keras.src.trainers import trainer as base_trainer


class Trainer(base_trainer.Trainer):  # type: ignore[misc]  # Keras has no types
    """The loops over batches."""
