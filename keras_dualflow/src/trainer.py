"""The trainer of models: ``fit``, ``evaluate`` and ``predict``, and their steps."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

from keras.src import tree
from keras.src.losses import loss as loss_module
from keras.src.trainers import trainer as base_trainer
from keras.src.trainers.data_adapters import data_adapter_utils
from keras.src.utils import traceback_utils
from keras.src.utils.python_utils import pythonify_logs

import dualflow as df
from dualflow.core.tracebacks import entry
from dualflow.eager import initial_values
from keras_dualflow import replicas
from keras_dualflow.all_or_none import all_or_none
from keras_dualflow.src.core.conversion import convert_to_numpy, shape
from keras_dualflow.src.core.variable import Variable
from keras_dualflow.src.training import (
    loops,
    sharded_state,  # noqa: F401  # which fills a slot
)
from keras_dualflow.src.training.batches import epoch_iterator, split_validation
from keras_dualflow.src.training.parts import BatchPart, combined_logs, share_shuffles

Batch = Any
Logs = dict[str, Any]
F = TypeVar("F", bound=Callable[..., Any])


def _with_short_tracebacks(method: F) -> F:
    """``method``, with frames of Keras and of this backend removed from the tracebacks of its errors."""
    return entry(traceback_utils.filter_traceback(method))  # type: ignore[no-any-return]  # of Keras


class Trainer(base_trainer.Trainer):  # type: ignore[misc]  # Keras has no types
    """The training methods of a model; each step is one compiled graph, from the batch to the logs.

    The graph of ``train_step`` contains the forward pass, its gradient, the optimizer's update and the
    metrics. With ``run_eagerly`` the same Python code runs op by op. ``jit_compile`` has no effect, since
    graphs are always compiled.
    """

    def __init__(self) -> None:
        super().__init__()
        self._distribute_strategy = df.distribute.get_strategy() if df.distribute.has_strategy() else None
        self.train_function: Callable[[Sequence[Batch]], Any] | None = None
        self.test_function: Callable[[Sequence[Batch]], Any] | None = None
        self.predict_function: Callable[[Sequence[Batch]], Any] | None = None

    @property
    def distribute_strategy(self) -> Any:
        """The strategy in whose scope the model was created, or else the current one."""
        return self._distribute_strategy or df.distribute.get_strategy()

    # the steps, which models may override

    def train_step(self, data: Batch) -> Logs:
        """Train on one batch: predict, update the weights by the gradient of the loss, update the metrics."""
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        with df.GradientTape() as tape:
            y_pred, loss = _prediction_and_loss(self, x, y, sample_weight, training=True)
            if self.optimizer is not None:
                loss = self.optimizer.scale_loss(loss)
        weights = self.trainable_weights
        if weights:
            self.optimizer.apply(tape.gradient(loss, weights), weights)
        else:
            warnings.warn("The model does not have any trainable weights.", stacklevel=2)
        return dict(self.compute_metrics(x, y, y_pred, sample_weight=sample_weight))

    def test_step(self, data: Batch) -> Logs:
        """Update the metrics for one batch."""
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        y_pred, _ = _prediction_and_loss(self, x, y, sample_weight, training=False)
        return dict(self.compute_metrics(x, y, y_pred, sample_weight=sample_weight))

    def predict_step(self, data: Batch) -> Any:
        """The model's predictions for one batch."""
        x, _, _ = data_adapter_utils.unpack_x_y_sample_weight(data)
        return _prediction(self, x, training=False)

    # the functions that the loops call

    def make_train_function(self, force: bool = False) -> None:
        """Create ``train_function``, which trains on some batches and returns the logs of the last."""
        if self.train_function is None or force:
            self.train_function = _batches_function(self, self.train_step)

    def make_test_function(self, force: bool = False) -> None:
        """Create ``test_function``, which evaluates some batches and returns the logs of the last."""
        if self.test_function is None or force:
            self.test_function = _batches_function(self, self.test_step)

    def make_predict_function(self, force: bool = False) -> None:
        """Create ``predict_function``, which returns the concatenated predictions for some batches."""
        if self.predict_function is None or force:
            step = _compile_step(self, self.predict_step, returns_logs=False)

            def predict(batches: Sequence[Batch]) -> Any:
                outputs = [_all_predictions(self, step, batch) for batch in batches]
                if len(outputs) == 1:
                    return outputs[0]
                return tree.map_structure(lambda *x: df.concat(x, 0), *outputs)

            self.predict_function = predict

    # the weights

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set all weights; none changes if one is invalid."""
        with all_or_none(self):
            super().set_weights(weights)

    # the loops

    @_with_short_tracebacks
    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: Any = 1,
    ) -> Any:
        """Train for some epochs; return the history of the logs. See Keras's documentation."""
        self._assert_compile_called("fit")
        self._eval_epoch_iterator = None
        data, validation_data = split_validation((x, y, sample_weight), validation_data, validation_split)
        strategy = self.distribute_strategy
        if strategy.num_replicas_in_sync > 1:
            share_shuffles(strategy)
        batches = epoch_iterator(
            strategy,
            *data,
            batch_size=batch_size,
            steps_per_epoch=steps_per_epoch,
            shuffle=shuffle,
            class_weight=class_weight,
            steps_per_execution=self.steps_per_execution,
        )
        validation = None
        if validation_data is not None:
            validation = loops.Validation(
                data_adapter_utils.unpack_x_y_sample_weight(validation_data),
                validation_batch_size or batch_size,
                validation_steps,
                validation_freq,
            )
        return loops.train(self, batches, epochs, initial_epoch, verbose, callbacks, validation)

    @_with_short_tracebacks
    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Any = None,
        return_dict: bool = False,
        **kwargs: Any,
    ) -> Any:
        """The metrics over all batches. See Keras's documentation."""
        self._assert_compile_called("evaluate")
        # Keras's fit passes it for validation data
        cached = kwargs.pop("_use_cached_eval_dataset", False)
        if kwargs:
            raise ValueError(f"Arguments not recognized: {kwargs}")
        batches = self._eval_epoch_iterator if cached else None
        if batches is None:
            batches = epoch_iterator(
                self.distribute_strategy,
                x,
                y,
                sample_weight,
                batch_size=batch_size,
                steps_per_epoch=steps,
                steps_per_execution=self.steps_per_execution,
            )
        if cached:
            self._eval_epoch_iterator = batches
        logs = loops.evaluate(self, batches, verbose, callbacks)
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    @_with_short_tracebacks
    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: Any = "auto",
        steps: int | None = None,
        callbacks: Any = None,
    ) -> Any:
        """The model's predictions for all batches, as NumPy arrays. See Keras's documentation."""
        batches = epoch_iterator(
            self.distribute_strategy,
            x,
            batch_size=batch_size,
            steps_per_epoch=steps,
            steps_per_execution=self.steps_per_execution,
        )
        return loops.predict(self, batches, verbose, callbacks)

    def _aggregate_additional_loss(self, loss: Any) -> Any:
        return loss_module.scale_loss_for_distribution(super()._aggregate_additional_loss(loss))

    # one batch

    @_with_short_tracebacks
    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """Train on one batch, and return its metrics."""
        self._assert_compile_called("train_on_batch")
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError(
                    "Arguments `sample_weight` and `class_weight` cannot be specified at the same time. "
                    f"Received: sample_weight={sample_weight}, class_weight={class_weight}"
                )
            sample_weight = data_adapter_utils.class_weight_to_sample_weights(y, class_weight)
        self.make_train_function()
        return _on_batch(self, self.train_function, (x, y, sample_weight), return_dict)

    @_with_short_tracebacks
    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """Evaluate one batch, and return its metrics."""
        self._assert_compile_called("test_on_batch")
        self.make_test_function()
        return _on_batch(self, self.test_function, (x, y, sample_weight), return_dict)

    @_with_short_tracebacks
    def predict_on_batch(self, x: Any) -> Any:
        """The model's predictions for one batch, as NumPy arrays."""
        self.make_predict_function()
        assert self.predict_function is not None, "make_predict_function sets it"
        return tree.map_structure(convert_to_numpy, self.predict_function([(x,)]))


