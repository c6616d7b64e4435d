"""A graph that is built first and run in a session, as in TensorFlow 1: a model, and its training.

python examples/explicit_graph.py
"""

from __future__ import annotations

import warnings

import numpy as np

from dualflow.compat import v1 as tf


def spirals(count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points on two spirals, and the index of the spiral of each."""
    label = generator.integers(0, 2, count)
    angle = generator.uniform(0.5, 3.0, count) * np.pi
    turned = angle + label * np.pi
    x = np.stack([angle * np.cos(turned), angle * np.sin(turned)], axis=1)
    return (x + generator.normal(0.0, 0.1, x.shape)).astype(np.float32), label


def network(x: tf.Tensor) -> tf.Tensor:
    """The logit of the second spiral; it builds nodes of an explicit graph, and runs at once elsewhere."""
    hidden = x
    for units in (32, 32):
        hidden = tf.layers.dense(hidden, units, activation=tf.nn.tanh)
    return tf.squeeze(tf.layers.dense(hidden, 1), axis=1, name="logit")


def train() -> None:
    """The graph is built once and finalized; each run computes its fetches, for any number of points."""
    generator = np.random.default_rng(0)
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(0)
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        label = tf.placeholder(tf.int32, [None], name="label")
        net = tf.make_template("net", network)
        logit = net(x)
        with tf.name_scope("loss"):
            target = tf.cast(label, tf.float32)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=target, logits=logit))
        correct = tf.equal(logit > 0.0, tf.equal(label, 1))
        accuracy = tf.reduce_mean(tf.cast(correct, tf.float32), name="accuracy")
        step = tf.train.AdamOptimizer(0.01).minimize(loss)
        start = tf.global_variables_initializer()
        print("variables:", ", ".join(v.name for v in net.variables))
    graph.finalize()
    size = len(graph.get_operations())
    with tf.Session(graph=graph) as sess:
        sess.run(start)
        for _ in range(600):
            points, labels = spirals(128, generator)
            sess.run(step, feed_dict={x: points, label: labels})
        points, labels = spirals(1000, generator)
        metrics = sess.run({"loss": loss, "accuracy": accuracy}, {x: points, label: labels})
    print(f"accuracy {metrics['accuracy']:.3f}, loss {metrics['loss']:.3f}")
    print(f"operations added by 602 runs: {len(graph.get_operations()) - size}")


def eagerly() -> None:
    """The same network outside of a graph: it runs at once, and a template keeps its variables."""
    net = tf.make_template("net", network)
    logit = net(tf.ones([3, 2]))
    print("eagerly:", logit.shape, len(net.trainable_variables), "variables")


def snapshot() -> None:
    """All fetches of one run use one state and one draw; a run may feed any tensor."""
    with tf.Graph().as_default(), tf.Session() as sess:
        noise = tf.random_uniform([3])
        twice = noise * 2.0
        first, doubled = sess.run([noise, twice])
        print("one draw in one run:", np.array_equal(first * 2, doubled))
        print("another in the next:", not np.array_equal(first, noise.eval()))
        print("fed instead of a draw:", twice.eval({noise: [1.0, 2.0, 3.0]}))


def order() -> None:
    """Operations that are not inputs of a value run before it only with control dependencies."""
    with tf.Graph().as_default(), tf.Session() as sess:
        count = tf.get_variable("count", initializer=0)
        with tf.control_dependencies([tf.assign_add(count, 1)]):
            after = tf.identity(count.read_value(), name="after")
        sess.run(count.initializer)
        print("counted:", [int(sess.run(after)) for _ in range(3)])


def trap() -> None:
    """A loop that builds what it runs makes the graph grow; a warning names the line."""
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for i in range(5):
                sess.run(x * 2.0, {x: float(i)})
        print("Warning:", caught[0].message)


if __name__ == "__main__":
    train()
    eagerly()
    snapshot()
    order()
    trap()
