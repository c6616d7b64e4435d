"""Productions that group, count and look up elements: segments, bins, sorted rows, tables, embeddings."""

from __future__ import annotations

from .elementary import (
    exact_sums,
    has_axes,
    is_float,
    is_matrix,
    is_number,
    is_real,
    is_wide_float,
    production,
)
from .records import Step
from .sized import rows
from .values import Size, Value, max_size_of
from .writer import Writer

__all__ = ["segmented"]

TABLE = (
    "table = df.lookup.StaticHashTable(df.lookup.KeyValueTensorInitializer("
    "df.constant([0, 1, 2, 4], df.int64), df.constant([7, 5, -3, 1], df.int64)), -1)"
)


def is_index(value: Value) -> bool:
    return value.dtype in ("int32", "int64") and value.rank == 1


@production
def segmented(w: Writer, s: Step) -> Value | None:
    """Sums, means, extremes and products of runs of rows, or of rows that a number assigns to one of some."""
    a = w.pick(s.i, is_float if w.domain == "smooth" else is_real, has_axes, exact_sums)
    if a is None or w.in_vmap:
        return None
    n, maximum = rows(a), max_size_of(a.sizes[0])
    names = ("sum", "max", "min", "sum", "mean", "prod")[: 4 if w.domain == "whole" else 6]
    name = names[s.k % len(names)]
    if name in ("max", "min") and not s.j & 1:
        name = "sum"  # of no rows, the extremes are those of the dtype
    if s.j & 1:
        size: Size = -(-maximum // 2) if isinstance(a.sizes[0], int) else w.size(-(-maximum // 2))
        text = f"df.math.segment_{name}({a.name}, df.range({n}) // 2)"
    else:
        size = w.size(maximum + 1) if s.j & 2 else 3
        count = f"{n} + 1" if s.j & 2 else "3"
        text = f"df.math.unsorted_segment_{name}({a.name}, df.range({n}) * 5 % 3, {count})"
    if name == "prod":
        text = f"0.5 * {text}"
    return w.assign(w.bound_values(text, a.dtype), a.dtype, (size, *a.sizes[1:]))


@production
def counted_values(w: Writer, s: Step) -> Value | None:
    """Counts of small integers, and of floats in bins; positions of values among sorted ones."""
    a = w.pick(s.i, is_index)
    if a is None or w.in_vmap:
        return None
    small = f"df.cast(df.math.abs({a.name}) % 7, df.int32)"
    cases: tuple[tuple[str, str, tuple[Size, ...]], ...] = (
        (f"df.math.bincount({small}, minlength=7)", "int32", (7,)),
        (f"df.math.bincount({small})", "int32", (w.size(7),)),
        (f"df.histogram_fixed_width({a.name}, [-4, 5], 6)", "int32", (6,)),
        (f"df.searchsorted(df.sort({a.name}), {a.name})", "int32", a.sizes),
        (f"df.math.confusion_matrix({small}, {small}, 7)", "int32", (7, 7)),
        (f"df.math.invert_permutation(df.argsort({a.name}, stable=True))", "int32", a.sizes),
        (f"df.meshgrid({a.name}, df.range(3))[1]", "int32", (3, *a.sizes)),
        (
            f"df.cast(df.sparse.to_dense(df.sets.union({a.name}[None], {a.name}[None] % 2))[0], df.int64)",
            "int64",
            (w.size(2 * max_size_of(a.sizes[0])),),
        ),
        (f"df.reverse_sequence({a.name}[None], [df.shape({a.name})[0] // 2], 1)[0]", a.dtype, a.sizes),
    )
    text, dtype, sizes = cases[s.k % len(cases)]
    if text.startswith("df.cast(df.sparse") and w.static_sizes_only:
        return None
    return w.assign(w.bound_values(text, dtype), dtype, sizes)


@production
def looked_up(w: Writer, s: Step) -> Value | None:
    """Values of a hash table, and rows of an embedding."""
    a = w.pick(s.i, is_index)
    if a is None or w.in_vmap:
        return None
    if s.k & 1:
        w.declare(TABLE)
        return w.assign(f"table.lookup(df.cast({a.name}, df.int64))", "int64", a.sizes)
    b = w.pick(s.j, is_number, has_axes)
    if b is None or not w.is_small((*a.sizes, *b.sizes[1:])):
        return None
    table = f"df.pad({b.name}, {[[1, 0], *[[0, 0]] * (b.rank - 1)]})"
    ids = f"df.math.abs({a.name}) % (df.cast({rows(b)}, {a.name}.dtype) + 1)"
    return w.assign(f"df.nn.embedding_lookup({table}, {ids})", b.dtype, (*a.sizes, *b.sizes[1:]))


@production
def losses(w: Writer, s: Step) -> Value | None:
    """Losses of rows of logits."""
    a = w.pick(s.i, is_wide_float, is_matrix)
    if a is None or w.domain == "whole":
        return None
    classes = a.sizes[1]
    if not isinstance(classes, int) or not classes:
        return None
    labels = f"df.range(df.shape({a.name})[0]) % {classes}"
    one_hot = f"df.one_hot({labels}, {classes}, dtype=df.{a.dtype})"
    texts = (
        f"df.nn.sparse_softmax_cross_entropy_with_logits({labels}, {a.name})",
        f"df.nn.softmax_cross_entropy_with_logits({one_hot}, {a.name})",
        f"df.reduce_mean(df.nn.sigmoid_cross_entropy_with_logits({a.name} * 0.0 + 0.5, {a.name}), 1)",
        f"df.reduce_logsumexp({a.name}, 1)",
        f"df.math.reduce_euclidean_norm({a.name} + 3.0, 1)",
        f"df.math.cumulative_logsumexp({a.name}, 0)[:, 0]",
    )
    return w.assign(w.bound_values(texts[s.k % len(texts)], a.dtype), a.dtype, a.sizes[:1])
