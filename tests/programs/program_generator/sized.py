"""Productions of sizes that data or numbers decide at run time, and of what reads and joins such values."""

from __future__ import annotations

from .elementary import exact_sums, has_axes, is_float, is_number, is_real, production
from .records import Step
from .values import Size, Value, max_size_of
from .writer import Writer

__all__ = ["concatenated"]


def rows(value: Value) -> str:
    """An expression for the number of rows."""
    return f"df.shape({value.name})[0]"


def threshold(a: Value, k: int) -> float:
    """A number that some elements exceed; in floats, none that sums or differences of them easily are."""
    if a.is_float:
        return (0.1234, -0.4321, 1.2345)[k % 3]
    return (0, 2, 3)[k % 3] if a.dtype.startswith("u") else (0, -2, 3)[k % 3]


def row_mask(w: Writer, a: Value, k: int) -> str:
    """An expression for one bool per row."""
    limit = threshold(a, k)
    values = a.name if a.rank == 1 else f"df.reduce_sum({a.name}, {list(range(1, a.rank))})"
    return f"{values} > {limit}"


def pick_for_data_dependent_size(w: Writer, i: int, *predicates: object) -> Value | None:
    return None if w.static_sizes_only else w.pick(i, is_real, has_axes, *predicates)  # type: ignore[arg-type]


@production
def masked(w: Writer, s: Step) -> Value | None:
    a = pick_for_data_dependent_size(w, s.i, exact_sums)
    if a is None:
        return None
    mask = row_mask(w, a, s.j)
    texts = (
        f"{a.name}[{mask}]",
        f"df.boolean_mask({a.name}, {mask})",
        f"df.gather({a.name}, df.where({mask})[:, 0])",
    )
    return w.assign(texts[s.k % 3], a.dtype, (w.size(max_size_of(a.sizes[0])), *a.sizes[1:]))


@production
def masked_elements(w: Writer, s: Step) -> Value | None:
    a = pick_for_data_dependent_size(w, s.i)
    if a is None:
        return None
    return w.assign(f"{a.name}[{a.name} > {threshold(a, s.k)}]", a.dtype, (w.size(a.max_elements),))


@production
def positions(w: Writer, s: Step) -> Value | None:
    a = pick_for_data_dependent_size(w, s.i)
    if a is None or not w.is_small((a.max_elements, a.rank)):
        return None
    return w.assign(f"df.where({a.name} > {threshold(a, s.k)})", "int64", (w.size(a.max_elements), a.rank))


@production
def distinct(w: Writer, s: Step) -> Value | None:
    a = pick_for_data_dependent_size(w, s.i)
    if a is None:
        return None
    flat = f"df.reshape({w.as_dtype(a, 'int32') if a.is_float else a.name}, [-1])"
    dtype = "int32" if a.is_float else a.dtype
    first, place = w.name(), w.name()
    size, flat_size = w.size(a.max_elements), a.sizes[0] if a.rank == 1 else w.size(a.max_elements)
    if s.k & 1:
        count = w.name()
        w.line(f"{first}, {place}, {count} = df.unique_with_counts({flat})")
        w.scope.append(Value(count, "int32", (size,)))
    else:
        w.line(f"{first}, {place} = df.unique({flat})")
    w.scope += [Value(first, dtype, (size,)), Value(place, "int32", (flat_size,))]
    if s.k & 2:
        return w.assign(f"df.gather({first}, {place})", dtype, (flat_size,))
    return w.scope[-1]


@production
def cut(w: Writer, s: Step) -> Value | None:
    """A part of the rows; ``n`` is a number of the call."""
    a = w.pick(s.i, has_axes)
    if a is None:
        return None
    keys = ("1:", ":-1", "::2", f"{rows(a)} // 2:", ":n", "n:", "-2:", "::-2", f":{rows(a)} - 1", "-n:")
    key = keys[s.k % (len(keys) if not w.in_vmap else 3)]
    axis = s.j % a.rank if "shape" not in key else 0
    maximum = max_size_of(a.sizes[axis])
    size: Size = w.size(maximum)
    if isinstance(a.sizes[axis], int) and key in ("1:", ":-1", "::2", "::-2"):
        bounds = [int(x) if x else None for x in [*key.split(":"), ""][:3]]
        size = len(range(maximum)[slice(*bounds)])
    return w.assign(
        f"{a.name}[{', '.join([*[':'] * axis, key])}]", a.dtype, (*a.sizes[:axis], size, *a.sizes[axis + 1 :])
    )


