"""Keras's models trained by several workers; run by all workers of a job together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from workers import RESULTS

import dualflow as df

keras = df.keras
strategy = df.distribute.MultiWorkerMirroredStrategy()
COUNT, RANK = strategy.num_replicas_in_sync, strategy.cluster_resolver.task_id
SHARED = Path(os.environ[RESULTS])
ALONE = df.distribute.OneDeviceStrategy("/cpu:0")
RNG = np.random.default_rng(0)
X = RNG.standard_normal((50, 6)).astype(np.float32)
Y = (X[:, 0] > X[:, 1]).astype(np.int32)


def model(scope: Any, *layers: Any, optimizer: Any = None, **options: Any) -> Any:
    """A compiled classifier with the same weights each time."""
    keras.utils.set_random_seed(1)
    with scope.scope():
        built = keras.Sequential(
            [
                keras.Input([6]),
                keras.layers.Dense(8, "relu"),
                *[layer() for layer in layers],
                keras.layers.Dense(2),
            ]
        )
        built.compile(
            (optimizer or (lambda: keras.optimizers.SGD(0.1, momentum=0.9)))(),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
            **options,
        )
    return built


def assert_equal_training(*layers: Any, data: Any = lambda: (X, Y), fit: Any = None, **options: Any) -> Any:
    """Train alone and together; losses, metrics and weights must agree."""
    fit = fit or {"batch_size": 16, "epochs": 3, "shuffle": False}
    alone, together = model(ALONE, *layers, **options), model(strategy, *layers, **options)
    expected = alone.fit(*data(), verbose=0, **fit).history
    history = together.fit(*data(), verbose=0, **fit).history
    assert history.keys() == expected.keys()
    for name, values in history.items():
        assert np.allclose(values, expected[name], rtol=0, atol=1e-5), (name, values, expected[name])
    for a, b in zip(alone.get_weights(), together.get_weights(), strict=True):
        assert np.allclose(a, b, rtol=0, atol=1e-5)
    return together


def check_fit_of_arrays_with_a_last_batch_of_two_rows() -> None:
    assert_equal_training()


def check_fit_shuffles_alike() -> None:
    np.random.seed(7)
    alone = model(ALONE)
    losses = alone.fit(X, Y, batch_size=16, epochs=2, verbose=0).history["loss"]
    np.random.seed(7 + RANK)
    together = model(strategy).fit(X, Y, batch_size=16, epochs=2, verbose=0).history["loss"]
    assert np.allclose(losses, together, rtol=0, atol=1e-5)


def check_fit_of_a_dataset() -> None:
    def shuffled() -> Any:
        return (df.data.Dataset.from_tensor_slices((X, Y)).shuffle(50, seed=3).batch(16).prefetch(2),)

    assert_equal_training(data=shuffled, fit={"epochs": 2})


def check_fit_of_a_distributed_dataset() -> None:
    dataset = df.data.Dataset.from_tensor_slices((X[:48], Y[:48])).batch(16)
    alone = model(ALONE).fit(dataset, epochs=2, verbose=0).history["loss"]
    own = strategy.experimental_distribute_dataset(dataset)
    assert np.allclose(
        model(strategy).fit(own, epochs=2, verbose=0).history["loss"], alone, rtol=0, atol=1e-5
    )


def check_fit_with_validation_weights_and_regularizers() -> None:
    weights = RNG.random(50).astype(np.float32)
    assert_equal_training(
        lambda: keras.layers.Dense(4, kernel_regularizer="l2"),
        fit={
            "batch_size": 16,
            "epochs": 2,
            "shuffle": False,
            "validation_data": (X[:30], Y[:30], weights[:30]),
        },
        weighted_metrics=["accuracy"],
    )


def check_fit_with_clipping_and_accumulation() -> None:
    assert_equal_training(
        optimizer=lambda: keras.optimizers.Adam(0.01, global_clipnorm=0.1, gradient_accumulation_steps=2)
    )


def check_fit_with_loss_scaling() -> None:
    assert_equal_training(optimizer=lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1)))


def check_moments_are_synchronized() -> None:
    own = X[: RANK * 5 + 1]
    whole = np.concatenate([X[: rank * 5 + 1] for rank in range(COUNT)])
    moments = strategy.run(lambda: keras.ops.moments(own, [0], synchronized=True))
    assert np.allclose(moments[0].numpy(), whole.mean(0), atol=1e-6)
    assert np.allclose(moments[1].numpy(), whole.var(0), atol=1e-6)


def check_statistics_of_batch_normalization_are_means_over_replicas() -> None:
    together = model(strategy, keras.layers.BatchNormalization)
    together.fit(X, Y, batch_size=16, epochs=1, verbose=0)
    means = strategy.gather(df.convert_to_tensor(together.layers[1].moving_mean)[None], axis=0).numpy()
    assert np.array_equal(means, np.stack([means[0]] * COUNT))


def check_fit_eagerly_and_several_steps_per_execution() -> None:
    assert_equal_training(run_eagerly=True, fit={"batch_size": 16, "epochs": 1, "shuffle": False})
    assert_equal_training(steps_per_execution=2)


def check_evaluate_and_predict_are_those_of_one_worker() -> None:
    alone, together = model(ALONE), model(strategy)
    for size in (1, 49):
        expected = alone.evaluate(X[:size], Y[:size], batch_size=8, verbose=0)
        assert np.allclose(
            together.evaluate(X[:size], Y[:size], batch_size=8, verbose=0), expected, atol=1e-6
        )
        predictions = together.predict(X[:size], batch_size=8, verbose=0)
        assert np.allclose(predictions, alone.predict(X[:size], batch_size=8, verbose=0), atol=1e-6)


def check_predictions_by_name_are_those_of_one_worker() -> None:
    """The replicas' parts of the batch have unequal sizes."""
    predictions = []
    for scope in (ALONE, strategy):
        keras.utils.set_random_seed(1)
        with scope.scope():
            inputs = keras.Input([6])
            named = keras.Model(inputs, {"double": inputs * 2.0, "class": keras.layers.Dense(2)(inputs)})
        predictions.append(named.predict(X[:7], batch_size=7, verbose=0))
    for name in ("double", "class"):
        assert np.allclose(predictions[1][name], predictions[0][name], atol=1e-6)


