"""Reductions have the same bits on processors of any vector width."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from dualflow.backends.llvm.runtime.target import VARIABLE, WIDTHS, widest
from dualflow.schedule.blocking import CHUNK_ELEMENTS, MAX_UNBLOCKED_STEPS
from dualflow.schedule.lanes import FEWEST_LANES, REDUCTION_LANES

PROGRAM = """
import hashlib, json, sys
import numpy as np
import dualflow as df

functions = {
    "sum": lambda x: df.reduce_sum(x, -1),
    "mean of squares": lambda x: df.reduce_mean(x * x, -1),
    "softmax": df.nn.softmax,
    "logsumexp": lambda x: df.reduce_logsumexp(x, -1),
    "variance": lambda x: df.math.reduce_variance(x, -1),
    "product": lambda x: df.reduce_prod(1 + x / 100, -1),
    "sum of all": lambda x: df.reduce_sum(df.sin(x)),
    "sum of columns": lambda x: df.reduce_sum(x, 0),
    "product with a vector": lambda x: df.linalg.matvec(x, x[0]),
}
sizes, dtypes = json.loads(sys.argv[1])
digests = {}
for name, function in functions.items():
    if name == "product with a vector" and sys.argv[2] == "without own products":
        continue
    compiled = df.function(function)
    for dtype in dtypes:
        for size in sizes:
            x = np.random.default_rng(size).normal(0, 3, (3, size)).astype(dtype)
            result = compiled(df.constant(x)).numpy()
            digests[f"{name} of {dtype} {size}"] = hashlib.sha1(result.tobytes()).hexdigest()
print(json.dumps(digests))
"""
LANES = (FEWEST_LANES, REDUCTION_LANES, 2 * REDUCTION_LANES)
THRESHOLDS = (*LANES, MAX_UNBLOCKED_STEPS, MAX_UNBLOCKED_STEPS * REDUCTION_LANES, CHUNK_ELEMENTS)
SIZES = sorted({n + more for n in THRESHOLDS for more in (-1, 0, 1)} | {1, 3, 40, 100, 1000})
"""Sizes around those at which the code of a row and the blocks of a sum change."""


def digests(bits: int, products: str) -> dict[str, str]:
    """Digests of results in a process whose code is for vectors of ``bits``."""
    argument = json.dumps([SIZES, ["float32", "float64"]])
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, argument, products],
        env={**os.environ, VARIABLE: str(bits)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    report: dict[str, str] = json.loads(ran.stdout)
    return report


@pytest.mark.exhaustive
@pytest.mark.parametrize("bits", [bits for bits in WIDTHS if bits < widest()])
def test_narrower_vectors_give_the_same_bits(bits: int) -> None:
    """Products of narrow vectors are NumPy's, which rounds them in another order."""
    products = "without own products" if bits < 256 else "with own products"
    expected, result = digests(widest(), products), digests(bits, products)
    assert [name for name in expected if result[name] != expected[name]] == []
