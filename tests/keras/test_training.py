"""``fit``, ``evaluate`` and ``predict``: compiled steps, which do what the same Python does op by op."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dualflow as df

ROWS = 70  # two batches of 32 and a short one
X = np.random.default_rng(0).normal(size=(ROWS, 4)).astype(np.float32)
Y = (X[:, :1] > 0).astype(np.float32)


def make(keras: Any, **options: Any) -> Any:
    """A small compiled model, the same each time."""
    layers, start = keras.layers, keras.initializers.GlorotUniform
    model = keras.Sequential(
        [
            keras.Input((4,)),
            layers.Dense(8, activation="tanh", kernel_initializer=start(1)),
            layers.BatchNormalization(),
            layers.Dropout(0.1, seed=3),
            layers.Dense(1, activation="sigmoid", kernel_initializer=start(2)),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["accuracy"], **options)
    return model


@pytest.fixture(scope="module")
def trained(keras: Any) -> Any:
    """A model after two epochs in the order of the data, and its losses."""
    model = make(keras)
    return model, model.fit(X, Y, epochs=2, shuffle=False, verbose=0).history


def parameters(model: Any) -> list[Any]:
    return [v.numpy() for v in model.variables]


@pytest.mark.parametrize("options", [{"run_eagerly": True}, {"steps_per_execution": 2}], ids=str)
@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_a_compiled_step_does_what_the_same_python_does(keras: Any, trained: Any, options: Any) -> None:
    model, history = trained
    other = make(keras, **options)
    other_history = other.fit(X, Y, epochs=2, shuffle=False, verbose=0).history
    np.testing.assert_allclose(other_history["loss"], history["loss"], rtol=1e-5)
    assert other_history["accuracy"] == history["accuracy"]
    for a, b in zip(parameters(other), parameters(model), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_a_short_batch_is_served_by_a_trace_of_any_size(keras: Any, trained: Any) -> None:
    model, _ = trained
    step = inspect.getclosurevars(model.train_function).nonlocals["compiled"]
    assert step.experimental_get_tracing_count() == 2
    model.fit(X[:45], Y[:45], verbose=0, batch_size=20)
    assert step.experimental_get_tracing_count() == 2


def test_sequences_of_many_lengths_train_as_they_do_eagerly(keras: Any) -> None:
    """Once there are three lengths, the number of time steps is open in the trace."""

    def losses(**options: Any) -> list[float]:
        start = keras.initializers.GlorotUniform
        layers = keras.layers
        inner = layers.SimpleRNN(2, kernel_initializer=start(1), recurrent_initializer=start(2))
        outer = layers.Dense(1, kernel_initializer=start(3))
        model = keras.Sequential([keras.Input((None, 4)), inner, outer])
        model.compile("sgd", "mse", **options)
        return [model.train_on_batch(X[: 2 * n].reshape(2, n, 4), Y[:2]) for n in (2, 3, 4, 5, 6, 3)]

    assert losses() == pytest.approx(losses(run_eagerly=True), rel=1e-4)


def test_evaluation_and_prediction_agree(keras: Any, trained: Any) -> None:
    model, _ = trained
    loss, accuracy = model.evaluate(X, Y, verbose=0)
    result = model.predict(X, verbose=0)
    p = np.clip(result, 1e-7, 1 - 1e-7)
    assert result.flags.writeable
    assert loss == pytest.approx(-np.mean(Y * np.log(p) + (1 - Y) * np.log(1 - p)), rel=1e-5)
    assert accuracy == pytest.approx(np.mean((result > 0.5) == Y))
    np.testing.assert_allclose(model.predict_on_batch(X[:3]), result[:3], rtol=1e-6)
    assert model.test_on_batch(X, Y)[0] == pytest.approx(loss, rel=1e-5)


@pytest.mark.filterwarnings("ignore:Your input ran out of data", "ignore:`shuffle=True` was passed")
def test_datasets_generators_and_arrays_train_alike(keras: Any) -> None:
    def batches() -> Iterator[Any]:
        for i in range(0, ROWS, 32):
            yield X[i : i + 32], Y[i : i + 32]

    def losses(data: Any, *targets: Any, **options: Any) -> Any:
        return make(keras).fit(data, *targets, verbose=0, **options).history["loss"]

    expected = losses(X, Y, shuffle=False)
    assert losses(batches()) == pytest.approx(expected)
    dataset = df.data.Dataset.from_tensor_slices((X, Y)).batch(32)
    assert losses(dataset, validation_data=dataset) == pytest.approx(expected)

    class Batches(keras.utils.PyDataset):  # type: ignore[misc,name-defined]  # Keras has no types
        """The batches in their order, made by threads."""

        def __len__(self) -> int:
            return 3

        def __getitem__(self, i: int) -> Any:
            return df.constant(X[32 * i : 32 * i + 32]), Y[32 * i : 32 * i + 32]

    assert losses(Batches(workers=2), shuffle=False) == pytest.approx(expected)


def test_class_weights_are_weights_of_samples(keras: Any) -> None:
    weight = {0: 0.5, 1: 2.0}
    samples = np.where(Y[:, 0] > 0, 2.0, 0.5).astype(np.float32)
    expected = make(keras).fit(X, Y, sample_weight=samples, shuffle=False, verbose=0).history
    by_class = make(keras).fit(X, Y, class_weight=weight, shuffle=False, verbose=0).history
    dataset = df.data.Dataset.from_tensor_slices((X, Y)).batch(32)
    of_dataset = make(keras).fit(dataset, class_weight=weight, verbose=0).history
    assert by_class["loss"] == pytest.approx(expected["loss"], rel=1e-5)
    assert of_dataset["loss"] == pytest.approx(expected["loss"], rel=1e-5)


def test_callbacks_see_floats_and_may_stop_in_the_middle(keras: Any, trained: Any) -> None:
    model, _ = trained
    types: list[Any] = []

    class Stop(keras.callbacks.Callback):  # type: ignore[misc,name-defined]  # Keras has no types
        def on_train_batch_end(self, batch: int, logs: Any) -> None:
            types.append({name: type(value) for name, value in logs.items()})
            if batch == 1:
                raise KeyboardInterrupt

    steps = int(model.optimizer.iterations.numpy())
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, verbose=0, callbacks=[Stop()])
    assert types == [{"accuracy": float, "loss": float}] * 2
    assert int(model.optimizer.iterations.numpy()) == steps + 2
    assert all(np.isfinite(v).all() for v in parameters(model))


def test_a_step_that_fails_leaves_the_weights_as_they_were(keras: Any) -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    before = parameters(model)
    with pytest.raises(df.errors.OutOfRangeError, match=r"outside of \[0, 3\)") as raised:
        model.fit(X, np.full(ROWS, 7), verbose=0)
    assert __file__ in str(raised.value)
    for a, b in zip(parameters(model), before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_nan_ends_training_where_that_is_requested(keras: Any) -> None:
    bad = X.copy()
    bad[3] = np.nan
    stop = keras.callbacks.TerminateOnNaN()
    history = make(keras).fit(bad, Y, epochs=5, shuffle=False, verbose=0, callbacks=[stop]).history
    assert len(history["loss"]) == 1


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X[:, :3], Y, r"expected axis -1 of input shape to have value 4, but received input with shape"),
        (X, np.zeros((ROWS, 3)), r"must have the same shape. Received: target.shape=\(32, 3\)"),
        (X, Y[:5], r"Make sure all arrays contain the same number of samples"),
    ],
)
def test_data_that_does_not_fit_is_refused(keras: Any, trained: Any, x: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trained[0].fit(x, y, verbose=0)


def test_a_dataset_holds_its_targets(keras: Any, trained: Any) -> None:
    dataset = df.data.Dataset.from_tensor_slices((X, Y, np.ones(ROWS, np.float32))).batch(32)
    with pytest.raises(ValueError, match="`y` and `sample_weight` must be None"):
        trained[0].fit(dataset, Y, verbose=0)
    with pytest.raises(
        ValueError, match="`class_weight` can't be used with a dataset that has sample weights"
    ):
        trained[0].fit(dataset, class_weight={0: 1.0}, verbose=0)


def test_a_step_of_the_model_s_own_is_compiled(keras: Any) -> None:
    class Own(keras.Model):  # type: ignore[misc,name-defined]  # Keras has no types
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
            self.calls = 0

        def call(self, x: Any) -> Any:
            return self.dense(x)

        def train_step(self, data: Any) -> Any:
            self.calls += 1
            x, y = data
            with df.GradientTape() as tape:
                loss = df.reduce_mean(df.square(self(x) - y))
            weights = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            return {"own": loss}

    model = Own()
    model.compile(keras.optimizers.SGD(0.1))
    history = model.fit(X[:64], X[:64, :1], epochs=20, verbose=0).history
    assert model.calls == 1
    assert history["own"][-1] < 0.1 < history["own"][0]


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision_keeps_weights_in_float32(keras: Any, policy: str) -> None:
    keras.mixed_precision.set_dtype_policy(policy)
    try:
        model = make(keras)
        losses = model.fit(X, Y, epochs=3, shuffle=False, verbose=0).history["loss"]
    finally:
        keras.mixed_precision.set_dtype_policy("float32")
    assert {v.dtype for v in model.trainable_variables} == {"float32"}
    assert model(X).dtype.name == policy.removeprefix("mixed_")
    assert losses[-1] < losses[0]


def test_a_saved_model_goes_on_where_it_was(keras: Any, trained: Any, tmp_path: Any) -> None:
    model, _ = trained
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    again = keras.models.load_model(tmp_path / "model.keras")
    other = make(keras)
    other.load_weights(tmp_path / "model.weights.h5")
    expected = model.predict(X, verbose=0)
    np.testing.assert_array_equal(again.predict(X, verbose=0), expected)
    np.testing.assert_array_equal(other.predict(X, verbose=0), expected)
    for result, own in zip(again.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(result.numpy(), own.numpy())


def test_the_tensorboard_callback_writes_by_dualflow(keras: Any, trained: Any, tmp_path: Any) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    model, _ = trained
    callback = keras.callbacks.TensorBoard(str(tmp_path), histogram_freq=1, update_freq=1)
    history = model.fit(X, Y, epochs=2, validation_data=(X, Y), verbose=0, callbacks=[callback]).history

    def written(part: str) -> Any:
        return EventAccumulator(str(tmp_path / part)).Reload()

    train = written("train")
    losses = [event.value for event in train.Scalars("epoch_loss")]
    assert losses == pytest.approx(history["loss"])
    assert [e.value for e in written("validation").Scalars("epoch_loss")] == pytest.approx(
        history["val_loss"]
    )
    assert "keras" in " ".join(train.Tags()["tensors"])


def test_a_checkpoint_holds_a_model_and_its_optimizer(keras: Any, tmp_path: Any) -> None:
    model = make(keras)
    model.fit(X, Y, verbose=0)
    checkpoint = df.train.Checkpoint(model=model, optimizer=model.optimizer)
    path = checkpoint.save(str(tmp_path / "saved"))
    kept = [*parameters(model), *[v.numpy() for v in model.optimizer.variables]]
    model.fit(X, Y, verbose=0)
    checkpoint.restore(path).assert_consumed()
    values = [*parameters(model), *[v.numpy() for v in model.optimizer.variables]]
    for a, b in zip(values, kept, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_metrics_and_steps_may_return_variables(keras: Any, run_eagerly: bool) -> None:
    class Counted(keras.metrics.Metric):  # type: ignore[misc,name-defined]  # Keras has no types
        """A metric whose result is its variable, as in Keras's documentation."""

        def __init__(self, name: str = "counted") -> None:
            super().__init__(name=name)
            self.total = self.add_variable(shape=(), initializer="zeros", name="total")

        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
            self.total.assign_add(float(len(y_pred)))

        def result(self) -> Any:
            return self.total

    class Counting(keras.Sequential):  # type: ignore[misc,name-defined]  # Keras has no types
        """A model whose step returns a variable."""

        def __init__(self, layers: Any) -> None:
            super().__init__(layers)
            self.steps = self.add_weight(shape=(), initializer="zeros", trainable=False)

        def train_step(self, data: Any) -> Any:
            logs = super().train_step(data)
            self.steps.assign_add(1.0)
            return {**logs, "steps": self.steps}

    model = Counting([keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Counted()], run_eagerly=run_eagerly)
    history = model.fit(np.ones((8, 4)), np.ones((8, 1)), batch_size=2, epochs=2, verbose=0).history
    assert list(history) == ["counted", "loss", "steps"]
    assert history["counted"] == [8.0, 8.0]
    assert history["steps"] == [4.0, 8.0]