@production
def counted(w: Writer, s: Step) -> Value | None:
    dtype = ("int32", "int64", "float32", "float64")[s.k % 4]
    dtype = "float32" if w.domain == "smooth" else dtype
    scale = " * 0.1" if w.domain == "smooth" else ""
    a = w.pick(s.i, has_axes)
    if a is None or s.j & 1:
        return (
            w.assign(f"df.cast(df.range(n), df.{dtype}){scale}", dtype, (w.size(12),))
            if not w.in_vmap
            else None
        )
    value = w.assign(f"df.cast(df.range({rows(a)}), df.{dtype}){scale}", dtype, (a.sizes[0],))
    if max_size_of(a.sizes[0]) > 9 and not scale:
        w.line(f"{value.name} = {w.bound_values(value.name, dtype)}")
    return value


@production
def concatenated(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, has_axes)
    if a is None:
        return None
    axis = s.j % a.rank
    others = [n for x, n in enumerate(a.sizes) if x != axis]
    b = w.pick(
        s.j,
        lambda v: (
            v.dtype == a.dtype
            and v.rank == a.rank
            and [n for x, n in enumerate(v.sizes) if x != axis] == others
        ),
    )
    b = b or a
    total = max_size_of(a.sizes[axis]) + max_size_of(b.sizes[axis])
    static = isinstance(a.sizes[axis], int) and isinstance(b.sizes[axis], int)
    sizes = (*a.sizes[:axis], total if static else w.size(total), *a.sizes[axis + 1 :])
    return w.assign(f"df.concat([{a.name}, {b.name}], {axis})", a.dtype, sizes) if w.is_small(sizes) else None


@production
def lengthened(w: Writer, s: Step) -> Value | None:
    """Padding, tiles and repeats along one axis, by numbers or by values of the data."""
    a = w.pick(s.i, has_axes, is_number)
    if a is None:
        return None
    axis, count = s.j % a.rank, s.k // 8 % 3
    maximum = max_size_of(a.sizes[axis])
    static = isinstance(a.sizes[axis], int)
    pads = [[0, 0]] * a.rank
    pads[axis] = [count, 1]
    tiles = [1] * a.rank
    tiles[axis] = count
    dynamic = f"[{', '.join('n' if x == axis else '1' for x in range(a.rank))}]"
    cases: list[tuple[str, int, bool]] = [
        (f"df.pad({a.name}, {pads})", maximum + count + 1, static),
        (f"df.tile({a.name}, {tiles})", maximum * count, static),
        (f"df.repeat({a.name}, {count}, {axis})", maximum * count, static),
    ]
    if not w.in_vmap:
        cases.append((f"df.tile({a.name}, {dynamic})", maximum * 12, False))
        cases.append((f"df.repeat({a.name}, n, {axis})", maximum * 12, False))
        if a.is_real and not w.static_sizes_only:
            cases.append(
                (
                    f"df.repeat({a.name}, df.cast({row_mask(w, a, count)}, df.int32) + {count}, 0)",
                    max_size_of(a.sizes[0]) * 3,
                    False,
                )
            )
    text, total, fixed = cases[s.k % len(cases)]
    axis = 0 if text.endswith(", 0)") else axis
    sizes = (*a.sizes[:axis], total if fixed else w.size(total), *a.sizes[axis + 1 :])
    return w.assign(text, a.dtype, sizes) if w.is_small(sizes) else None


@production
def flattened(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, has_axes)
    if a is None:
        return None
    static = all(isinstance(n, int) for n in a.sizes)
    flat: Size = a.max_elements if static else (a.sizes[0] if a.rank == 1 else w.size(a.max_elements))
    if s.k & 1 and isinstance(a.sizes[-1], int) and a.sizes[-1]:
        first: Size = a.max_elements // a.sizes[-1] if static else w.size(a.max_elements // a.sizes[-1])
        first = a.sizes[0] if a.rank == 2 else first
        return w.assign(f"df.reshape({a.name}, [-1, {a.sizes[-1]}])", a.dtype, (first, a.sizes[-1]))
    if s.k & 2:
        return w.assign(
            f"df.reshape({a.name}, df.concat([df.shape({a.name}), [1]], 0))", a.dtype, (*a.sizes, 1)
        )
    return w.assign(f"df.reshape({a.name}, [-1])", a.dtype, (flat,))


