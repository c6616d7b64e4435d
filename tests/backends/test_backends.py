"""Backends: each computes what the reference does; the function, the process or the environment chooses."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df

BACKENDS = ("llvm", "numba", "numpy")


@pytest.fixture(autouse=True, scope="module")
def _separate_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DUALFLOW_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def _restored_process_backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("DUALFLOW_BACKEND", raising=False)
    yield
    df.config.set_backend(None)


def backends_of(f: object) -> set[str]:
    """The backends of a function's traces."""
    return {c.options.backend for c in f.concrete_functions}  # type: ignore[attr-defined]


def training_step(w: df.Variable, b: df.Variable, backend: str) -> object:
    @df.function(backend=backend)
    def step(x, y):
        with df.GradientTape() as tape:
            logits = df.nn.relu(x @ w) @ df.ones([16, 10]) + b
            losses = df.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
            loss = df.reduce_mean(losses)
        for v, g in zip((w, b), tape.gradient(loss, [w, b]), strict=True):
            v.assign_sub(0.1 * g)
        return loss

    return step


# Choosing


def test_a_function_names_its_own_backend() -> None:
    f = df.function(lambda x: df.exp(x) * 2.0, backend="numba")
    assert "through Numba" in f.get_concrete_function(df.TensorSpec([3])).parts[0].what


def test_the_default_is_llvm() -> None:
    f = df.function(lambda x: x + 1.0)
    f(df.ones([2]))
    assert backends_of(f) == {"llvm"}


def test_the_process_backend_holds_for_later_traces() -> None:
    f = df.function(lambda x: x + 1.0)
    f(df.ones([2]))
    df.config.set_backend("numpy")
    assert df.config.get_backend() == "numpy"
    f(df.ones([2]))
    f(df.ones([2, 2]))
    assert [c.options.backend for c in f.concrete_functions] == ["llvm", "numpy"]


def test_a_functions_backend_overrides_the_process_backend() -> None:
    df.config.set_backend("numpy")
    f = df.function(lambda x: x + 1.0, backend="llvm")
    f(df.ones([2]))
    assert backends_of(f) == {"llvm"}


def test_the_environment_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUALFLOW_BACKEND", "numba")
    f = df.function(lambda x: x + 1.0)
    f(df.ones([2]))
    assert backends_of(f) == {"numba"}


def test_an_unknown_backend_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="no backend 'cuda'; it is one of llvm, numba, opencl, numpy"):
        df.function(lambda x: x, backend="cuda")
    with pytest.raises(ValueError, match="no backend 'cuda'"):
        df.config.set_backend("cuda")
    monkeypatch.setenv("DUALFLOW_BACKEND", "gpu")
    with pytest.raises(ValueError, match="no backend 'gpu' in DUALFLOW_BACKEND"):
        df.function(lambda x: x + 1.0)(df.ones([2]))


