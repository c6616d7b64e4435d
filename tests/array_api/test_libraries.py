"""Other libraries that take tensors: array-api-compat, einops, opt_einsum, xarray, SciPy and scikit-learn."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
import dualflow.array_api as xp

X = np.arange(24.0).reshape(2, 3, 4)


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, check=False)


# array-api-compat


@pytest.mark.parametrize("make", [df.constant, df.Variable, xp.asarray])
def test_array_api_compat_finds_the_namespace(make: Any) -> None:
    compat = pytest.importorskip("array_api_compat")
    x = make(X)
    assert compat.is_array_api_obj(x)
    assert compat.array_namespace(x) is xp
    assert compat.array_namespace(x, df.constant(X), 1.0) is xp
    assert compat.device(x) == x.device
    assert compat.size(x) == 24
    assert compat.to_device(x, "cpu").shape == (2, 3, 4)
    assert not compat.is_numpy_namespace(compat.array_namespace(x))


# einops

EINOPS: dict[str, Any] = {
    "rearrange": lambda e, x: e.rearrange(x, "a (b c) d -> d (a b) c", b=3),
    "reduce": lambda e, x: e.reduce(x, "a b (c two) -> b c", "mean", two=2),
    "largest": lambda e, x: e.reduce(x, "a b c -> b", "max"),
    "repeat": lambda e, x: e.repeat(x, "a b c -> a (b n) c", n=2),
    "list": lambda e, x: e.rearrange([x, x + 1], "n a b c -> (a n) b c"),
    "einsum": lambda e, x: e.einsum(x, x, "a b c, a d c -> b d"),
    "pack": lambda e, x: e.pack([x, x], "* b c")[0],
}
MAKE: dict[str, Any] = {"tensor": df.constant, "array": xp.asarray, "variable": df.Variable}
RESULT = {"tensor": df.Tensor, "array": xp.Array, "variable": df.Tensor}


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("name", EINOPS)
def test_einops_takes_tensors(name: str, kind: str) -> None:
    einops = pytest.importorskip("einops")
    result = EINOPS[name](einops, MAKE[kind](X))
    assert isinstance(result, RESULT[kind])
    np.testing.assert_allclose(result, EINOPS[name](einops, X))


@pytest.mark.parametrize("name", EINOPS)
def test_einops_compiles_and_has_gradients(name: str) -> None:
    einops = pytest.importorskip("einops")

    @df.function
    def slope(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reduce_sum(df.square(EINOPS[name](einops, x)))
        return tape.gradient(y, x)

    x = df.constant(X)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.reduce_sum(df.square(EINOPS[name](einops, x)))
    np.testing.assert_allclose(slope(x), tape.gradient(y, x), rtol=1e-12)
    step = 1e-6 * np.cos(X)
    ahead, behind = (float(np.sum(EINOPS[name](einops, X + s) ** 2)) for s in (step, -step))
    assert float(np.sum(slope(x).numpy() * step)) == pytest.approx((ahead - behind) / 2, rel=1e-6)
    assert "native:" in str(slope.status())
    assert "numpy:" not in str(slope.status())


def test_einops_takes_dynamic_sizes() -> None:
    einops = pytest.importorskip("einops")

    @df.function(input_signature=[df.TensorSpec([None, 3, 4])])
    def flat(x: Any) -> Any:
        return einops.rearrange(x, "a b c -> (a b) c")

    for rows in (2, 5):
        assert flat(df.ones([rows, 3, 4])).shape == (3 * rows, 4)


@pytest.mark.parametrize("order", [["einops", "dualflow"], ["dualflow", "einops"]])
def test_einops_takes_tensors_whichever_is_imported_first(order: list[str]) -> None:
    pytest.importorskip("einops")
    imports = "\n".join(f"import {name}" for name in order)
    use = "print(einops.rearrange(dualflow.ones([2, 3]), 'a b -> b a').shape, einops._backends.__loader__)"
    output = run(f"{imports}\n{use}").stdout
    assert output.startswith("(3, 2)")
    assert "dualflow" not in output.splitlines()[0].split(")", 1)[1].split("object")[0]


def test_dualflow_alone_imports_no_einops() -> None:
    output = run("import sys, dualflow; dualflow.ones(2); print('einops' in sys.modules)")
    assert output.stdout.strip() == "False"


def test_a_library_that_is_not_there_is_still_not_found() -> None:
    program = """