@production
def gathered(w: Writer, s: Step) -> Value | None:
    """Rows at computed positions; of no rows, the positions are outside and the call fails in both modes."""
    a, b = w.pick(s.i, has_axes), w.pick(s.j, lambda v: v.dtype in ("int32", "int64") and v.rank == 1)
    if a is None or b is None or (w.in_vmap and not isinstance(a.sizes[0], int)) or a.sizes[0] == 0:
        return None
    sizes = (b.sizes[0], *a.sizes[1:])
    size = f"df.cast({rows(a)}, {b.name}.dtype)"
    positions = f"df.math.abs({b.name}) % df.maximum({size}, 1)"
    return w.assign(f"df.gather({a.name}, {positions})", a.dtype, sizes) if w.is_small(sizes) else None


@production
def scattered(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, is_float if w.domain == "smooth" else is_number, has_axes, exact_sums)
    if a is None or w.in_vmap or "bool" in a.dtype:
        return None
    tail = f"df.shape({a.name})[1:]"
    n, maximum = rows(a), max_size_of(a.sizes[0])
    places = (f"df.range({n})[:, None] + 1", f"df.range({n})[:, None] // 2")[s.k % 2]
    taller = f"df.zeros(df.concat([[{n} + 2], {tail}], 0), df.{a.dtype})"
    size: Size = maximum + 2 if isinstance(a.sizes[0], int) else w.size(maximum + 2)
    texts = (
        f"df.tensor_scatter_nd_add({taller}, {places}, {a.name})",
        f"df.scatter_nd({places}, {a.name}, df.concat([[{n} + 2], {tail}], 0))",
        f"df.tensor_scatter_nd_update({taller}, df.range({n})[:, None] + 1, {a.name})",
    )
    if s.k & 16:
        mixed = f"(df.range({n}) * 7 % df.maximum({n}, 1))[:, None]"
        texts = (f"df.tensor_scatter_nd_add({a.name}, {mixed}, {a.name})",) * 3
        size = a.sizes[0]
    text = texts[s.k // 2 % 3]
    if "complex" not in a.dtype and s.k & 8:
        text, size = f"df.math.unsorted_segment_sum({a.name}, df.range({n}) % 3, 3)", 3
    return w.assign(w.bound_values(text, a.dtype), a.dtype, (size, *a.sizes[1:]))


@production
def partitioned(w: Writer, s: Step) -> Value | None:
    a = pick_for_data_dependent_size(w, s.i, exact_sums)
    if a is None:
        return None
    parts = w.name()
    w.line(f"{parts} = df.dynamic_partition({a.name}, df.cast({row_mask(w, a, s.j)}, df.int32), 2)")
    if s.k & 1:
        where = f"df.dynamic_partition(df.range({rows(a)}), df.cast({row_mask(w, a, s.j)}, df.int32), 2)"
        stitched = f"df.dynamic_stitch({where}, {parts})"
        return w.assign(stitched, a.dtype, (w.size(max_size_of(a.sizes[0])), *a.sizes[1:]))
    return w.assign(f"{parts}[{s.k // 2 % 2}]", a.dtype, (w.size(max_size_of(a.sizes[0])), *a.sizes[1:]))


@production
def fitted_rows(w: Writer, s: Step) -> Value | None:
    """Two values of different lengths, cut to the smaller one and added."""
    a = w.pick(s.i, is_number, has_axes)
    b = a and w.pick(s.j, lambda v: v.dtype == a.dtype and v.rank == a.rank and v.sizes[1:] == a.sizes[1:])
    if a is None or b is None or w.in_vmap or "complex" in a.dtype:
        return None
    least = f"df.minimum({rows(a)}, {rows(b)})"
    size = w.size(min(max_size_of(a.sizes[0]), max_size_of(b.sizes[0])))
    op = ("+", "*", "-")[s.k % 3]
    return w.assign(
        w.bound_values(f"{a.name}[:{least}] {op} {b.name}[:{least}]", a.dtype), a.dtype, (size, *a.sizes[1:])
    )


@production
def largest_rows(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, is_real, has_axes)
    if a is None or w.in_vmap:
        return None
    k, size = (
        f"df.minimum(df.shape({a.name})[-1], {s.k % 4})",
        w.size(min(max_size_of(a.sizes[-1]), s.k % 4)),
    )
    return w.assign(f"df.math.top_k({a.name}, {k})[0]", a.dtype, (*a.sizes[:-1], size))


@production
def sequence(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, lambda v: v.dtype in ("int32", "int64") and v.rank == 1)
    if a is None or w.in_vmap:
        return None
    if s.k & 1:
        return w.assign(
            f"df.cast(df.sequence_mask(df.math.abs({a.name}) % 4, 3), df.float32)", "float32", (*a.sizes, 3)
        )
    return w.assign(f"df.one_hot(df.math.abs({a.name}) % 4, 3)", "float32", (*a.sizes, 3))
