"""Programs of tf_slim's users: models that are built, trained, saved, restored and evaluated."""

import tempfile

import numpy as np
import tensorflow as tf
import tf_slim as slim
from tf_slim.nets import alexnet, inception_v1, resnet_v1, resnet_v2

rng = np.random.default_rng(0)
centres = rng.normal(0, 1, (3, 8, 8, 1)).astype(np.float32)
classes = np.arange(48) % 3
images = (centres[classes] + rng.normal(0, 0.3, (48, 8, 8, 1))).astype(np.float32)
FOLDER = tempfile.mkdtemp()


def small_network(x, is_training):
    with slim.arg_scope([slim.conv2d, slim.fully_connected], weights_regularizer=slim.l2_regularizer(1e-4)):
        x = slim.conv2d(
            x,
            8,
            [3, 3],
            scope="conv",
            normalizer_fn=slim.batch_norm,
            normalizer_params={"is_training": is_training, "decay": 0.9},
        )
        x = slim.max_pool2d(x, [2, 2], scope="pool")
        x = slim.dropout(slim.flatten(x), 0.9, is_training=is_training)
        return slim.fully_connected(x, 3, activation_fn=None, scope="logits")


def train_and_save():
    logits = small_network(tf.constant(images), is_training=True)
    tf.losses.sparse_softmax_cross_entropy(classes, logits)
    step = slim.learning.create_train_op(tf.losses.get_total_loss(), tf.train.AdamOptimizer(0.01))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [float(session.run(step)) for _ in range(40)]
        assert losses[-1] < 0.3 * losses[0], losses
        assert session.run(tf.train.get_global_step()) == 40
        tf.train.Saver().save(session, f"{FOLDER}/model.ckpt", 40)


def evaluate_a_checkpoint():
    logits = small_network(tf.constant(images), is_training=False)
    names_to_values, names_to_updates = slim.metrics.aggregate_metric_map(
        {"accuracy": tf.metrics.accuracy(classes, tf.argmax(logits, 1))}
    )
    tf.train.get_or_create_global_step()
    accuracy = slim.evaluation.evaluate_once(
        "",
        tf.train.latest_checkpoint(FOLDER),
        FOLDER,
        num_evals=2,
        eval_op=list(names_to_updates.values()),
        final_op=names_to_values["accuracy"],
    )
    assert accuracy > 0.95, accuracy


def restore_some_variables():
    small_network(tf.constant(images), is_training=False)
    kept = slim.get_variables_to_restore(exclude=["logits"])
    assert [v.op.name for v in kept] == [
        "conv/weights",
        "conv/BatchNorm/beta",
        "conv/BatchNorm/moving_mean",
        "conv/BatchNorm/moving_variance",
    ]
    restore = slim.assign_from_checkpoint_fn(tf.train.latest_checkpoint(FOLDER), kept)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        restore(session)
        assert abs(session.run(slim.get_variables_by_name("moving_mean")[0])).max() > 0


def scores(network, size, **options):
    def run():
        x = tf.random_uniform([1, size, size, 3], seed=1)
        logits, end_points = network(x, 7, is_training=False, **options)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            values = session.run(logits)
        assert values.size == 7
        assert np.isfinite(values).all()
        assert len(end_points) > 5

    return run


PROGRAMS = {
    "train and save": train_and_save,
    "evaluate a checkpoint": evaluate_a_checkpoint,
    "restore some variables": restore_some_variables,
    "alexnet": scores(alexnet.alexnet_v2, 224),
    "inception v1": scores(inception_v1.inception_v1, 224),
    "resnet v1": scores(resnet_v1.resnet_v1_50, 64),
    "resnet v2": scores(resnet_v2.resnet_v2_50, 64),
}
for name, program in PROGRAMS.items():
    try:
        with tf.Graph().as_default():
            program()
        print(f"pass {name}", flush=True)
    except Exception as error:
        print(f"fail {name}: {type(error).__name__}: {error}".partition("\n")[0], flush=True)