# Computing


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_training_step_does_what_the_reference_does(backend: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(32, 20)).astype(np.float32), rng.integers(0, 10, 32)
    start = rng.normal(size=(20, 16)).astype(np.float32)
    left = []
    for name in ("numpy", backend):
        w, b = df.Variable(start), df.Variable(np.zeros(10, np.float32))
        step = training_step(w, b, name)
        losses = [step(df.constant(x), df.constant(y)).numpy() for _ in range(3)]  # type: ignore[operator]
        left.append((losses, w.numpy(), b.numpy()))
    for a, c in zip(*left, strict=True):
        np.testing.assert_allclose(a, c, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_that_are_equal_keep_their_dtypes(backend: str) -> None:
    f = df.function(lambda n, x: df.where(df.equal(n, 0), 0.0, x), backend=backend)
    np.testing.assert_array_equal(f(df.constant([1, 0, 2]), df.constant([1.5, 2.5, 3.5])), [1.5, 0, 3.5])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_gradient_from_outside_goes_through(backend: str) -> None:
    f = df.function(lambda x: df.reduce_sum(df.tanh(x) ** 2), backend=backend)
    x = df.constant([0.5, -1.0, 2.0])
    with df.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    t = np.tanh(x.numpy())
    np.testing.assert_allclose(tape.gradient(y, x), 2 * t * (1 - t * t), rtol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_failing_call_leaves_variables_as_eager_code_does(backend: str) -> None:
    first, second = df.Variable([1.0, 2.0]), df.Variable([0.0, 0.0])

    @df.function(backend=backend)
    def f(i):
        first.assign(first * 2.0)
        second.assign(df.gather(first, i))

    f(df.constant([0, 1]))
    with pytest.raises(IndexError):
        f(df.constant([0, 5]))
    np.testing.assert_array_equal(first, [4.0, 8.0])
    np.testing.assert_array_equal(second, [2.0, 4.0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_share_no_memory_with_arguments_and_variables(backend: str) -> None:
    v = df.Variable([1.0, 2.0])
    f = df.function(lambda x: (df.identity(x), x[1:], v.value(), df.reshape(x, [1, 2])), backend=backend)
    for _ in range(2):
        results = f(df.constant([3.0, 4.0]))
    v.assign([0.0, 0.0])
    assert [r.numpy().tolist() for r in results] == [[3.0, 4.0], [4.0], [1.0, 2.0], [[3.0, 4.0]]]


@pytest.mark.parametrize("backend", BACKENDS)
def test_compare_and_verify_report_every_backend(backend: str) -> None:
    f = df.function(lambda x: df.exp(x) * x @ df.ones([4, 2]), backend=backend)
    assert df.verify(f, df.ones([4, 4])).agrees
    report = df.compare(f, df.ones([4, 4]))
    assert report.difference.agrees
    assert (report.kernels > 0, report.blas_calls) == ((backend != "numpy"), int(backend != "numpy"))
    assert str(report)


def test_numba_and_numpy_dont_load_each_others_libraries() -> None:
    program = (
        "import sys, dualflow as df\n"
        "df.function(lambda x: x + 1.0, backend='numpy')(df.ones([2]))\n"
        "assert not {'numba', 'llvmlite'} & set(sys.modules)\n"
        "df.function(lambda x: x + 1.0)(df.ones([2]))\n"
        "assert 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_strict_refuses_what_no_kernel_computes() -> None:
    f = df.function(lambda x: df.sort(x), strict=True, backend="numba")
    with pytest.raises(df.errors.FailedPreconditionError, match="sort would run through NumPy"):
        f(df.ones([4]))


# Export

PROGRAM = """
import sys
sys.modules["dualflow"] = None  # it can't be imported
import numpy as np
import exported
w = np.load("w.npy")
(loss,) = exported.step(np.load("x.npy"), np.load("y.npy"), w)
np.savez("out.npz", loss=loss, w=w)
try:
    exported.step(np.load("x.npy"), np.load("y.npy") + 9, w)
except IndexError as error:
    assert "a label is outside" in str(error)
    assert "test_backends.py" in str(error)
else:
    raise AssertionError("a label out of range is an error")
np.testing.assert_array_equal(np.load("out.npz")["w"], w)
try:
    exported.step(np.zeros((3, 3)), np.load("y.npy"), w)
except ValueError as error:
    assert "x has shape (3, 3)" in str(error)
"""


def test_an_exported_file_needs_numpy_and_numba_only(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 6)).astype(np.float32), rng.integers(0, 3, 8)
    w = df.Variable(rng.normal(size=(6, 3)).astype(np.float32), name="w")
    scale = df.constant([1.0, 2.0, 0.5])

    @df.function
    def step(x, y):
        with df.GradientTape() as tape:
            logits = (x @ w) * scale
            loss = df.reduce_sum(df.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    concrete = step.get_concrete_function(df.constant(x), df.constant(y))
    (tmp_path / "exported.py").write_text(concrete.source())
    for name, array in (("x", x), ("y", y), ("w", w.numpy())):
        np.save(tmp_path / f"{name}.npy", array)
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, check=True, timeout=240)
    loss = step(df.constant(x), df.constant(y))
    arrays = np.load(tmp_path / "out.npz")
    np.testing.assert_allclose(arrays["loss"], loss, rtol=1e-6)
    np.testing.assert_allclose(arrays["w"], w, rtol=1e-5, atol=1e-6)


def sorted_by_iterations(x: Any) -> Any:
    while df.reduce_sum(x) > 1.0:
        x = df.sort(x * 0.5)
    return x


@pytest.mark.parametrize(
    ("f", "reason"),
    [
        (lambda x: x + df.random.normal([3]), r"random_normal \(random numbers come from"),
        (lambda x: df.numpy_function(np.sort, [x], df.float32), r"\(it calls Python\)"),
        (sorted_by_iterations, r"loop \(it runs sort"),
    ],
    ids=["random", "python", "loop"],
)
def test_ops_that_need_dualflows_own_code_are_not_exported(f: Callable[..., Any], reason: str) -> None:
    concrete = df.function(f).get_concrete_function(df.TensorSpec([3]))
    with pytest.raises(ValueError, match=f"can't be exported.*{reason}"):
        concrete.source()


def test_only_numba_programs_have_source() -> None:
    concrete = df.function(lambda x: x + 1.0).get_concrete_function(df.TensorSpec([3]))
    with pytest.raises(ValueError, match="no source for the backend 'llvm'"):
        concrete.source("llvm")