import sys
from dualflow.core.after_import import import_after
import_after("nosuchlibrary", "json")
try:
    import nosuchlibrary
except ModuleNotFoundError as error:
    print(error)
"""
    assert run(program).stdout.strip() == "No module named 'nosuchlibrary'"


# opt_einsum


@pytest.mark.parametrize("make", [df.constant, xp.asarray])
def test_opt_einsum_contracts_tensors(make: Any) -> None:
    opt_einsum = pytest.importorskip("opt_einsum")
    a, b, c = (np.random.default_rng(i).normal(size=s) for i, s in enumerate([(3, 4), (4, 5), (5, 2)]))
    result = opt_einsum.contract("ij,jk,kl->il", make(a), make(b), make(c))
    np.testing.assert_allclose(result, a @ b @ c)


def test_opt_einsum_has_gradients_and_compiles() -> None:
    opt_einsum = pytest.importorskip("opt_einsum")
    x, w = df.constant(np.arange(6.0).reshape(2, 3)), df.ones([3, 4], df.float64)

    @df.function
    def slope(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reduce_sum(df.square(opt_einsum.contract("ij,jk->ik", x, w)))
        return tape.gradient(y, x)

    expected = 8 * np.repeat(x.numpy().sum(1, keepdims=True), 3, axis=1)
    np.testing.assert_allclose(slope(x), expected)
    assert "numpy:" not in str(slope.status())


# xarray


@pytest.mark.parametrize("make", [df.constant, xp.asarray])
def test_xarray_holds_tensors(make: Any) -> None:
    xarray = pytest.importorskip("xarray")
    x = make(X[0])
    held = xarray.DataArray(x, dims=("a", "b"), coords={"a": [10, 20, 30]})
    plain = xarray.DataArray(X[0], dims=("a", "b"), coords={"a": [10, 20, 30]})
    assert held.data is x
    for function in (
        lambda d: d + d.isel(a=0),
        lambda d: d.T,
        lambda d: d.sel(a=20) * 2,
        lambda d: d.where(d > 3, -1.0),
        lambda d: xarray.concat([d, d], "b"),
        lambda d: d.stack(z=("a", "b")),
        lambda d: d.mean("a"),
        lambda d: d.sum(),
    ):
        result, expected = function(held), function(plain)
        assert result.dims == expected.dims
        np.testing.assert_allclose(np.asarray(result.data), expected.data)


def test_a_gradient_flows_through_xarray() -> None:
    xarray = pytest.importorskip("xarray")
    x = df.constant(X[0])
    with df.GradientTape() as tape:
        tape.watch(x)
        held = xarray.DataArray(x, dims=("a", "b"))
        y = df.reduce_sum((held * held.isel(a=0)).data)
    expected = np.broadcast_to(X[0][0], (3, 4)).copy()
    expected[0] += X[0].sum(0)
    np.testing.assert_allclose(tape.gradient(y, x), expected)


# SciPy and scikit-learn


@pytest.mark.exhaustive
def test_scipy_and_scikit_learn_dispatch_to_the_namespace() -> None:
    pytest.importorskip("scipy")
    pytest.importorskip("sklearn")
    root = Path(__file__).parents[2]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        str(Path(__file__).parent / "dispatching.py"),
    ]
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    ended = subprocess.run(command, capture_output=True, text=True, cwd=root, env=environment, check=False)
    assert ended.returncode == 0, ended.stdout[-4000:]
    assert "skipped" not in ended.stdout
