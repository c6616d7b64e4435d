"""Training with the state of optimizers divided among the workers; run by all workers of a job together."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from workers import RESULTS

import dualflow as df

keras = df.keras
WHOLE = df.distribute.MultiWorkerMirroredStrategy()
SHARDED = df.distribute.MultiWorkerMirroredStrategy(shard_optimizer_state=True)
COUNT, RANK = WHOLE.num_replicas_in_sync, WHOLE.cluster_resolver.task_id
SHARED = Path(os.environ[RESULTS])
RNG = np.random.default_rng(0)
X = RNG.standard_normal((32, 5)).astype(np.float32)
Y = (X[:, 0] > X[:, 1]).astype(np.int32)
OPTIMIZERS: Final[dict[str, Callable[[], Any]]] = {
    "SGD": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "RMSprop": lambda: keras.optimizers.RMSprop(0.01, centered=True, momentum=0.5),
    "Adam": lambda: keras.optimizers.Adam(0.01, amsgrad=True),
    "AdamW": lambda: keras.optimizers.AdamW(0.01, weight_decay=0.1),
    "Adagrad": lambda: keras.optimizers.Adagrad(0.05),
    "Lion": lambda: keras.optimizers.Lion(0.01),
    "Ftrl": lambda: keras.optimizers.Ftrl(0.05, l1_regularization_strength=0.01),
}
CLIPPED: Final[dict[str, Callable[[], Any]]] = {
    "norm": lambda: keras.optimizers.Adam(0.01, clipnorm=0.05),
    "global norm": lambda: keras.optimizers.Adam(0.01, global_clipnorm=0.05),
    "value": lambda: keras.optimizers.Adam(0.01, clipvalue=0.01),
}


def model(strategy: Any, optimizer: Callable[[], Any], **options: Any) -> Any:
    """Layers of 3, 1 and 7 columns, so that parts of variables are padded."""
    keras.utils.set_random_seed(1)
    with strategy.scope():
        built = keras.Sequential(
            [
                keras.Input([5]),
                keras.layers.Dense(3, "tanh", kernel_constraint=keras.constraints.MaxNorm(1.0)),
                keras.layers.Dense(7, "tanh"),
                keras.layers.Dense(2),
            ]
        )
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        built.compile(optimizer(), loss, **options)
    return built


def fit(trained: Any, epochs: int = 2) -> Any:
    """The losses, and whether the bits of all weights are the same on all workers."""
    losses = trained.fit(X, Y, batch_size=16, epochs=epochs, shuffle=False, verbose=0).history["loss"]
    for weight in trained.get_weights():
        every = WHOLE.gather(df.constant(weight)[None], axis=0).numpy()
        assert all(np.array_equal(other, weight) for other in every)
    return losses


def slot_sizes(trained: Any) -> int:
    return sum(int(np.prod(v.shape)) for v in trained.optimizer.variables)


def check_every_optimizer_has_the_weights_of_whole_state() -> None:
    """To the bit with two workers, whose sums have one order."""
    for name, optimizer in OPTIMIZERS.items():
        whole, sharded = model(WHOLE, optimizer), model(SHARDED, optimizer)
        losses = fit(whole), fit(sharded)
        assert np.allclose(*losses, rtol=1e-5), (name, losses)
        for a, b in zip(whole.get_weights(), sharded.get_weights(), strict=True):
            assert np.array_equal(a, b) if COUNT == 2 else np.allclose(a, b, atol=1e-5), (name, a, b)


def check_clips_are_those_of_whole_gradients() -> None:
    for name, optimizer in CLIPPED.items():
        whole, sharded = model(WHOLE, optimizer), model(SHARDED, optimizer)
        assert np.allclose(fit(whole), fit(sharded), rtol=1e-5), name
        for a, b in zip(whole.get_weights(), sharded.get_weights(), strict=True):
            assert np.allclose(a, b, atol=1e-5), name


def check_moving_averages_are_those_of_whole_variables() -> None:
    """In all steps, where averages replace variables in every third, at the end, and swapped for a test."""

    def optimizer() -> Any:
        return keras.optimizers.Adam(0.1, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=3)

    whole, sharded = model(WHOLE, optimizer), model(SHARDED, optimizer)
    assert np.allclose(fit(whole), fit(sharded), rtol=1e-5)
    losses = []
    for trained in (whole, sharded):
        swap = keras.callbacks.SwapEMAWeights(swap_on_epoch=True)
        options = {"shuffle": False, "validation_data": (X, Y), "callbacks": [swap], "verbose": 0}
        history = trained.fit(X, Y, batch_size=16, **options).history
        losses.append([*history["loss"], *history["val_loss"]])
    assert np.allclose(*losses, rtol=1e-5), losses
    for a, b in zip(whole.get_weights(), sharded.get_weights(), strict=True):
        assert np.array_equal(a, b) if COUNT == 2 else np.allclose(a, b, atol=1e-5), (a, b)


def check_averages_of_variables_of_dualflow_and_without_gradients() -> None:
    """In eager and compiled steps; averages replace variables in every second one, and at the end."""
    values = []
    for strategy in (WHOLE, SHARDED):
        with strategy.scope():
            variables = [df.Variable(df.range(5.0)), df.Variable(2.0), df.Variable([1.0, 1 / 3, 0.7])]
            optimizer = keras.optimizers.SGD(0.25, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=2)

        def step(variables: Any = variables, optimizer: Any = optimizer) -> None:
            with df.GradientTape() as tape:
                loss = df.reduce_sum(variables[0] ** 2) * (RANK + 1.0) + variables[1] ** 2
            gradients = tape.gradient(loss, variables)
            optimizer.apply_gradients(zip(gradients, variables, strict=True))

        compiled = df.function(lambda s=strategy, f=step: s.run(f))
        with warnings.catch_warnings(action="ignore"):  # a variable has no gradient
            for f in (compiled, lambda s=strategy, f=step: s.run(f), compiled):
                f()
        optimizer.finalize_variable_values(variables)
        values.append([v.numpy() for v in variables])
    for a, b in zip(*values, strict=True):
        assert np.array_equal(a, b) if COUNT == 2 else np.allclose(a, b, atol=1e-5), (a, b)


def check_each_worker_has_its_part_of_the_state() -> None:
    whole, sharded = model(WHOLE, OPTIMIZERS["Adam"]), model(SHARDED, OPTIMIZERS["Adam"])
    fit(whole, 1)
    fit(sharded, 1)
    variables = len(sharded.trainable_variables)
    assert slot_sizes(sharded) - 2 <= (slot_sizes(whole) - 2) / COUNT + 3 * variables
    parts = [v for v in sharded.optimizer.variables if v.shape]
    assert all(len(v.shape) == 1 for v in parts)


def check_eager_steps_are_those_of_compiled_ones() -> None:
    compiled = model(SHARDED, OPTIMIZERS["Adam"])
    eager = model(SHARDED, OPTIMIZERS["Adam"], run_eagerly=True)
    assert np.allclose(fit(compiled, 1), fit(eager, 1), rtol=1e-5)


def check_a_loop_of_ones_own_with_tensors_of_16_bits_and_slices() -> None:
    """Variables of dualflow itself, an embedding's slices, and a gradient of None."""
    values = []
    for strategy in (WHOLE, SHARDED):
        with strategy.scope():
            table, half = df.Variable(df.ones([9, 2])), df.Variable(df.ones([3], df.bfloat16))
            unused = df.Variable(1.0)
            optimizer = keras.optimizers.SGD(0.5, momentum=0.5)

        def step(
            table: Any = table, half: Any = half, unused: Any = unused, optimizer: Any = optimizer
        ) -> None:
            with df.GradientTape() as tape:
                rows = df.gather(table, [RANK, 4])
                loss = df.reduce_sum(rows) + df.cast(df.reduce_sum(half * half), df.float32)
            gradients = tape.gradient(loss, [table, half, unused])
            optimizer.apply_gradients(zip(gradients, [table, half, unused], strict=True))

        compiled = df.function(lambda s=strategy, f=step: s.run(f))
        with (
            pytest.warns(UserWarning, match="Gradients do not exist")
            if strategy is WHOLE
            else pytest.MonkeyPatch.context()
        ):
            for _ in range(3):
                compiled()
        values.append([df.cast(v, df.float32).numpy() for v in (table, half, unused)])
    for a, b in zip(*values, strict=True):
        assert np.allclose(a, b, atol=1e-2)