def check_a_loop_of_ones_own_with_an_optimizer_and_a_metric() -> None:
    def losses(scope: Any, dataset: Any) -> tuple[list[float], float]:
        trained = model(scope)
        with scope.scope():
            optimizer, accuracy = keras.optimizers.SGD(0.1), keras.metrics.SparseCategoricalAccuracy()

        def step(x: Any, y: Any) -> Any:
            with df.GradientTape() as tape:
                logits = trained(x, training=True)
                errors = df.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
                loss = df.nn.compute_average_loss(errors, global_batch_size=16)
            weights = trained.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            accuracy.update_state(y, logits)
            return loss

        @df.function
        def train(x: Any, y: Any) -> Any:
            return scope.reduce("SUM", scope.run(step, args=(x, y)), axis=None)

        every = [
            float(train(x, y)) for _ in range(3) for x, y in scope.experimental_distribute_dataset(dataset)
        ]
        return every, float(accuracy.result())

    dataset = df.data.Dataset.from_tensor_slices((X, Y)).batch(16)
    alone, together = losses(ALONE, dataset), losses(strategy, dataset)
    assert np.allclose(alone[0], together[0], rtol=0, atol=1e-5)
    assert np.isclose(alone[1], together[1])


def check_models_are_saved_by_the_first_worker() -> None:
    trained = model(strategy)
    if RANK:
        trained.set_weights([0 * w for w in trained.get_weights()])
    trained.save(SHARED / "model.keras")
    loaded = keras.models.load_model(SHARED / "model.keras")
    expected = model(ALONE).get_weights()
    assert all(np.array_equal(a, b) for a, b in zip(loaded.get_weights(), expected, strict=True))


def check_a_metric_is_reset_and_sums_over_replicas() -> None:
    with strategy.scope():
        mean = keras.metrics.Mean()
    strategy.run(lambda: mean.update_state(float(RANK)))
    assert float(mean.result()) == (COUNT - 1) / 2
    mean.reset_state()
    strategy.run(lambda: mean.update_state(3.0))
    assert float(mean.result()) == 3.0
