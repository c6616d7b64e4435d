"""Productions of ragged and sparse tensors, and of strings, that end as dense numbers."""

from __future__ import annotations

from .elementary import exact_sums, is_matrix, is_real, production
from .records import Step
from .sized import pick_for_data_dependent_size, rows, threshold
from .values import Value, max_size_of
from .writer import Writer

__all__ = ["ragged_rows"]


def has_long_words(value: Value) -> bool:
    """Whether the elements have 32 or 64 bits."""
    return value.dtype in ("float32", "float64", "int32", "int64")


@production
def ragged_rows(w: Writer, s: Step) -> Value | None:
    """Rows of data-dependent lengths, made of a mask of a matrix or of limits that a number sets."""
    a = pick_for_data_dependent_size(w, s.i, exact_sums, lambda v: v.rank in (1, 2), lambda v: v.is_signed)
    if a is None or w.in_vmap:
        return None
    ragged = w.name("ragged")
    n = rows(a)
    if a.rank == 2:
        w.line(f"{ragged} = df.ragged.boolean_mask({a.name}, {a.name} > {threshold(a, s.j)})")
        count, longest = a.sizes[0], w.size(max_size_of(a.sizes[1]))
    else:
        w.line(
            f"{ragged} = df.RaggedTensor.from_row_splits({a.name}, df.stack([0, {n} // 2, {n} // 2, {n}]))"
        )
        count, longest = 3, w.size(max_size_of(a.sizes[0]))
    total = w.size(a.max_elements)
    cases = (
        (f"df.reduce_sum({ragged}, 1)", a.dtype, (count,)),
        (f"{ragged}.to_tensor()", a.dtype, (count, longest)),
        (f"({ragged} + {ragged}).flat_values", a.dtype, (total,)),
        (f"df.cast({ragged}.row_lengths(), df.int32)", "int32", (count,)),
        (
            f"df.concat([{ragged}, {ragged}], 0)[1:].to_tensor()",
            a.dtype,
            (w.size(2 * max_size_of(count)), longest),
        ),
        (f"df.concat([{ragged}, {ragged}], 1).flat_values", a.dtype, (w.size(2 * a.max_elements),)),
        (f"({ragged} * df.ones([{ragged}.nrows(), 1], df.{a.dtype})).flat_values", a.dtype, (total,)),
        (f"{ragged}[:, :2].to_tensor()", a.dtype, (count, w.size(2))),
        (
            f"df.gather({ragged}, df.range({ragged}.nrows()) // 2).flat_values",
            a.dtype,
            (w.size(2 * a.max_elements),),
        ),
        (f"df.ragged.map_flat_values(lambda z: z * 2, {ragged}).values", a.dtype, (total,)),
        (
            f"df.map_fn(lambda z: df.reduce_sum(z) + 1, {ragged}, fn_output_signature=df.{a.dtype})",
            a.dtype,
            (count,),
        ),
        (f"{ragged}.value_rowids()", "int64", (total,)),
        (f"df.cast({ragged}.bounding_shape(), df.int32)", "int32", (2,)),
    )
    text, dtype, sizes = cases[s.k % len(cases)]
    return w.assign(w.bound_values(text, dtype), dtype, sizes) if w.is_small(sizes) else None


