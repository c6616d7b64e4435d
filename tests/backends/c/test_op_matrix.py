"""Every op sample as C: compiled with GCC in batches, results equal those of the ops' kernels.

The default run has one dtype of each sample. The exhaustive tests have all dtypes and shapes, compare with
the default backend to the bit, and run with GCC's sanitizers.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from required_tools import require_sanitizer, require_tool

import dualflow as df
from dualflow.backends.c.compilers import WEB_FLAGS, WEB_HEADERS
from dualflow.backends.c.export import FLAGS, ExportedProgram
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.testing.cases import Case
from tests.harness.c_programs import bits, call, compiled_together, one_file, program_of
from tests.op_matrix.test_compiled_ops import CASES, applied, check, part_of, tensors

Array = np.ndarray[Any, Any]
LAYOUTS = ("plain", "contiguous", "many", "special values")
STRIDES = ("transposed", "strided", "backwards")
"""The layouts of the same values in another order of memory, which C gets as contiguous copies."""


class ExportedCase(NamedTuple):
    """A case as C."""

    case: Case
    program: ExportedProgram
    concrete: Any
    arrays: list[Array]


def of_one_dtype() -> Iterator[Case]:
    """The cases of the first dtype of each sample."""
    for _, sample in groupby(CASES, lambda case: (case.op.name, case.label.split("-")[0])):
        first, *others = sample
        dtype = first.label.split("-")[1]
        yield from [c for c in (first, *others) if c.label.split("-")[1:] in [[dtype, x] for x in LAYOUTS]]


def of_other_dtypes_and_shapes() -> Iterator[Case]:
    """The cases that only exhaustive runs have, but for those whose C programs get equal arrays."""
    for case in CASES:
        if part_of(case) == "other" and case.label.split("-")[-1] not in STRIDES:
            yield case


def exported(cases: Sequence[Case]) -> Iterator[ExportedCase]:
    """The cases that have a C form; equal ones share a program."""
    programs: dict[str, ExportedProgram] = {}
    for case in cases:
        inputs = tensors(case)
        concrete = df.function(partial(applied, case), name="op").get_concrete_function(*inputs)
        name = f"case{len(programs)}"
        try:
            program = program_of(concrete, name)
        except InvalidArgumentError:
            continue
        text = re.sub(name, "case", program.header + program.source, flags=re.IGNORECASE)
        program = programs.setdefault(text, program)
        yield ExportedCase(case, program, concrete, [np.asarray(x) for x in inputs])


def batches(cases: Sequence[Case], size: int = 600) -> list[Any]:
    """Parameters: ``cases`` in batches, each named by its first and last op."""
    pieces = [cases[i : i + size] for i in range(0, len(cases), size)]
    return [pytest.param(piece, id=f"{piece[0]} to {piece[-1]}") for piece in pieces]


def check_against_kernels(cases: Sequence[Case], folder: Path, options: str) -> None:
    """Assert that the C form of each case returns what the op's kernel returns."""
    require_tool("gcc")
    programs = list(exported(cases))
    library = compiled_together(list(dict.fromkeys(x.program for x in programs)), folder, options=options)
    for x in programs:
        check_results(x, call(library, x.program, x.arrays))


def check_results(exported: ExportedCase, results: list[Array]) -> None:
    """Assert that these are the results of the op's kernel."""
    case = exported.case
    expected = [np.asarray(y) for y in applied(case, *tensors(case))]
    for result, other in zip(results, expected, strict=True):
        try:
            check(case, result, other, exported.arrays)
        except AssertionError as error:
            raise AssertionError(str(case)) from error


@pytest.mark.parametrize("cases", batches(list(of_one_dtype())))
def test_exported_c_equals_the_numpy_kernel(cases: Sequence[Case], tmp_path: Path) -> None:
    check_against_kernels(cases, tmp_path, "-O1 -march=native")


@pytest.mark.exhaustive
@pytest.mark.parametrize("cases", batches(list(of_other_dtypes_and_shapes())))
def test_exported_c_equals_the_numpy_kernel_for_other_dtypes_and_shapes(
    cases: Sequence[Case], tmp_path: Path
) -> None:
    """Without optimisation, which takes most of the time, and which the programs of one dtype have."""
    check_against_kernels(cases, tmp_path, "-O0 -march=native")


@pytest.mark.exhaustive
@pytest.mark.parametrize("cases", batches([case for case in CASES if part_of(case) != "other"]))
def test_an_op_as_c_has_the_bits_of_the_default_backend(cases: Sequence[Case], tmp_path: Path) -> None:
    require_tool("gcc")
    programs = list(exported(cases))
    library = compiled_together(list(dict.fromkeys(x.program for x in programs)), tmp_path)
    for case, program, concrete, arrays in programs:
        expected = concrete(*tensors(case))
        for result, other in zip(call(library, program, arrays), expected, strict=True):
            assert bits(result) == bits(other), case


@pytest.fixture(scope="module")
def of_each_op() -> list[ExportedCase]:
    """The C forms of the cases of one dtype."""
    return list(exported(list(of_one_dtype())))


SANITIZED = """
import pickle
import sys
from pathlib import Path

from tests.harness.c_programs import call, compiled_together

folder, options = Path(sys.argv[1]), sys.argv[2]
cases = pickle.loads((folder / "cases.pickle").read_bytes())
library = compiled_together(list(dict.fromkeys(program for program, _ in cases)), folder, options=options)
results = [call(library, program, arrays) for program, arrays in cases]
(folder / "results.pickle").write_bytes(pickle.dumps(results))
"""


@pytest.mark.exhaustive
def test_sanitizers_report_nothing_about_the_op_matrix(
    of_each_op: list[ExportedCase], tmp_path: Path
) -> None:
    """GCC's AddressSanitizer and UndefinedBehaviorSanitizer, which end the process at their first report.

    Without optimisation, so that each access that the C text has is checked.
    """
    library = require_sanitizer("gcc")
    options = "-O0 -march=native -g1 -fsanitize=address,undefined -fno-sanitize-recover=all"
    calls = [(x.program, x.arrays) for x in of_each_op]
    (tmp_path / "cases.pickle").write_bytes(pickle.dumps(calls))
    done = subprocess.run(
        [sys.executable, "-c", SANITIZED, str(tmp_path), options],
        env=os.environ
        | {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    results = pickle.loads((tmp_path / "results.pickle").read_bytes())
    for x, arrays in zip(of_each_op, results, strict=True):
        check_results(x, arrays)


@pytest.mark.exhaustive
def test_programs_link_as_webassembly_without_a_c_library(
    of_each_op: list[ExportedCase], tmp_path: Path
) -> None:
    programs = list(dict.fromkeys(x.program for x in of_each_op))
    (tmp_path / "programs.c").write_text(one_file(programs))
    exports = ",".join(["-Wl", "--no-entry", *(f"--export={program.name}" for program in programs)])
    flags = [*FLAGS.split(), *WEB_FLAGS.split(), "-isystem", WEB_HEADERS, exports]
    command = [require_tool("clang"), "--target=wasm32", *flags, "programs.c", "-o", "programs.wasm"]
    require_tool("wasm-ld")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
