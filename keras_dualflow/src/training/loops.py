"""The loops over epochs and batches, with callbacks."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from keras.src import callbacks as callbacks_module
from keras.src import optimizers as optimizers_module
from keras.src import tree
from keras.src.backend import config
from keras.src.utils.python_utils import pythonify_logs

from keras_dualflow.src.core.conversion import convert_to_numpy
from keras_dualflow.src.training.parts import average_statistics


class Validation(NamedTuple):
    """The data to evaluate between epochs, and the frequency."""

    data: tuple[Any, Any, Any]
    batch_size: int | None
    steps: int | None
    frequency: Any


def train(
    model: Any,
    batches: Any,
    epochs: int,
    initial_epoch: int,
    verbose: Any,
    callbacks: Any,
    validation: Validation | None,
) -> Any:
    """Train ``model`` epoch by epoch; return the history of the logs."""
    limit = config.max_epochs()
    if limit and limit < epochs:
        warnings.warn(f"Limiting epochs to {limit}", stacklevel=4)
        epochs = limit
    callbacks = _callbacks(model, callbacks, verbose, epochs, batches.num_batches, history=True)
    model.stop_training = False
    model.make_train_function()
    callbacks.on_train_begin()
    logs: dict[str, Any] | None = None
    for epoch in range(model._initial_epoch or initial_epoch, epochs):
        logs = _epoch(model, batches, epoch, callbacks, validation)
        if model.stop_training:
            break
    if isinstance(model.optimizer, optimizers_module.Optimizer) and epochs > 0:
        model.optimizer.finalize_variable_values(model.trainable_weights)
    model._eval_epoch_iterator = None
    callbacks.on_train_end(logs=logs)
    return model.history


def _epoch(
    model: Any, batches: Any, epoch: int, callbacks: Any, validation: Validation | None
) -> dict[str, Any]:
    model.reset_metrics()
    callbacks.on_epoch_begin(epoch)
    last: Any = {}
    for first, last_step, data in batches:
        callbacks.on_train_batch_begin(first)
        last = model.train_function(data)
        callbacks.on_train_batch_end(last_step, last)
        if model.stop_training:
            break
    if model.distribute_strategy.num_replicas_in_sync > 1:
        average_statistics(model, model.distribute_strategy)
    logs = dict(model._get_metrics_result_or_logs(last))
    if validation is not None and model._should_eval(epoch, validation.frequency):
        x, y, sample_weight = validation.data
        results = model.evaluate(
            x=x,
            y=y,
            sample_weight=sample_weight,
            batch_size=validation.batch_size,
            steps=validation.steps,
            callbacks=callbacks,
            return_dict=True,
            _use_cached_eval_dataset=True,
        )
        logs.update({f"val_{name}": value for name, value in results.items()})
    callbacks.on_epoch_end(epoch, logs)
    return logs


def evaluate(model: Any, batches: Any, verbose: Any, callbacks: Any) -> dict[str, Any]:
    """The metrics of ``model`` over all batches, as Python floats."""
    callbacks = _callbacks(model, callbacks, verbose, 1, batches.num_batches)
    model.make_test_function()
    model.stop_evaluating = False
    callbacks.on_test_begin()
    model.reset_metrics()
    last: Any = {}
    for first, last_step, data in batches:
        callbacks.on_test_batch_begin(first)
        last = model.test_function(data)
        callbacks.on_test_batch_end(last_step, last)
        if model.stop_evaluating:
            break
    logs: dict[str, Any] = pythonify_logs(model._get_metrics_result_or_logs(last))
    callbacks.on_test_end(logs)
    return logs


def predict(model: Any, batches: Any, verbose: Any, callbacks: Any) -> Any:
    """The predictions of ``model`` for all batches, concatenated, as NumPy arrays."""
    callbacks = _callbacks(model, callbacks, verbose, 1, batches.num_batches)
    model.make_predict_function()
    model.stop_predicting = False
    callbacks.on_predict_begin()
    outputs: list[Any] = []
    for first, last_step, data in batches:
        callbacks.on_predict_batch_begin(first)
        outputs.append(model.predict_function(data))
        callbacks.on_predict_batch_end(last_step, {"outputs": outputs[-1]})
        if model.stop_predicting:
            break
    callbacks.on_predict_end()
    if not outputs:
        return None
    return tree.map_structure(_concatenate_batches, *outputs)


def _concatenate_batches(*parts: Any) -> Any:
    if len(parts) == 1:
        return convert_to_numpy(parts[0])
    return np.concatenate([convert_to_numpy(part) for part in parts])


def _callbacks(
    model: Any, callbacks: Any, verbose: Any, epochs: int, steps: int | None, history: bool = False
) -> Any:
    if isinstance(callbacks, callbacks_module.CallbackList):
        return callbacks
    return callbacks_module.CallbackList(
        callbacks,
        add_history=history,
        add_progbar=verbose != 0,
        verbose=verbose,
        epochs=epochs,
        steps=steps,
        model=model,
    )
