"""The examples' functions as exported files, run in an interpreter that can't import dualflow."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]

WRITER = """
import pickle, sys
from pathlib import Path
import numpy as np
import dualflow as df
sys.path.insert(0, sys.argv[1])
import add_an_op, control_flow, debugging, train_digits

f32 = np.float32
points = np.array([[0, 0], [3, 4], [3, 5], [9, 5], [9, 6]], f32)
rng = np.random.default_rng(0)
images, digits = rng.normal(size=(16, 64)).astype(f32), rng.integers(0, 10, 16)
model = train_digits.Classifier((64, 32, 10), 0)
CASES = {
    "mean_length": (lambda x, y: df.reduce_mean(add_an_op.hypot(x - 1.0, y + 1.0)), points, points),
    "hypot_slope": (lambda x, y: control_flow.slope(add_an_op.hypot, x, y), points + f32(1), points + f32(2)),
    "bounces": (control_flow.bounces, f32(2.0), f32(0.9)),
    "root": (control_flow.root, f32(0.0), f32(2.0), f32(1.0)),
    "path_length": (control_flow.path_length, points, f32(5.5)),
    "described": (control_flow.described, np.int32(-7)),
    "newton": (debugging.newton.python_function, np.array([2, 9], f32)),
    "step": (train_digits.training_step(model), images, digits),
}
cases = {}
for name, (function, *arguments) in CASES.items():
    f = df.function(function, name=name)
    tensors = [df.constant(a) for a in arguments]
    concrete = f.get_concrete_function(*tensors)
    Path(f"exported_{name}.py").write_text(concrete.source())
    before = [np.array(v) for v in concrete.variables]
    result = f(*tensors)
    results = [x.numpy() for x in (result if isinstance(result, tuple) else (result,))]
    cases[name] = arguments, before, results, [np.array(v) for v in concrete.variables]
Path("cases.pickle").write_bytes(pickle.dumps(cases))
"""

READER = """
import pickle, sys
from importlib import import_module
from pathlib import Path
sys.modules["dualflow"] = None  # it can't be imported
cases = pickle.loads(Path("cases.pickle").read_bytes())
results_of = {}
for name, (arguments, variables, *_) in cases.items():
    results = getattr(import_module(f"exported_{name}"), name)(*arguments, *variables)
    results_of[name] = results, variables
Path("results.pickle").write_bytes(pickle.dumps(results_of))
"""


@pytest.mark.exhaustive
def test_exported_examples_run_without_dualflow(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for name, program in (("writer.py", WRITER), ("reader.py", READER)):
        (tmp_path / name).write_text(program)
        command = [sys.executable, name, str(ROOT / "examples")]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
    cases = pickle.loads((tmp_path / "cases.pickle").read_bytes())
    results_of = pickle.loads((tmp_path / "results.pickle").read_bytes())
    for name, (_, _, results, after) in cases.items():
        for a, b in zip((*results_of[name][0], *results_of[name][1]), (*results, *after), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6, err_msg=name)
