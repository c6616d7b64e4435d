"""SciPy and scikit-learn on tensors, through the Array API namespace: results, and gradients through them.

Both read ``SCIPY_ARRAY_API`` when they are imported, so ``test_libraries.py`` runs this file in a process of
its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
import dualflow.array_api as xp

fft = pytest.importorskip("scipy.fft")
integrate = pytest.importorskip("scipy.integrate")
optimize = pytest.importorskip("scipy.optimize")
signal = pytest.importorskip("scipy.signal")
special = pytest.importorskip("scipy.special")
stats = pytest.importorskip("scipy.stats")
elementwise = pytest.importorskip("scipy.optimize.elementwise")
sklearn = pytest.importorskip("sklearn")
pytest.importorskip("sklearn.linear_model")
pytest.importorskip("sklearn.decomposition")
pytest.importorskip("sklearn.preprocessing")
pytest.importorskip("sklearn.metrics")

X = np.random.default_rng(0).uniform(0.5, 2.0, size=(8, 3))

COMPILED: dict[str, Callable[[Any], Any]] = {
    "logsumexp": lambda x: special.logsumexp(x, axis=1),
    "softmax": lambda x: special.softmax(x, axis=1),
    "log_softmax": lambda x: special.log_softmax(x, axis=1),
    "xlogy": lambda x: special.xlogy(x, x),
    "zscore": stats.zscore,
    "gmean": stats.gmean,
    "variation": stats.variation,
    "skew": stats.skew,
    "kurtosis": stats.kurtosis,
    "sem": stats.sem,
    "trapezoid": integrate.trapezoid,
    "rosen": optimize.rosen,
}
"""Functions that have gradients, and compile to machine code alone."""

DIFFERENTIATED: dict[str, Callable[[Any], Any]] = {
    "hmean": stats.hmean,
    "pmean": lambda x: stats.pmean(x, 3.0),
    "moment": lambda x: stats.moment(x, 3),
    "tstd": stats.tstd,
    "pearsonr": lambda x: stats.pearsonr(x[:, 0], x[:, 1]).statistic,
    "ttest_1samp": lambda x: stats.ttest_1samp(x, 0.0).statistic,
    "cumulative_trapezoid": integrate.cumulative_trapezoid,
    "fftconvolve": lambda x: signal.fftconvolve(x, x),
}
"""Functions that have gradients, but look at values, or call what is no machine code."""

CALLED: dict[str, Callable[[Any], Any]] = {
    "erf": special.erf,
    "gammaln": special.gammaln,
    "betainc": lambda x: special.betainc(x, x, x / 4),
    "expit": special.expit,
    "detrend": signal.detrend,
    "convolve": lambda x: signal.convolve(x[:, 0], x[:3, 1]),
    "hilbert": lambda x: signal.hilbert(x[:, 0]),
    "fft": fft.fft,
    "rfft": lambda x: fft.rfft(x, axis=0),
    "irfft": lambda x: fft.irfft(fft.rfft(x)),
    "fftshift": fft.fftshift,
    "entropy": stats.entropy,
    "rankdata": stats.rankdata,
}
"""Functions whose results alone are compared."""


def slopes(function: Callable[[Any], float], x: Any) -> Any:
    """The gradient by central differences."""
    result = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-6
        result[place] = (function(x + step) - function(x - step)) / 2e-6
    return result


@pytest.mark.parametrize("name", [*COMPILED, *DIFFERENTIATED, *CALLED])
def test_a_function_takes_tensors(name: str) -> None:
    function = (COMPILED | DIFFERENTIATED | CALLED)[name]
    result = function(df.constant(X))
    assert isinstance(result, xp.Array)
    np.testing.assert_allclose(result, function(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [*COMPILED, *DIFFERENTIATED])
def test_the_gradient_flows_through_it(name: str) -> None:
    function = (COMPILED | DIFFERENTIATED)[name]
    weights = np.cos(np.arange(np.size(function(X)))).reshape(np.shape(function(X)))
    x = df.constant(X)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = xp.sum(function(x) * xp.asarray(weights))
    expected = slopes(lambda x: float(np.sum(function(x) * weights)), X)
    np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", COMPILED)
def test_it_compiles_to_machine_code(name: str) -> None:
    function = COMPILED[name]
    compiled = df.function(lambda x: function(x))
    np.testing.assert_allclose(compiled(df.constant(X)), function(X), rtol=1e-9, atol=1e-12)
    assert "native:" in str(compiled.status())
    assert "numpy:" not in str(compiled.status())


def test_iterative_methods_run_on_arrays() -> None:
    result = elementwise.find_root(lambda x: x**2 - 2.0, (xp.asarray(0.0), xp.asarray(2.0)))
    assert float(result.x) == pytest.approx(2**0.5)
    area = integrate.tanhsinh(lambda x: x**2, xp.asarray(0.0), xp.asarray(3.0))
    assert float(area.integral) == pytest.approx(9.0)


# scikit-learn

ROWS = np.random.default_rng(1).normal(size=(60, 4)).astype(np.float32)
TARGET = (ROWS @ [1.0, -2.0, 0.5, 0.0]).astype(np.float32)
LABELS = (TARGET > 0).astype(np.int64)

ESTIMATORS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "StandardScaler": lambda x, t, y: sklearn.preprocessing.StandardScaler().fit_transform(x),
    "MinMaxScaler": lambda x, t, y: sklearn.preprocessing.MinMaxScaler().fit_transform(x),
    "Normalizer": lambda x, t, y: sklearn.preprocessing.Normalizer().fit_transform(x),
    "PolynomialFeatures": lambda x, t, y: sklearn.preprocessing.PolynomialFeatures().fit_transform(x),
    "PCA": lambda x, t, y: sklearn.decomposition.PCA(2, svd_solver="full").fit(x).explained_variance_,
    "Ridge": lambda x, t, y: sklearn.linear_model.Ridge(solver="svd").fit(x, t).predict(x),
    "RidgeClassifier": lambda x, t, y: (
        sklearn.linear_model.RidgeClassifier(solver="svd").fit(x, y).predict(x)
    ),
    "mean_squared_error": lambda x, t, y: sklearn.metrics.mean_squared_error(t, t + 1),
    "accuracy_score": lambda x, t, y: sklearn.metrics.accuracy_score(y, 1 - y),
    "rbf_kernel": lambda x, t, y: sklearn.metrics.pairwise.rbf_kernel(x),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_scikit_learn_dispatches_to_the_namespace(name: str) -> None:
    estimate = ESTIMATORS[name]
    expected = estimate(ROWS, TARGET, LABELS)
    with sklearn.config_context(array_api_dispatch=True):
        result = estimate(*map(df.constant, (ROWS, TARGET, LABELS)))
    assert isinstance(result, xp.Array) is isinstance(expected, np.ndarray)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
