"""Eleven attacks of foolbox on a linear classifier: each has to find adversarial images within its bound."""

import eagerpy as ep
import foolbox as fb
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
centres = rng.uniform(0.2, 0.8, (4, 8, 8, 3)).astype(np.float32)
weights = tf.constant(centres.reshape(4, -1).T)
bias = tf.constant(-0.5 * (centres.reshape(4, -1) ** 2).sum(1))


class Model(tf.keras.Model):
    def call(self, x):
        return 0.5 * (tf.reshape(x, [-1, 192]) @ weights + bias)


classes = np.arange(16) % 4
labels = tf.constant(classes)
noisy = centres[classes] + rng.normal(0, 0.05, (16, 8, 8, 3))
images = tf.constant(np.clip(noisy, 0, 1), tf.float32)
model = fb.TensorFlowModel(Model(), bounds=(0, 1), device="/device:CPU:0")
assert fb.utils.accuracy(model, images, labels) == 1.0

ATTACKS = {
    "FGSM": (fb.attacks.LinfFastGradientAttack(), 0.3),
    "LinfPGD": (fb.attacks.LinfPGD(), 0.3),
    "L2PGD": (fb.attacks.L2PGD(), 5.0),
    "LinfBasicIterative": (fb.attacks.LinfBasicIterativeAttack(), 0.3),
    "L2FastGradient": (fb.attacks.L2FastGradientAttack(), 5.0),
    "LinfAdditiveUniformNoise": (fb.attacks.LinfRepeatedAdditiveUniformNoiseAttack(), 0.9),
    "LinfDeepFool": (fb.attacks.LinfDeepFoolAttack(), 0.3),
    "L2DeepFool": (fb.attacks.L2DeepFoolAttack(), 5.0),
    "L2CarliniWagner": (fb.attacks.L2CarliniWagnerAttack(steps=50, stepsize=0.05), 5.0),
    "DDN": (fb.attacks.DDNAttack(steps=30), 5.0),
    "BoundaryAttack": (fb.attacks.BoundaryAttack(steps=50), 20.0),
}


def distance(name, clipped):
    change = np.abs(clipped.numpy() - images.numpy())
    return change.max() if name.startswith(("Linf", "FGSM")) else np.sqrt((change**2).sum((1, 2, 3))).max()


for name, (attack, epsilon) in ATTACKS.items():
    try:
        _, clipped, success = attack(model, images, labels, epsilons=epsilon)
        rate = float(ep.astensor(success).float32().mean().item())
        assert rate >= (0.0 if "Noise" in name else 0.9), rate
        assert distance(name, clipped) <= epsilon * 1.001
        print(f"pass {name}")
    except Exception as error:
        print(f"fail {name}: {type(error).__name__}: {error}".partition("\n")[0])