# Functions, since a method's name could clash with an attribute of a model or of Keras.


def _prediction(model: Any, x: Any, training: bool) -> Any:
    return model(x, training=training) if model._call_has_training_arg else model(x)


def _prediction_and_loss(model: Any, x: Any, y: Any, sample_weight: Any, training: bool) -> tuple[Any, Any]:
    """The model's predictions for ``x``, and their loss, which is added to the running mean of losses."""
    y_pred = _prediction(model, x, training)
    loss = model._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)
    first = next(leaf for leaf in tree.flatten(x) if leaf is not None)
    mean = loss_module.unscale_loss_for_distribution(loss)
    model._loss_tracker.update_state(mean, sample_weight=shape(first)[0])
    return y_pred, loss


def _compile_step(model: Any, step: Callable[[Batch], Any], *, returns_logs: bool) -> Callable[[Batch], Any]:
    """``step`` as a traced function; after the second batch size it is traced for any batch size.

    If it ``returns_logs``, these are combined over all replicas; other results are those of this replica.
    """
    strategy = model.distribute_strategy
    if strategy.num_replicas_in_sync > 1:
        return _on_replicas(model, strategy, step, returns_logs=returns_logs)
    if model.run_eagerly:
        return step

    @functools.wraps(step)
    def traced_step(data: Batch) -> Any:
        return _read_variables(step(data))

    return df.function(traced_step, autograph=False, reduce_retracing="batch")


