"""Programs with the calls of TensorFlow's guides on distribution; run by all workers of a job together.

They are of "Distributed training", "Custom training with tf.distribute.Strategy", "Distributed training with
Keras", "Multi-worker training with Keras" and "with a custom loop", "Distributed input", and "Save and load a
model using a distribution strategy".
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from digits_model import digits
from workers import RESULTS

import dualflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
COUNT, RANK = strategy.num_replicas_in_sync, strategy.cluster_resolver.task_id
SHARED = Path(os.environ[RESULTS])
IMAGES, LABELS = digits()
X, Y = (IMAGES[:192, ..., None] / np.float32(16)).astype(np.float32), LABELS[:192].astype(np.int64)
BATCH = 32


def small_model(**options: Any) -> Any:
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Conv2D(4, 3, activation="relu", **options),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(10, **options),
        ]
    )


def compiled_model() -> Any:
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input([8, 8, 1]), small_model()])
        model.compile(
            loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            optimizer=tf.keras.optimizers.SGD(learning_rate=0.1),
            metrics=["accuracy"],
        )
    return model


def own_path(path: Path) -> str:
    """Where a worker writes: the first one to ``path``, others to a folder of their own."""
    resolver = strategy.cluster_resolver
    if resolver.task_type == "worker" and resolver.task_id == 0:
        return str(path)
    folder = path.parent / f"workertemp_{resolver.task_id}"
    tf.io.gfile.makedirs(str(folder))
    return str(folder / path.name)


def check_a_custom_loop_with_metrics_and_checkpoints() -> None:
    train = tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(len(X)).batch(BATCH)
    distributed = strategy.experimental_distribute_dataset(train)
    with strategy.scope():
        loss_object = tf.keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction=tf.keras.losses.Reduction.NONE
        )
        accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")
        model = small_model(kernel_regularizer=tf.keras.regularizers.L2(1e-5))
        optimizer = tf.keras.optimizers.Adam(learning_rate=0.01)
        checkpoint = tf.train.Checkpoint(optimizer=optimizer, model=model)

    def train_step(inputs: Any) -> Any:
        images, labels = inputs
        with tf.GradientTape() as tape:
            predictions = model(images, training=True)
            loss = tf.nn.compute_average_loss(loss_object(labels, predictions))
            loss += tf.nn.scale_regularization_loss(tf.add_n(model.losses))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        accuracy.update_state(labels, predictions)
        return loss

    @tf.function
    def distributed_step(inputs: Any) -> Any:
        losses = strategy.run(train_step, args=(inputs,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    @tf.function
    def distributed_epoch(dataset: Any) -> Any:
        total, batches = 0.0, 0
        for x in dataset:
            losses = strategy.run(train_step, args=(x,))
            total += strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)
            batches += 1
        return total / tf.cast(batches, dtype=tf.float32)

    means = []
    for _ in range(3):
        steps = [float(distributed_step(x)) for x in distributed]
        means.append(sum(steps) / len(steps))
        accuracy.reset_states()
    iterator = iter(distributed)
    distributed_step(next(iterator))
    means.append(float(distributed_epoch(distributed)))
    assert means == sorted(means, reverse=True)
    assert 0.0 < float(accuracy.result()) <= 1.0

    path = checkpoint.save(str(SHARED / "custom" / "ckpt"))
    assert tf.train.latest_checkpoint(str(SHARED / "custom")) == path
    alone = small_model()
    tf.train.Checkpoint(optimizer=tf.keras.optimizers.Adam(), model=alone).restore(path)
    evaluate = tf.function(lambda images: alone(images, training=False))
    assert np.allclose(evaluate(X[:5]).numpy(), model(X[:5]).numpy(), atol=1e-5)


def check_fit_with_callbacks_that_write_files() -> None:
    folder = SHARED / "fit"
    model, rates = compiled_model(), []

    class RecordRate(tf.keras.callbacks.Callback):  # type: ignore[misc, name-defined]  # Keras has no types
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            rates.append(float(model.optimizer.learning_rate.numpy()))

    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).cache().shuffle(100).batch(BATCH)
    callbacks = [
        tf.keras.callbacks.ModelCheckpoint(
            filepath=str(folder / "ckpt_{epoch:04d}.weights.h5"), save_weights_only=True
        ),
        tf.keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 if epoch < 1 else 0.01),
        tf.keras.callbacks.BackupAndRestore(backup_dir=str(folder / "backup"), save_freq=4),
        RecordRate(),
    ]
    model.fit(dataset, epochs=2, callbacks=callbacks, verbose=0)
    assert np.allclose(rates, [0.1, 0.01])
    assert not (folder / "backup").exists()
    weights = sorted(folder.glob("*.h5"))
    assert len(weights) == 2
    model.load_weights(weights[-1])
    expected = model.evaluate(X, Y, batch_size=BATCH, verbose=0)

    path = own_path(folder / "model.keras")
    model.save(path)
    if RANK:
        tf.io.gfile.rmtree(os.path.dirname(path))
    for scope in (tf.distribute.OneDeviceStrategy("/cpu:0").scope(), strategy.scope()):
        with scope:
            loaded = tf.keras.models.load_model(folder / "model.keras")
        assert np.allclose(loaded.evaluate(X, Y, batch_size=BATCH, verbose=0), expected, atol=1e-5)


def check_a_loop_that_saves_its_step_by_a_manager() -> None:
    def rows(context: Any) -> Any:
        size = context.get_per_replica_batch_size(BATCH)
        own = tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(100).repeat()
        return own.shard(context.num_input_pipelines, context.input_pipeline_id).batch(size)

    with strategy.scope():
        model = small_model()
        dataset = strategy.distribute_datasets_from_function(rows)
        optimizer = tf.keras.optimizers.RMSprop(learning_rate=0.001)
    epoch = tf.Variable(initial_value=tf.constant(0, dtype=tf.dtypes.int64), name="epoch")

    @tf.function
    def train_step(iterator: Any) -> Any:
        def step(inputs: Any) -> Any:
            x, y = inputs
            with tf.GradientTape() as tape:
                errors = tf.keras.losses.SparseCategoricalCrossentropy(
                    from_logits=True, reduction=tf.keras.losses.Reduction.NONE
                )(y, model(x, training=True))
                loss = tf.nn.compute_average_loss(errors)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        return strategy.reduce("SUM", strategy.run(step, args=(next(iterator),)), axis=None)

    path = own_path(SHARED / "loop")
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(model=model, epoch=epoch), directory=path, max_to_keep=1
    )
    for _ in range(2):
        iterator = iter(dataset)
        for _ in range(2):
            assert np.isfinite(float(train_step(iterator)))
        epoch.assign_add(1)
        manager.save()
        if RANK:
            tf.io.gfile.rmtree(path)
    strategy.gather(tf.zeros([1]), axis=0)
    restored = tf.Variable(0, dtype=tf.int64)
    tf.train.Checkpoint(epoch=restored).restore(
        tf.train.latest_checkpoint(str(SHARED / "loop"))
    ).expect_partial()
    assert restored.numpy() == 2


def check_the_kinds_of_distributed_input() -> None:
    dataset = tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(20).batch(8)
    distributed = strategy.experimental_distribute_dataset(dataset)

    @tf.function(input_signature=[distributed.element_spec])
    def doubled(inputs: Any) -> Any:
        return strategy.run(lambda pair: [2 * x for x in pair], args=(inputs,))

    iterator = iter(distributed)
    assert doubled(next(iterator))[0].numpy().tolist() == [[2.0]] * (8 // COUNT)
    assert len(iterator.get_next()[0]) == 8 // COUNT

    result: dict[int, int] = {}
    numbered = tf.data.Dataset.range(24).enumerate().batch(6)
    for index, inputs in strategy.experimental_distribute_dataset(numbered):
        own_index, outputs = strategy.run(lambda i, x: (i, 2 * x), args=(index, inputs))
        for i, x in zip(
            strategy.experimental_local_results(own_index),
            strategy.experimental_local_results(outputs),
            strict=True,
        ):
            result.update(zip(i.numpy().tolist(), x.numpy().tolist(), strict=True))
    assert all(x == 2 * i for i, x in result.items())
    assert len(strategy.gather(tf.constant(list(result)), axis=0)) == 24

    values = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(context.replica_id_in_sync_group)
    )
    assert strategy.run(lambda x: x, args=(values,)).numpy() == RANK
    generated = tf.data.Dataset.from_generator(
        lambda: iter(np.arange(8.0).reshape(2, 4)),
        output_types=(tf.float32),
        output_shapes=tf.TensorShape([4]),
    )
    assert next(iter(strategy.experimental_distribute_dataset(generated))).shape == [4 // COUNT]


def check_a_saved_model_serves_on_all_workers() -> None:
    model = compiled_model()
    tf.saved_model.save(model, str(SHARED / "saved"))
    batches = tf.data.Dataset.from_tensor_slices(X[:8]).batch(8)
    with tf.distribute.MirroredStrategy().scope():
        serve = tf.saved_model.load(str(SHARED / "saved")).signatures["serving_default"]
        (batch,) = strategy.experimental_distribute_dataset(batches)
        (own,) = strategy.run(serve, args=(batch,)).values()
    whole = strategy.gather(own, axis=0)
    assert np.allclose(whole.numpy(), model(X[:8]).numpy(), atol=1e-5)
