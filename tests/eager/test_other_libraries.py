"""Tensors passed to libraries that expect arrays: scikit-learn and, if installed, pandas."""

from __future__ import annotations

import numpy as np
import pytest
from required_tools import require_module

import dualflow as df

X = df.constant(np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32))
Y = df.cast(X[:, 0] > 0, df.int32)


def test_scikit_learn_splits_tensors_into_tensors():
    selection = require_module("sklearn.model_selection")
    parts = selection.train_test_split(X, Y, test_size=10, random_state=0)
    rows = selection.train_test_split(np.arange(40), test_size=10, random_state=0)
    for result, source, picked in zip(parts, (X, X, Y, Y), (*rows, *rows), strict=True):
        assert isinstance(result, df.Tensor)
        np.testing.assert_array_equal(result.numpy(), source.numpy()[picked])


def test_scikit_learn_keeps_the_shares_of_classes():
    selection = require_module("sklearn.model_selection")
    _, _, train, test = selection.train_test_split(X, Y, stratify=Y, test_size=0.5, random_state=0)
    assert abs(int(df.reduce_sum(train)) - int(df.reduce_sum(test))) <= 1


def test_scikit_learn_shuffles_and_resamples_rows():
    utils = require_module("sklearn.utils")
    x, y = utils.shuffle(X, Y, random_state=0)
    np.testing.assert_array_equal(y.numpy(), x.numpy()[:, 0] > 0)
    assert utils.resample(X, n_samples=7, random_state=0).shape == (7, 3)


def test_scikit_learn_fits_and_validates():
    selection = require_module("sklearn.model_selection")
    model = require_module("sklearn.linear_model").LogisticRegression()
    assert model.fit(X, Y).score(X, Y) > 0.9
    assert selection.cross_val_score(model, X, Y, cv=selection.KFold(2)).shape == (2,)


def test_pandas_gives_way_to_tensors():
    pandas = pytest.importorskip("pandas")
    frame, series = pandas.DataFrame(np.ones((3, 4))), pandas.Series([1.0, 2.0, 3.0])
    t, v = df.reshape(df.range(12.0), [3, 4]), df.range(3.0)
    for result, expected in (
        (frame * t, t),
        (t * frame, t),
        (frame - t, 1 - t),
        (series + v, series.to_numpy() + v),
        (frame > t, t < 1),
    ):
        assert isinstance(result, df.Tensor)
        np.testing.assert_array_equal(result.numpy(), expected.numpy())


def test_the_gradient_flows_through_an_operator_with_a_frame():
    pandas = pytest.importorskip("pandas")
    t = df.ones([2, 2])
    with df.GradientTape() as tape:
        tape.watch(t)
        y = pandas.DataFrame([[1.0, 2.0], [3.0, 4.0]]) * t
    assert tape.gradient(y, t).numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_pandas_takes_tensors_as_data():
    pandas = pytest.importorskip("pandas")
    assert pandas.DataFrame(X).shape == (40, 3)
    assert pandas.Series(Y).tolist() == Y.numpy().tolist()
    assert pandas.DataFrame({"x": X[:, 0], "y": Y})["y"].sum() == int(df.reduce_sum(Y))


@pytest.mark.parametrize("taped", [False, True])
def test_matplotlib_plots_tensors(taped):
    pyplot = pytest.importorskip("matplotlib.figure")
    times = df.linspace(0.0, 1.0, 5)
    with df.GradientTape() as tape:
        if taped:
            tape.watch(times)
        axes = pyplot.Figure().subplots()
        (line,) = axes.plot(df.stop_gradient(times), np.sin(df.stop_gradient(times)))
    np.testing.assert_allclose(line.get_ydata(), np.sin(times.numpy()), rtol=1e-6)


def test_scipy_and_pandas_take_tensors_on_a_tape_that_watches_others():
    pandas = pytest.importorskip("pandas")
    integrate = pytest.importorskip("scipy.integrate")
    with df.GradientTape() as tape:
        tape.watch(X)
        frame = pandas.DataFrame(df.reshape(df.range(6.0), [2, 3]))
        area = integrate.trapezoid(df.range(4.0))
    assert frame.to_numpy().tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert float(area) == 4.5