def check_checkpoints_have_the_whole_state_and_fit_any_number_of_workers() -> None:
    """A checkpoint of divided state is restored into whole state, and the other way round."""
    sharded = model(SHARDED, OPTIMIZERS["Adam"])
    fit(sharded, 1)
    path = df.train.Checkpoint(model=sharded, optimizer=sharded.optimizer).save(SHARED / "sharded" / "c")
    sharded.save(SHARED / "sharded.keras")
    sharded.save_weights(SHARED / "sharded.weights.h5")
    expected = fit(sharded, 1)
    for strategy in (WHOLE, SHARDED):
        restored = model(strategy, OPTIMIZERS["Adam"])
        fit(restored, 1)
        checkpoint = df.train.Checkpoint(model=restored, optimizer=restored.optimizer)
        checkpoint.restore(path).assert_existing_objects_matched()
        assert np.allclose(fit(restored, 1), expected, rtol=1e-5)
        with strategy.scope():
            loaded = keras.models.load_model(SHARED / "sharded.keras")
        assert np.allclose(fit(loaded, 1), expected, rtol=1e-5)
        restored.load_weights(SHARED / "sharded.weights.h5")
        assert np.allclose(fit(restored, 1), expected, rtol=1e-5)


def check_a_checkpoint_of_whole_state_is_divided() -> None:
    whole = model(WHOLE, OPTIMIZERS["Adam"])
    fit(whole, 1)
    path = df.train.Checkpoint(model=whole, optimizer=whole.optimizer).save(SHARED / "whole" / "c")
    expected = fit(whole, 1)
    sharded = model(SHARDED, OPTIMIZERS["Adam"])
    df.train.Checkpoint(model=sharded, optimizer=sharded.optimizer).restore(path)
    assert np.allclose(fit(sharded, 1), expected, rtol=1e-5)


