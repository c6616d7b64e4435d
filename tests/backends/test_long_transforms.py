"""Fourier transforms of long rows: as accurate as SciPy's, the same bits in both modes and on any threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.fft

import dualflow as df
from dualflow.backends.llvm.fourier_kernels import columns_routine
from dualflow.backends.llvm.runtime import threads

SHORTEST = 1 << 16
TRANSFORMS = {"fft": (df.signal.fft, scipy.fft.fft), "ifft": (df.signal.ifft, scipy.fft.ifft)}
LARGEST_ERRORS = {"complex64": 3e-7, "complex128": 1e-15}
"""Of root mean squares; SciPy's are half of these."""

Array = np.ndarray[Any, Any]
Shape = tuple[int | None, ...]


def signal(*shape: int, dtype: str = "complex64") -> Array:
    """Numbers drawn from the normal distribution."""
    rng = np.random.default_rng(sum(shape))
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def size_of(x: Array) -> float:
    return float(np.sqrt(np.mean(np.abs(x) ** 2)))


@pytest.fixture
def same_threads() -> Iterator[None]:
    """Restore the number of threads."""
    before = threads.num_threads()
    yield
    threads.set_num_threads(before)


@pytest.fixture(scope="module")
def compiled() -> Any:
    return {kind: df.function(ours) for kind, (ours, _) in TRANSFORMS.items()}


@pytest.mark.parametrize("dtype", LARGEST_ERRORS)
@pytest.mark.parametrize("kind", TRANSFORMS)
@pytest.mark.parametrize("shape", [(SHORTEST,), (2, 2 * SHORTEST), (1, 3, SHORTEST)], ids=str)
def test_both_modes_are_accurate_and_equal(kind: str, dtype: str, shape: tuple[int, ...]) -> None:
    x = signal(*shape, dtype=dtype)
    ours, exact = TRANSFORMS[kind]
    expected = exact(x.astype("clongdouble"))
    eager, graph = ours(x).numpy(), df.function(ours)(df.constant(x)).numpy()
    assert eager.dtype == graph.dtype == dtype
    np.testing.assert_array_equal(eager, graph)
    assert size_of(eager - expected) < LARGEST_ERRORS[dtype] * size_of(expected)


@pytest.mark.parametrize("place", [0, 1, 255, 256, 40_000, SHORTEST - 1])
def test_a_wave_has_one_frequency_and_an_impulse_all(place: int) -> None:
    wave = np.exp(2j * np.pi * (place * np.arange(SHORTEST) % SHORTEST) / SHORTEST)
    impulse = np.zeros(SHORTEST)
    impulse[place] = 1
    result = df.signal.fft(wave / SHORTEST).numpy()
    np.testing.assert_allclose(result, impulse, rtol=0, atol=4e-15)
    np.testing.assert_allclose(df.signal.fft(impulse + 0j).numpy(), wave.conj(), rtol=0, atol=4e-15)


def test_the_inverse_gives_the_signal_back() -> None:
    x = signal(SHORTEST, dtype="complex128")
    np.testing.assert_allclose(df.signal.ifft(df.signal.fft(x)).numpy(), x, rtol=0, atol=1e-14)


def test_rows_and_threads_do_not_matter(compiled: Any, same_threads: None) -> None:
    x = signal(3, SHORTEST)
    together = compiled["fft"](df.constant(x)).numpy()
    threads.set_num_threads(1)
    np.testing.assert_array_equal(df.function(lambda x: df.signal.fft(x))(df.constant(x)).numpy(), together)
    np.testing.assert_array_equal(compiled["fft"](df.constant(x)).numpy(), together)
    for row, alone in zip(together, x, strict=True):
        np.testing.assert_array_equal(df.signal.fft(alone).numpy(), row)