def _on_replicas(
    model: Any, strategy: Any, step: Callable[[Batch], Any], *, returns_logs: bool
) -> Callable[[Batch], Any]:
    """``step`` on this replica's part of a batch, with logs that are those of all replicas."""

    def run_step(data: Batch, fraction: Any) -> Any:
        with replicas.fraction_of_batch(fraction):
            results = strategy.run(step, args=(data,))
        return _read_variables(combined_logs(model, strategy, results) if returns_logs else results)

    run = run_step
    if not model.run_eagerly:
        run = df.function(run_step, autograph=False, reduce_retracing="batch")

    def run_part(batch: Batch) -> Any:
        if isinstance(batch, BatchPart):
            return run(batch.data, df.constant(batch.fraction))
        return run(batch, df.constant(1.0 / strategy.num_replicas_in_sync))

    return run_part


def _all_predictions(model: Any, step: Callable[[Batch], Any], batch: Batch) -> Any:
    """The predictions for a batch, of all replicas if each has a part of it."""
    outputs = step(batch)
    if not isinstance(batch, BatchPart):
        return outputs
    return model.distribute_strategy.gather(outputs, axis=0)


def _read_variables(logs: Any) -> Any:
    """The results of a step, with the values of variables that it returns."""
    if isinstance(logs, dict):
        return {name: _read_variables(value) for name, value in logs.items()}
    return logs.value if isinstance(logs, Variable) else logs


def _batches_function(model: Any, step: Callable[[Batch], Logs]) -> Callable[[Sequence[Batch]], Logs]:
    compiled = _compile_step(model, step, returns_logs=True)

    def run_batches(batches: Sequence[Batch]) -> Logs:
        if initial_values.restorations:
            first = batches[0]
            _build_metrics(model, first.data if isinstance(first, BatchPart) else first)
        logs: Logs = {}
        for batch in batches:
            logs = compiled(batch)
        return logs

    return run_batches


def _build_metrics(model: Any, batch: Batch) -> None:
    """Build the metrics of ``compile``, which Keras builds in the first step, and reset them.

    A deferred restoration of a checkpoint assigns its counts to the new variables.
    """
    compiled = [part for part in (model._compile_metrics, model._compile_loss) if part is not None]
    if not all(part.built for part in compiled):
        strategy = model.distribute_strategy
        with strategy.scope() if strategy.num_replicas_in_sync > 1 else nullcontext():
            model._symbolic_build(data_batch=batch)
            model.reset_metrics()


def _on_batch(model: Any, function: Any, batch: Batch, return_dict: bool) -> Any:
    model.reset_metrics()
    logs = pythonify_logs(function([batch]))
    return logs if return_dict else model._flatten_metrics_in_order(logs)
