"""Each optional fast path has a switch and a fallback with the same results, and ``status()`` lists it.

The whole suite runs with all of them on. These are the switches themselves; continuous integration runs every
op, random programs and loops with each part off and with each width of vectors.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import llvmlite.binding
import numpy as np
import pytest

import dualflow as df
from dualflow.backends.llvm.runtime import llvm_version_check, target
from dualflow.backends.runtime import switches
from dualflow.backends.runtime.numba_version_check import NUMBA
from dualflow.backends.runtime.switches import PARTS

SOURCE_ROOT = Path(df.__file__).parents[1]
NARROWER = [bits for bits in target.WIDTHS if bits < target.widest()]

PROGRAM = """
import llvmlite.binding
import numpy as np
import dualflow as df

rng = np.random.default_rng(0)
w = df.Variable(rng.normal(size=(64, 32)).astype(np.float32))

@df.function
def step(x):
    with df.GradientTape() as tape:
        loss = df.reduce_mean(df.tanh(x @ w) ** 2)
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss

@df.function
def halvings(x):
    count = 0
    while df.reduce_max(x) > 1.0:
        x = x / 2.0
        count += 1
    return df.nn.softmax(x), count

@df.function
def total(x):
    return df.reduce_sum(x * x), df.exp(x)

x = df.constant(rng.normal(size=(500, 64)).astype(np.float32))
long = df.constant(rng.normal(size=300_000).astype(np.float32))
losses = [step(x).numpy() for _ in range(3)]
calls = [f(v) for f in (halvings, total) for v in (x, long) for _ in range(3)]
with_products = [*losses, w.numpy()]
without = [y.numpy() for results in calls for y in results]
"""

DIGESTS = """
import hashlib

for arrays in (with_products, without):
    print(hashlib.sha256(b"".join([a.tobytes() for a in arrays])).hexdigest())
"""

SAVE = """
np.savez(__file__ + ".npz", *with_products, *without)
"""
ASSEMBLY = """
for f in (step, halvings, total):
    for c in f.concrete_functions:
        for library in c.compiled.executable.libraries:
            print(library.assembly())