@production
def sparse_rows(w: Writer, s: Step) -> Value | None:
    """Nonzero elements of a matrix as a sparse tensor."""
    a = pick_for_data_dependent_size(w, s.i, exact_sums, is_matrix, has_long_words)
    if a is None or w.in_vmap:
        return None
    sparse = w.name("sparse")
    mask = f"df.cast({a.name} > {threshold(a, s.j)}, df.{a.dtype})"
    w.line(f"{sparse} = df.sparse.from_dense({a.name} * {mask})")
    total = w.size(a.max_elements)
    halves = f"df.sparse.slice({sparse}, [0, 0], [df.cast({rows(a)}, df.int64) // 2, 2])"
    two = w.size(max_size_of(a.sizes[0]) // 2)
    cases = (
        (f"{sparse}.values", a.dtype, (total,)),
        (f"df.sparse.reduce_sum({sparse}, 1)", a.dtype, (a.sizes[0],)),
        (f"df.sparse.to_dense(df.sparse.transpose({sparse}))", a.dtype, (a.sizes[1], a.sizes[0])),
        (f"df.sparse.to_dense(df.sparse.add({sparse}, {sparse}))", a.dtype, a.sizes),
        (f"df.sparse.to_dense({halves})", a.dtype, (two, w.size(2))),
        (
            f"df.sparse.to_dense(df.sparse.concat(0, [{sparse}, {sparse}]))[:2]",
            a.dtype,
            (w.size(2), a.sizes[1]),
        ),
        (f"df.sparse.to_dense(df.sparse.retain({sparse}, {sparse}.values > 0))", a.dtype, a.sizes),
        (f"df.sparse.to_dense(df.sparse.reshape({sparse}, [-1]))", a.dtype, (total,)),
        (f"df.cast({sparse}.indices, df.int32)", "int32", (total, 2)),
        (
            f"df.sparse.sparse_dense_matmul({sparse}, df.ones([df.shape({a.name})[1], 3], df.{a.dtype}))",
            a.dtype,
            (a.sizes[0], 3),
        ),
        (f"df.sparse.to_dense(df.sparse.softmax({sparse}))", a.dtype, a.sizes),
    )
    text, dtype, sizes = cases[s.k % (11 if a.is_float and w.domain == "smooth" else 10 if a.is_float else 9)]
    return w.assign(w.bound_values(text, dtype), dtype, sizes) if w.is_small(sizes) else None


@production
def words(w: Writer, s: Step) -> Value | None:
    """Strings of integers, and numbers that are read from them."""
    a = w.pick(s.i, lambda v: v.dtype in ("int32", "int64") and v.rank in (1, 2) and v.max_elements <= 3000)
    if a is None or w.in_vmap:
        return None
    text = w.name("text")
    w.line(f"{text} = df.strings.as_string({a.name})")
    cases = (
        (f"df.strings.to_number({text}, df.int32)", "int32", a.sizes),
        (f"df.strings.length({text})", "int32", a.sizes),
        (f"df.strings.length(df.strings.join([{text}, {text}], '-'))", "int32", a.sizes),
        (f"df.strings.to_hash_bucket_fast({text}, 9)", "int64", a.sizes),
        (f"df.cast({text} == '1', df.int32)", "int32", a.sizes),
        (f"df.strings.length(df.strings.reduce_join({text}, -1))", "int32", a.sizes[:-1]),
        (f"df.strings.length(df.sort(df.reshape({text}, [-1])))", "int32", (w.size(a.max_elements),)),
        (
            f"df.cast(df.strings.split(df.reshape({text}, [-1]), '-').row_lengths(), df.int32)",
            "int32",
            (w.size(a.max_elements),),
        ),
        (
            f"df.strings.length(df.concat([{text}, {text}[:1]], 0)[1:])",
            "int32",
            (w.size(max_size_of(a.sizes[0])), *a.sizes[1:]),
        ),
    )
    text, dtype, sizes = cases[s.k % len(cases)]
    return w.assign(w.bound_values(text, dtype), dtype, sizes)


@production
def drawn(w: Writer, s: Step) -> Value | None:
    """Random numbers of the shape of a value, by a seed that depends on the call."""
    a = w.pick(s.i, is_real)
    if a is None or w.in_vmap:
        return None
    shape, seed = f"df.shape({a.name})", f"[n, {s.j}]"
    whole = (
        (f"df.random.stateless_uniform({shape}, {seed}, -3, 4, df.int32)", "int32", a.sizes),
        (f"df.cast(df.floor(df.random.uniform({shape})), df.int32)", "int32", a.sizes),
        (f"df.cast(df.random.stateless_uniform({shape}, {seed}) > 0.5, df.int64)", "int64", a.sizes),
    )
    if w.domain == "whole":
        text, dtype, sizes = whole[s.k % 3]
        return w.assign(text, dtype, sizes)
    dtype = "float64" if s.k & 8 else "float32"
    smooth = (
        f"df.random.stateless_normal({shape}, {seed}, dtype=df.{dtype})",
        f"df.random.stateless_truncated_normal({shape}, {seed}, dtype=df.{dtype})",
        f"df.random.stateless_uniform({shape}, {seed}, -1.0, 1.0, dtype=df.{dtype})",
        f"df.random.stateless_gamma({shape}, {seed}, 2.0, dtype=df.{dtype})",
        f"df.cast(df.random.stateless_poisson({shape}, {seed}, 3.0), df.{dtype})",
    )
    return w.assign(w.bound_values(smooth[s.k % 5], dtype), dtype, a.sizes)
