"""Exported programs call NumPy's and SciPy's LAPACK themselves, and fail as it does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df

L = df.linalg
MATRIX = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "banded": lambda x: L.banded_triangular_solve(x, x),
    "cholesky": L.cholesky,
    "det": L.det,
    "eig": lambda x: L.eig(x)[0],
    "eigh": lambda x: L.eigh(x)[0],
    "expm": L.expm,
    "inv": L.inv,
    "lu": lambda x: L.lu(x).lu,
    "qr": lambda x: L.qr(x).r,
    "solve": lambda x: L.solve(x, x + 1.0),
    "sqrtm": L.sqrtm,
    "svd": lambda x: L.svd(x)[0],
    "triangular": lambda x: L.triangular_solve(x, x + 1.0),
    "tridiagonal": lambda x: L.tridiagonal_solve(x, x),
}


def exported(function: Callable[[Any], Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The function in the file that a program exports."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder / "cache"))
    source = (
        df.function(function, name="program").get_concrete_function(df.TensorSpec([3, 3], "float64")).source()
    )
    file = folder / "exported.py"
    file.write_text(source)
    names: dict[str, Any] = {"__name__": "exported", "__file__": str(file)}
    exec(compile(source, file, "exec"), names)
    return names["program"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_exported_program_gives_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (result,) = exported(FUNCTIONS[name], tmp_path, monkeypatch)(MATRIX)
    np.testing.assert_allclose(result, FUNCTIONS[name](MATRIX), rtol=1e-12, atol=1e-12)


def test_an_exported_program_refuses_singular_matrices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = exported(L.inv, tmp_path, monkeypatch)
    with pytest.raises(ValueError, match="not invertible"):
        program(np.ones((3, 3)))


def test_the_functions_of_a_kernel_are_in_the_order_of_their_use() -> None:
    concrete = df.function(FUNCTIONS["banded"]).get_concrete_function(df.TensorSpec([3, 3], "float64"))
    source = concrete.source()
    kernel = next(n.op.kernel for n in concrete.graph.nodes if n.op.name == "banded_solve")
    used = [name for name in kernel.__code__.co_names if f"def {name}(" in source]
    assert len(used) > 2
    assert sorted(used, key=lambda name: source.index(f"def {name}(")) == used