"""


def run(program: str, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """What a process of its own prints; a setting that is not given is not set."""
    inherited = {n: v for n, v in os.environ.items() if n not in (switches.VARIABLE, target.VARIABLE)}
    variables = {"PYTHONPATH": str(SOURCE_ROOT), "DUALFLOW_CACHE_DIR": str(tmp_path / "cache"), **environment}
    path = tmp_path / "program.py"
    path.write_text(program, encoding="utf-8")
    command = [sys.executable, str(path)]
    return subprocess.run(command, env=inherited | variables, capture_output=True, text=True, timeout=300)


def printed(program: str, tmp_path: Path, **environment: str) -> str:
    done = run(program, tmp_path, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode != 0, done.stdout
    return done.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def folder_of_all(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a process with nothing switched off: its output, cache and arrays."""
    folder = tmp_path_factory.mktemp("all")
    (folder / "output").write_text(printed(PROGRAM + DIGESTS + SAVE, folder), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def with_all_parts(folder_of_all: Path) -> str:
    """The digests of what the program computes with nothing switched off."""
    return (folder_of_all / "output").read_text(encoding="utf-8")


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", PARTS)
def test_results_are_the_same_to_the_bit_without(part: str, tmp_path: Path, with_all_parts: str) -> None:
    """All but products: NumPy's BLAS adds in an order of its own."""
    products, digests = printed(PROGRAM + DIGESTS, tmp_path, DUALFLOW_DISABLE=part).split()
    assert digests == with_all_parts.split()[1]
    assert part == "product" or products == with_all_parts.split()[0]


def test_results_are_the_same_where_objects_come_from_disk(tmp_path: Path, with_all_parts: str) -> None:
    """LLVM's linker puts into memory what an earlier process has compiled."""
    for _ in range(2):
        assert printed(PROGRAM + DIGESTS, tmp_path, DUALFLOW_DISABLE="linker") == with_all_parts


REPORT = """
import dualflow as df

f = df.function(lambda x: x + x)
f(df.ones([3]))
parts = df.show_config(mode="dicts")["parts"]
print(f.status(), *[f"{name}={part['state']}" for name, part in parts.items()], sep="\\n")
df.show_config()
"""
DEPENDENT = {"blocks", "concurrency"}
"""Parts for which the reason is that of another part, if that is off too."""


@pytest.mark.parametrize("parts", [PARTS.keys() - DEPENDENT, DEPENDENT], ids=["independent", "dependent"])
def test_parts_that_are_off_are_reported_with_the_reason(parts: set[str], tmp_path: Path) -> None:
    lines = printed(REPORT, tmp_path, DUALFLOW_DISABLE=",".join(sorted(parts))).splitlines()
    for part in parts:
        expected = f"off (DUALFLOW_DISABLE names it: {PARTS[part]})"
        assert f"{part}={expected}" in lines
        assert [line for line in lines if line.endswith(f": {expected}")], f"status() lists {part}"
        assert [line for line in lines if line[16:] == expected], f"show_config() prints {part}"


def test_several_parts_are_named_with_commas(tmp_path: Path) -> None:
    program = "import dualflow as df\nparts = df.show_config(mode='dicts')['parts']\n"
    program += "print(*[name for name, part in parts.items() if not part['on']])"
    assert printed(program, tmp_path, DUALFLOW_DISABLE="linker, pool,").split() == [
        "linker",
        "pool",
        "concurrency",
        "programs",
    ]


def test_without_the_pool_no_thread_is_started(tmp_path: Path) -> None:
    program = PROGRAM + "import os\nprint(len(os.listdir('/proc/self/task')))"
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("there is no /proc")
    alone = "import numpy, os\nprint(len(os.listdir('/proc/self/task')))"
    assert printed(program, tmp_path, DUALFLOW_DISABLE="pool") == printed(alone, tmp_path)


def test_without_the_cache_nothing_is_written(tmp_path: Path) -> None:
    printed(PROGRAM, tmp_path, DUALFLOW_DISABLE="cache")
    assert not (tmp_path / "cache").exists()


def test_a_part_that_does_not_exist_is_refused_at_the_first_call(tmp_path: Path) -> None:
    program = "import dualflow as df\nx = df.ones([3]) + 1\nprint(x.numpy(), flush=True)\n"
    program += "df.function(lambda x: x)(x)"
    done = run(program, tmp_path, DUALFLOW_DISABLE="linker,pol")
    assert done.stdout == "[2. 2. 2.]\n"
    assert last_line(done) == (
        "dualflow.core.errors.InvalidArgumentError: DUALFLOW_DISABLE='linker,pol': there is no part 'pol' to "
        "switch off; the parts are c_fast_call, linker, pool, product, cache, programs, blocks, concurrency, "
        "collectives."
    )
    assert 'program.py", line 4, in <module>' in done.stderr
    assert "importlib" not in done.stderr


def test_parts_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"no part 'fast_call'.*the parts are c_fast_call, "):
        switches.parts("pool,fast_call")


# Widths


WIDE = {"zmm": 512, "ymm": 256}


class Narrower(NamedTuple):
    """A process whose vectors are narrower than the widest.

    Attributes:
        bits: their width.
        folder: its cache, which began as that of the widest vectors, and arrays.
        assembly: the code of its functions.
    """

    bits: int
    folder: Path
    assembly: str


@pytest.fixture(scope="module", params=NARROWER)
def narrower(
    request: pytest.FixtureRequest, folder_of_all: Path, tmp_path_factory: pytest.TempPathFactory
) -> Narrower:
    folder = tmp_path_factory.mktemp("narrower")
    shutil.copytree(folder_of_all / "cache", folder / "cache")
    assembly = printed(PROGRAM + SAVE + ASSEMBLY, folder, **{target.VARIABLE: str(request.param)})
    return Narrower(request.param, folder, assembly)


@pytest.mark.exhaustive
def test_narrower_vectors_use_no_wider_registers(narrower: Narrower) -> None:
    used = set(re.findall(r"%([xyz]mm)\d", narrower.assembly))
    assert used
    assert not [name for name in used if WIDE.get(name, 128) > narrower.bits]