def test_an_array_of_any_layout_is_transformed() -> None:
    x = signal(SHORTEST, 2)
    expected = df.signal.fft(np.ascontiguousarray(x.T)).numpy()
    np.testing.assert_array_equal(df.signal.fft(df.transpose(df.constant(x))).numpy(), expected)
    swapped = df.function(lambda x: df.signal.fft(df.transpose(x)))
    np.testing.assert_array_equal(swapped(df.constant(x)).numpy(), expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nonfinite_elements_affect_only_their_row(bad: float) -> None:
    x = signal(2, SHORTEST)
    x[1, 77] = bad
    result = df.signal.fft(x).numpy()
    assert np.isfinite(result[0]).all()
    assert not np.isfinite(result[1]).any()


@pytest.mark.llvm  # Numba leaves Fourier transforms to SciPy
def test_transforms_of_long_rows_are_native(compiled: Any) -> None:
    compiled["ifft"](df.constant(signal(SHORTEST)))
    assert "numpy" not in compiled["ifft"].status()


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((SHORTEST // 2,), 0), ((SHORTEST + 2,), 0), ((SHORTEST, 1), 0), ((0, SHORTEST), 1)],
    ids=["short", "not a power of two", "another axis", "no row"],
)
def test_others_are_scipys_in_both_modes(shape: tuple[int, ...], axis: int) -> None:
    x = signal(*shape)
    function = df.function(lambda x: df.signal.fftnd(x, axes=[axis]))
    expected = scipy.fft.fft(x, axis=axis) if x.size else x
    np.testing.assert_array_equal(function(df.constant(x)).numpy(), expected)
    np.testing.assert_array_equal(df.signal.fftnd(x, axes=[axis]).numpy(), expected)
    assert "Fourier transforms are SciPy's" in function.status()


def test_the_gradient_is_a_transform() -> None:
    """Of ``real(sum(w * fft(x)))`` it is the conjugate of ``fft(w)``."""
    x, w = df.constant(signal(SHORTEST)), df.constant(signal(SHORTEST)[::-1].copy())

    @df.function
    def slope(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            loss = df.reduce_sum(df.math.real(w * df.signal.fft(x)))
        return tape.gradient(loss, x)

    expected = scipy.fft.fft(w.numpy().astype("complex128")).conj()
    assert size_of(slope(x).numpy() - expected) < 3e-7 * size_of(expected)


@pytest.mark.parametrize("kind", TRANSFORMS)
@pytest.mark.parametrize("shape", [(None,), (None, SHORTEST), (None, None)], ids=str)
def test_programs_of_dynamic_sizes_give_the_bits_of_eager_calls(kind: str, shape: Shape) -> None:
    ours, _ = TRANSFORMS[kind]
    compiled = df.function(ours, input_signature=[df.TensorSpec(shape, df.complex64)])
    for rows, size in ((2, SHORTEST), (3, SHORTEST), (2, 2 * SHORTEST), (2, 100), (1, SHORTEST + 2), (0, 4)):
        if size != SHORTEST and shape[-1] is not None:
            continue
        x = signal(*(rows, size)[-len(shape) :])
        np.testing.assert_array_equal(compiled(x), ours(x))


@pytest.mark.llvm  # Numba leaves Fourier transforms to SciPy
@pytest.mark.parametrize("shape", [(None,), (None, SHORTEST), (None, None)], ids=str)
def test_long_rows_of_dynamic_sizes_are_native(shape: Shape) -> None:
    compiled = df.function(df.signal.fft, input_signature=[df.TensorSpec(shape, df.complex64)])
    compiled(signal(*(3, SHORTEST)[-len(shape) :]))
    assert "numpy" not in compiled.status()


@pytest.mark.llvm  # Numba leaves Fourier transforms to SciPy
def test_loops_and_surrounding_code_see_the_results() -> None:
    @df.function
    def smoothed(x: Any) -> Any:
        for _ in df.range(2):
            x = df.signal.ifft(df.signal.fft(x * 2.0) * 0.5) + 1.0
        return x

    x = signal(SHORTEST, dtype="complex128")
    np.testing.assert_allclose(smoothed(df.constant(x)).numpy(), x + 2, rtol=0, atol=1e-13)
    assert "numpy" not in smoothed.status()


@pytest.mark.llvm  # Numba leaves Fourier transforms to SciPy
def test_listings_name_the_transform(compiled: Any) -> None:
    compiled["fft"](df.constant(signal(SHORTEST)))
    listing = compiled["fft"].get_concrete_function(df.TensorSpec([SHORTEST], df.complex64)).kernels
    assert "fourier_steps" in listing


@pytest.mark.parametrize(("bits", "at_once"), [(128, False), (256, True), (512, True)])
def test_narrow_processors_multiply_and_add_apart(bits: int, at_once: bool) -> None:
    assert ("llvm.fma" in columns_routine(df.float32, 16, False, bits).text) == at_once


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_other_backends_give_scipys_results(backend: str) -> None:
    if backend == "numba":
        pytest.importorskip("numba")
    x = signal(SHORTEST)
    result = df.function(df.signal.fft, backend=backend)(df.constant(x)).numpy()
    np.testing.assert_array_equal(result, scipy.fft.fft(x))
