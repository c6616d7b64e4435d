"""Keras's own tests, from its installed wheel, on this backend, in a table with those of the torch backend.

    python tests/keras/conformance.py                   # the groups that CI runs
    python tests/keras/conformance.py layers/core ops/math_test.py
    python tests/keras/conformance.py --all --page      # writes the results into docs/keras.md, too

Each group runs in a process of its own. Tests that are known to fail are listed with the reason in
``known_failures.txt`` next to this file. An unlisted failure fails the run, and so does a listed test that
passes. Some groups compare with jax or TensorFlow: files that need a package which is not installed are left
out, and counted.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
KNOWN = HERE / "known_failures.txt"
PAGE = HERE.parents[1] / "docs" / "keras.md"
KINDS = ("passed", "failed", "skipped")


class Group(NamedTuple):
    """A part of Keras's tests.

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


class GroupResult(NamedTuple):
    """The outcomes of the tests of some groups, which ran in one process.

    Attributes:
        outcomes: the names of the tests of each outcome.
        seconds: the CPU time of the process.
        log: what it printed.
    """

    outcomes: dict[str, list[str]]
    seconds: float
    log: str

    def count(self, outcome: str, group: Group) -> int:
        """How many tests of a group had an outcome."""
        return sum(is_of(name, group) for name in self.outcomes.get(outcome, []))


def is_of(test: str, group: Group) -> bool:
    """Whether a test is of a group."""
    return re.match(rf"{re.escape(group.name)}(/|:|$| )", test) is not None


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


def run(groups: Iterable[Group], timeout: float = 3600) -> GroupResult:
    """Run the tests of some groups in one process."""
    source = keras_source()
    with tempfile.TemporaryDirectory() as folder:
        outcomes = Path(folder, "outcomes.txt")
        shutil.copy(HERE / "keras_conftest.py", Path(folder, "conftest.py"))
        Path(folder, "pytest.ini").write_text("[pytest]\nfilterwarnings =\n    ignore\n", encoding="utf-8")
        command = [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "pytest.ini"),
            *("--rootdir=.", "--noconftest", "-p", "conftest", "--assert=plain", "--tb=short"),
            *[str(source / group.name) for group in groups],
        ]
        before = _processor_seconds()
        process = subprocess.run(
            command,
            cwd=folder,
            env=_environment(folder, outcomes),
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        seconds = _processor_seconds() - before
        results: dict[str, list[str]] = defaultdict(list)
        if outcomes.exists():
            for line in outcomes.read_text(encoding="utf-8").splitlines():
                outcome, what = line.split("\t", 1)
                results[outcome].append(what)
    if process.returncode not in (0, 1, 5) or not results:
        results["failed"].append(f"the process ended with status {process.returncode}")
    return GroupResult(dict(results), seconds, process.stdout + process.stderr)


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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


def unexpected_outcomes(result: GroupResult, listed: dict[str, str]) -> list[str]:
    """The tests whose outcomes differ from the list of known failures."""
    failed = set(result.outcomes.get("failed", []))
    passed = set(result.outcomes.get("passed", []))
    unexpected = [f"fails, and is not listed: {name}" for name in sorted(failed - listed.keys())]
    return unexpected + [f"passes, and is listed: {name}" for name in sorted(passed & listed.keys())]


class Row(NamedTuple):
    """A line of the table: the counts of :data:`KINDS` in a group, for dualflow and for torch."""

    name: str
    own: Sequence[int]
    torch: Sequence[int]

    def __str__(self) -> str:
        counts = (f"{passed} | {failed} | {skipped}" for passed, failed, skipped in (self.own, self.torch))
        return f"| {self.name} | {' | '.join(counts)} |"


FAILING = "\nThe failures, by their reasons:\n\n"
HEAD = """\
| | dualflow: passed | failed | skipped | torch: passed | failed | skipped |
| :--- | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def row(group: Group, result: GroupResult) -> Row:
    """The line of the table for a group."""
    return Row(group.name, [result.count(kind, group) for kind in KINDS], group[1:4])


def total(rows: Iterable[Row]) -> Row:
    """The last line of the table."""
    own, torch = zip(*[(row.own, row.torch) for row in rows], strict=True)
    sums = [[sum(counts) for counts in zip(*kind, strict=True)] for kind in (own, torch)]
    return Row("**all**", *sums)


def rows_of(page: str) -> dict[str, Row]:
    """The lines of the table in a page, without the last one."""
    rows = {}
    for name, *numbers in re.findall(r"^\| ([\w/.]+)" + r" \| (\d+)" * 6 + r" \|$", page, re.MULTILINE):
        counts = [int(number) for number in numbers]
        rows[name] = Row(name, counts[:3], counts[3:])
    return rows


def reasons() -> str:
    """The known failures by their reasons, as a list in Markdown."""
    tests: dict[str, list[str]] = defaultdict(list)
    for name, reason in known_failures().items():
        tests[reason].append(name)
    return "".join(f"* {_shortened(names)}: {reason}.\n" for reason, names in tests.items())


def _shortened(names: Sequence[str]) -> str:
    """A test by its name, and several by how many there are in which classes."""
    if len(names) == 1:
        return f"`{names[0].split('::', 1)[1]}`"
    counts = Counter(name.split("::")[1] for name in names)
    return ", ".join(f"{count} of `{name}`" for name, count in counts.items())


def rewritten(page: str, rows: Iterable[Row]) -> str:
    """The page with other lines of the table, and the reasons of the failures; its other lines stay."""
    lines = rows_of(page) | {row.name: row for row in rows}
    table = [lines[group.name] for group in GROUPS if group.name in lines]
    before = page[: page.index(HEAD)]
    return before + HEAD + "".join(f"{line}\n" for line in [*table, total(table)]) + FAILING + reasons()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("groups", nargs="*", help="names of groups; those that CI runs by default")
    parser.add_argument("--all", action="store_true", help="run every group")
    parser.add_argument("--page", action="store_true", help="write the lines of the table into docs/keras.md")
    parser.add_argument("--verbose", action="store_true", help="print pytest's report of unlisted failures")
    options = parser.parse_args()
    chosen = [g for g in GROUPS if options.all or (g.name in options.groups if options.groups else g.in_ci)]
    listed, rows, wrong, seconds = known_failures(), [], [], 0.0
    print(HEAD, end="")
    for group in chosen:
        result = run([group])
        rows.append(row(group, result))
        print(rows[-1], flush=True)
        for file in result.outcomes.get("left out", []):
            print(f"left out: {file}")
        new = unexpected_outcomes(result, listed)
        wrong += new
        seconds += result.seconds
        if new and options.verbose:
            print(result.log)
    print(f"{total(rows)}\n\n{seconds:.0f} s of the processor", *wrong, sep="\n")
    if options.page:
        PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