@pytest.mark.exhaustive
def test_each_width_has_objects_of_its_own(narrower: Narrower, folder_of_all: Path) -> None:
    before, after = (
        {path.name for path in (folder / "cache").glob("*.dfo")}
        for folder in (folder_of_all, narrower.folder)
    )
    assert len(after) >= len(before) + 3


@pytest.mark.exhaustive
def test_a_width_gives_what_the_widest_gives(narrower: Narrower, folder_of_all: Path) -> None:
    outputs = []
    for folder in (folder_of_all, narrower.folder):
        with np.load(folder / "program.py.npz") as arrays:
            outputs.append([arrays[name] for name in arrays.files])
    for wide, narrow in zip(*outputs, strict=True):
        np.testing.assert_allclose(narrow, wide, rtol=1e-4, atol=1e-6)


def test_a_width_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    program = "import dualflow as df\ndf.function(lambda x: x + x)(df.ones([3]))"
    refusal = "InvalidArgumentError: DUALFLOW_VECTOR_BITS='1024': vectors have 128, 256 or 512 bits."
    assert last_line(run(program, tmp_path, DUALFLOW_VECTOR_BITS="1024")).endswith(refusal)


@pytest.mark.parametrize(
    ("width", "message"),
    [
        ("512", "this processor's vectors have 256 bits at most"),
        ("64", "128, 256 or 512"),
        ("wide", "'wide'"),
    ],
)
def test_widths_are_refused_with_the_reason(width: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        target.width(width, 256)


# Versions


def test_the_pins_are_those_that_are_checked() -> None:
    project = tomllib.loads((SOURCE_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {llvm_version_check.LLVMLITE, NUMBA} <= set(project["dependencies"])


ANOTHER = """
import {module}
{module}.{name} = {value}
import dualflow as df
df.function(lambda x: x + x, backend={backend!r})(df.ones([3]))
"""


@pytest.mark.parametrize("written_for", [20, 23])
def test_another_llvm_is_refused_by_name(written_for: int, tmp_path: Path) -> None:
    program = ANOTHER.format(
        module="dualflow.backends.llvm.runtime.llvm_version_check",
        name="LLVM",
        value=written_for,
        backend="llvm",
    )
    said = last_line(run(program, tmp_path))
    installed = ".".join(map(str, llvmlite.binding.llvm_version_info))
    assert f"FailedPreconditionError: llvmlite {llvmlite.__version__} is installed here" in said
    assert f"with LLVM {installed}; kernels are written for LLVM {written_for}" in said
    assert f"pip install '{llvm_version_check.LLVMLITE}'" in said
    assert 'df.config.set_backend("numpy")' in said


def test_a_library_that_is_not_there_is_reported_to_be_missing(tmp_path: Path) -> None:
    program = ANOTHER.format(module="llvmlite", name="__file__", value=repr("/nowhere/x.py"), backend="llvm")
    said = last_line(run(program, tmp_path))
    assert "FailedPreconditionError: llvmlite" in said
    assert "its library can't be loaded" in said
    assert "pip install --force-reinstall llvmlite" in said


@pytest.mark.parametrize("version", ["0.61.2", "0.69.0dev0+12.g1a"])
def test_another_numba_is_refused_by_name(version: str, tmp_path: Path) -> None:
    program = ANOTHER.format(module="numba", name="__version__", value=repr(version), backend="numba")
    said = last_line(run(program, tmp_path))
    assert (
        f"FailedPreconditionError: Numba {version} is installed here; kernels are written for {NUMBA}" in said
    )
    assert 'df.config.set_backend("llvm")' in said


@pytest.mark.exhaustive
def test_another_llvm_still_runs_the_numpy_backend(tmp_path: Path) -> None:
    program = ANOTHER.format(
        module="dualflow.backends.llvm.runtime.llvm_version_check", name="LLVM", value=20, backend="numpy"
    )
    printed(program + "print(df.show_config())", tmp_path)
