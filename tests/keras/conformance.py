"""Keras's own tests, from its installed wheel, on this backend: a table by group beside the torch backend's.

    python tests/keras/conformance.py                   # the groups that CI runs
    python tests/keras/conformance.py layers/core ops/math_test.py
    python tests/keras/conformance.py --all

Each group runs in a process of its own. Tests that are known to fail are listed with the reason in
``known_failures.txt`` beside this file; a failure that is not listed fails the run, and so does a listed test
that passes. Some groups compare with jax or TensorFlow: files that need what is not installed are left
out, and counted.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
KNOWN = HERE / "known_failures.txt"


class Group(NamedTuple):
    """Tests that run in one process.

    Attributes:
        name: a file or folder of Keras's source.
        passed, failed, skipped: what Keras's torch backend does with it, of Keras 3.15.1.
        in_ci: whether CI runs it.
    """

    name: str
    passed: int
    failed: int
    skipped: int
    in_ci: bool = False


GROUPS = (
    Group("ops/core_test.py", 154, 0, 8),
    Group("ops/math_test.py", 164, 0, 4),
    Group("ops/linalg_test.py", 235, 0, 0),
    Group("ops/image_test.py", 286, 0, 23),
    Group("ops/nn_test.py", 388, 0, 32),
    Group("ops/numpy_test.py", 4066, 0, 697),
    Group("ops/einops_test.py", 7, 0, 0),
    Group("ops/function_test.py", 10, 0, 0),
    Group("ops/node_test.py", 3, 0, 0),
    Group("ops/operation_test.py", 13, 0, 0),
    Group("ops/operation_utils_test.py", 25, 0, 0),
    Group("ops/symbolic_arguments_test.py", 7, 0, 0),
    Group("ops/ops_test.py", 12, 0, 0),
    Group("backend/common", 913, 0, 24),
    Group("backend/tests", 4, 0, 6),
    Group("random", 83, 0, 5),
    Group("layers/layer_test.py", 59, 0, 2, in_ci=True),
    Group("layers/core", 280, 0, 6, in_ci=True),
    Group("layers/convolutional", 255, 0, 160, in_ci=True),
    Group("layers/pooling", 123, 0, 12, in_ci=True),
    Group("layers/normalization", 65, 0, 0, in_ci=True),
    Group("layers/regularization", 35, 0, 0, in_ci=True),
    Group("layers/merging", 45, 0, 11, in_ci=True),
    Group("layers/reshaping", 201, 0, 4, in_ci=True),
    Group("layers/activations", 33, 0, 0, in_ci=True),
    Group("layers/attention", 116, 0, 0, in_ci=True),
    Group("layers/rnn", 76, 0, 3, in_ci=True),
    Group("optimizers", 223, 1, 41, in_ci=True),
    Group("losses", 179, 0, 2, in_ci=True),
    Group("metrics", 402, 0, 0, in_ci=True),
    Group("initializers", 20, 0, 2),
    Group("constraints", 17, 0, 0),
    Group("regularizers", 33, 0, 0),
    Group("activations", 51, 0, 0),
    Group("models", 151, 0, 0, in_ci=True),
    Group("trainers", 286, 0, 84, in_ci=True),
    Group("callbacks", 67, 19, 6),
    Group("saving", 179, 0, 7),
    Group("utils", 346, 0, 30),
    Group("tree", 13, 0, 10),
)


class Result(NamedTuple):
    """What became of the tests of a group: the names of each outcome, and the seconds of the processor."""

    group: Group
    outcomes: dict[str, list[str]]
    seconds: float
    log: str

    def count(self, outcome: str) -> int:
        """How many tests had an outcome."""
        return len(self.outcomes.get(outcome, []))


def known_failures() -> dict[str, str]:
    """The tests that are known to fail, and why."""
    lines = KNOWN.read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines if line and not line.startswith("#"))


def keras_source() -> Path:
    """The folder of Keras's source."""
    spec = importlib.util.find_spec("keras")
    if spec is None or spec.origin is None:
        raise SystemExit("Keras is not installed: pip install 'dualflow[keras]'.")
    return Path(spec.origin).parent / "src"


def run(group: Group, timeout: float = 3600) -> Result:
    """Run the tests of a group in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        outcomes = Path(folder, "outcomes.txt")
        shutil.copy(HERE / "keras_conftest.py", Path(folder, "conftest.py"))
        Path(folder, "pytest.ini").write_text("[pytest]\nfilterwarnings =\n    ignore\n", encoding="utf-8")
        command = [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "pytest.ini"),
            *("--rootdir=.", "--confcutdir=.", "-p", "conftest"),
            *("--assert=plain", "--tb=short", str(keras_source() / group.name)),
        ]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = subprocess.run(
            command,
            cwd=folder,
            env=_environment(folder, outcomes),
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found: dict[str, list[str]] = {}
        if outcomes.exists():
            for line in outcomes.read_text(encoding="utf-8").splitlines():
                outcome, what = line.split("\t", 1)
                found.setdefault(outcome, []).append(what)
    if ended.returncode not in (0, 1, 5) or not found:
        found.setdefault("failed", []).append(f"{group.name} ended with status {ended.returncode}")
    return Result(group, found, after.ru_utime - before.ru_utime, ended.stdout + ended.stderr)


def _environment(folder: str, outcomes: Path) -> dict[str, str]:
    paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "KERAS_BACKEND": "dualflow",
        "KERAS_OUTCOMES": str(outcomes),
        "PYTHONPATH": os.pathsep.join(paths),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "-1",
        "JAX_PLATFORMS": "cpu",
    }


def surprises(result: Result, known: dict[str, str]) -> list[str]:
    """What differs from the list of known failures."""
    failed = set(result.outcomes.get("failed", []))
    passed = set(result.outcomes.get("passed", []))
    unexpected = [f"fails, and is not listed: {name}" for name in sorted(failed - known.keys())]
    return unexpected + [f"passes, and is listed: {name}" for name in sorted(passed & known.keys())]


def row(result: Result) -> str:
    """The line of the table for a group."""
    group = result.group
    own = f"{result.count('passed')}/{result.count('failed')}/{result.count('skipped')}"
    torch = f"{group.passed}/{group.failed}/{group.skipped}"
    left_out = result.count("left out")
    note = f"{left_out} files need packages that are not installed" if left_out else ""
    return f"| {group.name} | {own} | {torch} | {result.seconds:.0f} | {note} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("groups", nargs="*", help="names of groups; those that CI runs by default")
    parser.add_argument("--all", action="store_true", help="run every group")
    parser.add_argument("--verbose", action="store_true", help="print what pytest says of unlisted failures")
    options = parser.parse_args()
    chosen = [g for g in GROUPS if options.all or (g.name in options.groups if options.groups else g.in_ci)]
    known, found, total = known_failures(), [], Counter[str]()
    print("| group | passed/failed/skipped | torch | s | |\n|---|---|---|---|---|")
    for group in chosen:
        result = run(group)
        print(row(result), flush=True)
        new = surprises(result, known)
        found += new
        if new and options.verbose:
            print(result.log)
        for outcome in ("passed", "failed", "skipped"):
            total[outcome] += result.count(outcome)
            total[f"torch {outcome}"] += getattr(group, outcome)
        total["seconds"] += round(result.seconds)
    kinds = ("passed", "failed", "skipped")
    own, torch = ("/".join(str(total[of + kind]) for kind in kinds) for of in ("", "torch "))
    print(f"| **total** | {own} | {torch} | {total['seconds']} | |")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
