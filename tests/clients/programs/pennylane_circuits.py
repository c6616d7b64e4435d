"""Six programs of pennylane with its interface for TensorFlow: values and gradients against closed forms."""

import numpy as np
import pennylane as qml
import tensorflow as tf

device = qml.device("default.qubit", wires=2)


def circuit_of(**options):
    @qml.qnode(device, interface="tf", **options)
    def circuit(x, y):
        qml.RX(x, wires=0)
        qml.RY(y, wires=1)
        qml.CNOT(wires=[0, 1])
        return qml.expval(qml.PauliZ(0) @ qml.PauliZ(1))

    return circuit


def variables():
    return tf.Variable(0.3, dtype=tf.float64), tf.Variable(0.7, dtype=tf.float64)


def backpropagation():
    x, y = variables()
    with tf.GradientTape() as tape:
        value = circuit_of(diff_method="backprop")(x, y)
    np.testing.assert_allclose(value, np.cos(0.7), atol=1e-6)
    np.testing.assert_allclose(tape.gradient(value, [x, y]), [0.0, -np.sin(0.7)], atol=1e-6)


def parameter_shift():
    x, y = variables()
    with tf.GradientTape() as tape:
        value = circuit_of(diff_method="parameter-shift")(x, y)
    np.testing.assert_allclose(tape.gradient(value, [x, y]), [0.0, -np.sin(0.7)], atol=1e-6)


def second_derivative():
    x, y = variables()
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            value = circuit_of(diff_method="backprop")(x, y)
        slope = inner.gradient(value, y)
    np.testing.assert_allclose(outer.gradient(slope, y), -np.cos(0.7), atol=1e-6)


def training():
    x, y = variables()
    optimizer, circuit = tf.keras.optimizers.SGD(0.5), circuit_of(diff_method="backprop")
    for _ in range(60):
        with tf.GradientTape() as tape:
            loss = circuit(x, y)
        optimizer.apply_gradients(zip(tape.gradient(loss, [x, y]), [x, y], strict=True))
    assert float(circuit(x, y)) < -0.99


def compiled():
    circuit = circuit_of(diff_method="backprop")
    x, y = variables()
    np.testing.assert_allclose(tf.function(lambda: circuit(x, y))(), np.cos(0.7), atol=1e-6)


def broadcasting():
    angles = tf.constant(np.linspace(0.0, 3.0, 7))
    values = circuit_of(diff_method="backprop")(tf.constant(0.3, tf.float64), angles)
    np.testing.assert_allclose(values, np.cos(angles), atol=1e-6)


for program in (backpropagation, parameter_shift, second_derivative, training, compiled, broadcasting):
    try:
        program()
        print(f"pass {program.__name__}")
    except Exception as error:
        print(f"fail {program.__name__}: {type(error).__name__}: {error}".partition("\n")[0])
