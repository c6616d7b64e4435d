"""Programs with Keras under ``python -m dualflow run``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import dualflow as df

PROGRAM = """
import json
import os

os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
import tensorflow as tf
import tensorflow.keras.backend as K
import tensorflow.keras.layers as L
from tensorflow import keras as k
from tensorflow.keras import layers
from tensorflow.keras.layers import Dense

x = np.arange(12.0, dtype="float32").reshape(6, 2)
model = k.Sequential([L.Input((2,)), L.Rescaling(0.1), Dense(1, kernel_initializer="ones", use_bias=False)])
model.compile("sgd", k.losses.MeanSquaredError())
dataset = tf.data.Dataset.from_tensor_slices((x, x[:, :1]))
model.fit(dataset.map(lambda a, b: (L.Rescaling(1.0)(a), b)).batch(3), verbose=0)
model.save("model.keras")
model.save("model.h5")
print(json.dumps({
    "backend": keras.backend.backend(),
    "one": [L is layers, layers is tf.keras.layers, Dense is keras.layers.Dense],
    "mean": float(K.mean(tf.constant([1.0, 2.0]))),
    "loaded": [
        np.array_equal(k.models.load_model(file).predict(x, verbose=0), model.predict(x, verbose=0))
        for file in ("model.keras", "model.h5")
    ],
}))
"""


def test_keras_runs_on_dualflow_and_does_not_take_it_for_tensorflow_itself(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "dualflow", "run", "program.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(df.__file__))},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "backend": "dualflow",
        "one": [True, True, True],
        "mean": 1.5,
        "loaded": [True, True],
    }
