"""Productions of linear algebra: factors of well-conditioned matrices, single and in batches, and bands."""

from __future__ import annotations

from .elementary import has_axes, is_matrix, is_number, is_wide_float, production
from .records import Step
from .values import Size, Value, max_size_of
from .writer import Writer

__all__ = ["factored"]

MAX_ROWS = 12
"""Rows of the largest single matrix: larger and smaller ones than those that are kernels of their own."""
OF_MATRICES = (
    "df.linalg.cholesky({0})",
    "df.linalg.inv({0})",
    "df.linalg.solve({0}, {0} * 0.5 + df.linalg.matrix_transpose({0}))",
    "df.linalg.triangular_solve(df.linalg.cholesky({0}), {0}, adjoint=True)",
    "df.linalg.cholesky_solve(df.linalg.cholesky({0}), {0})",
    "df.linalg.lstsq({0}, {0} * 2.0, fast=False)",
    "df.linalg.pinv({0})",
    "df.linalg.expm({0} * 0.1)",
)
"""Functions of a batch of symmetric matrices whose results have the same shape."""
OF_VALUES = (
    "df.linalg.det({0})",
    "df.linalg.logdet({0})",
    "df.linalg.slogdet({0})[1]",
    "df.linalg.trace({0})",
    "df.reduce_sum(df.linalg.eigvalsh({0}) ** 2, -1)",
    "df.reduce_sum(df.linalg.svd({0}, compute_uv=False), -1)",
    "df.linalg.norm({0}, axis=[-2, -1])",
    "df.reduce_sum(df.linalg.eigh({0})[0] ** 3, -1) * 0.1",
    "df.reduce_sum(df.abs(df.linalg.qr({0})[1]), [-2, -1])",
)
"""Functions of a batch of symmetric matrices whose results are one number for each."""


@production
def factored(w: Writer, s: Step) -> Value | None:
    """Factors, inverses and roots of a matrix, or of a matrix for each row, with eigenvalues from 1."""
    a = w.pick(s.i, is_wide_float, is_matrix)
    if a is None or w.domain == "whole":
        return None
    if s.j & 1:
        matrix, sizes = row_matrices(w, a)
    else:
        matrix, sizes = single_matrix(w, a)
    if s.j & 2:
        return w.assign(
            w.bound_values(OF_VALUES[s.k % len(OF_VALUES)].format(matrix), a.dtype), a.dtype, sizes[:-2]
        )
    return w.assign(
        w.bound_values(OF_MATRICES[s.k % len(OF_MATRICES)].format(matrix), a.dtype), a.dtype, sizes
    )


def single_matrix(w: Writer, a: Value) -> tuple[str, tuple[Size, ...]]:
    """A name of a matrix with as many rows as the value, at most some, and its sizes."""
    cut = f"df.tanh({a.name}[:{MAX_ROWS}, :{MAX_ROWS}])"
    size: Size = min(a.sizes[0], MAX_ROWS) if isinstance(a.sizes[0], int) else w.size(MAX_ROWS)
    name, part = w.name("m"), w.name("p")
    w.line(f"{part} = {cut}")
    product = f"df.matmul({part}, {part}, transpose_b=True)"
    w.line(f"{name} = 0.2 * {product} + df.eye(df.shape({part})[0], dtype=df.{a.dtype})")
    return name, (size, size)


def row_matrices(w: Writer, a: Value) -> tuple[str, tuple[Size, ...]]:
    """A name of a matrix for each row of the value, and its sizes."""
    name, part = w.name("m"), w.name("p")
    size: Size = min(a.sizes[1], 3) if isinstance(a.sizes[1], int) else w.size(3)
    w.line(f"{part} = df.tanh({a.name}[:, :3])")
    w.line(
        f"{name} = 0.2 * {part}[:, :, None] * {part}[:, None, :] "
        f"+ df.eye(df.shape({part})[1], dtype=df.{a.dtype})"
    )
    return name, (a.sizes[0], size, size)


@production
def banded(w: Writer, s: Step) -> Value | None:
    """Diagonals and triangles."""
    a = w.pick(s.i, is_number, has_axes)
    if a is None:
        return None
    last, maximum = a.sizes[-1], max_size_of(a.sizes[-1])
    if s.k & 1:
        if a.rank != 2:
            return None
        least: Size = w.size(min(max_size_of(n) for n in a.sizes))
        if isinstance(a.sizes[0], int) and isinstance(a.sizes[1], int):
            least = min(a.sizes[0], a.sizes[1])
        texts: tuple[tuple[str, tuple[Size, ...]], ...] = (
            (f"df.linalg.band_part({a.name}, {s.j % 3 - 1}, {s.j // 3 % 3 - 1})", a.sizes),
            (f"df.linalg.diag_part({a.name})", (least,)),
            (f"df.linalg.trace({a.name})", ()),
            (f"df.linalg.set_diag({a.name}, df.linalg.diag_part({a.name}) + 1)", a.sizes),
        )
        text, sizes = texts[s.k // 2 % len(texts)]
        return w.assign(w.bound_values(text, a.dtype), a.dtype, sizes)
    size: Size = last if not s.k & 2 else (maximum + 1 if isinstance(last, int) else w.size(maximum + 1))
    if not w.is_small((*a.sizes[:-1], size, size)):
        return None
    return w.assign(f"df.linalg.diag({a.name}, k={s.k // 2 % 2})", a.dtype, (*a.sizes[:-1], size, size))


@production
def contracted(w: Writer, s: Step) -> Value | None:
    """Products of more than two axes, and of a matrix and a vector."""
    a = w.pick(s.i, is_wide_float, is_matrix)
    if a is None or w.domain == "whole" or max_size_of(a.sizes[1]) > 40:
        return None
    texts: tuple[tuple[str, tuple[Size, ...]], ...] = (
        ("df.einsum('ij,ik,il->jl', {0}, {0}, df.tanh({0}))", (a.sizes[1], a.sizes[1])),
        ("df.tensordot({0}, {0}, [[0], [0]])", (a.sizes[1], a.sizes[1])),
        ("df.linalg.matvec({0}, df.reduce_mean({0} + 1.0, 1), transpose_a=True)", (a.sizes[1],)),
        ("df.einsum('ij,ij->i', {0}, {0})", (a.sizes[0],)),
        ("df.einsum('ij,ik->ijk', {0}, {0})[:, 0]", a.sizes),
        ("df.matmul({0}[:, :, None], {0}[:, None, :])[:, :, -1]", a.sizes),
    )
    text, sizes = texts[s.k % (len(texts) if a.sizes[1] not in (0,) and isinstance(a.sizes[1], int) else 4)]
    if not w.is_small((*a.sizes, a.sizes[1])):
        return None
    return w.assign(w.bound_values(f"0.1 * {text.format(a.name)}", a.dtype), a.dtype, sizes)