def check_state_that_other_numbers_of_workers_saved_is_restored() -> None:
    """Each job saves a checkpoint and the losses after it; the next ones restore those of all before."""
    for folder in sorted(SHARED.glob("saved_by_*")):
        restored = model(SHARDED, OPTIMIZERS["Adam"])
        fit(restored, 1)
        checkpoint = df.train.Checkpoint(model=restored, optimizer=restored.optimizer)
        checkpoint.restore(str(folder / "c-1")).assert_existing_objects_matched()
        expected = json.loads((folder / "losses.json").read_text(encoding="utf-8"))
        assert np.allclose(fit(restored), expected, rtol=0, atol=1e-5), folder.name
    folder, saved = SHARED / f"saved_by_{COUNT}", model(SHARDED, OPTIMIZERS["Adam"])
    fit(saved, 1)
    df.train.Checkpoint(model=saved, optimizer=saved.optimizer).save(folder / "c")
    losses = fit(saved)
    if RANK == 0:
        (folder / "losses.json").write_text(json.dumps(losses), encoding="utf-8")


def check_optimizers_of_whole_variables_are_refused() -> None:
    refused = {
        "Lamb needs whole variables": lambda: keras.optimizers.Lamb(),
        "gradient_accumulation_steps needs": lambda: keras.optimizers.SGD(gradient_accumulation_steps=2),
        "LossScaleOptimizer needs": lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD()),
    }
    for message, optimizer in refused.items():
        with pytest.raises(df.errors.InvalidArgumentError, match=message):
            fit(model(SHARDED, optimizer), 1)
