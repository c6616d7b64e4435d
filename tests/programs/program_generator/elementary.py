"""Productions whose sizes follow from their inputs: elements, reductions, scans, arrangements, products."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import dualflow as df
from dualflow.ops.families import load_families
from dualflow.ops.op_kinds import Elementwise
from dualflow.ops.record import REGISTRY, Op

from .records import Step
from .values import DTYPES, DynamicSize, Size, Value, max_size_of
from .writer import Production, Writer

PRODUCTIONS: dict[str, Production] = {}
EXACT = ("abs", "negative", "sign", "square", "relu", "relu6", "floor", "round", "identity", "stop_gradient")
"""Elementwise ops of one input that keep whole numbers whole."""
EXACT_PAIRS = ("add", "subtract", "multiply", "maximum", "minimum", "squared_difference")
COMPARISONS = ("less", "less_equal", "greater", "equal", "not_equal")
REORDERED = ("floor", "ceil", "round", "trunc", "sign", "nextafter")
"""Ops of floats that jump: a rounding error before them is an error of 1 after them."""


def production(function: Production) -> Production:
    PRODUCTIONS[function.__name__] = function
    return function


def is_float(value: Value) -> bool:
    return value.is_float


def is_wide_float(value: Value) -> bool:
    return value.dtype in ("float32", "float64")


def is_real(value: Value) -> bool:
    return value.is_real


def is_number(value: Value) -> bool:
    return value.dtype != "bool"


def has_axes(value: Value) -> bool:
    return value.rank > 0


def is_matrix(value: Value) -> bool:
    return value.rank == 2


def exact_sums(value: Value) -> bool:
    """Whether sums of the value's elements are exact or smooth: a 16-bit float holds few numbers."""
    return value.dtype not in ("float16", "bfloat16") or value.max_elements <= 20


@cache
def smooth_elements(inputs: int) -> tuple[tuple[str, tuple[tuple[float, float], ...]], ...]:
    """Public elementwise ops of `inputs` float inputs, with the domains of their records' samples."""
    load_families()
    return tuple(
        (path, tuple((d.low, d.high) for d in op.samples[0].inputs))
        for op in REGISTRY.values()
        if (path := _public(op)) and op.name not in REORDERED and _is_smooth(op, inputs)
    )


def _is_smooth(op: Op, inputs: int) -> bool:
    sample = op.samples[0] if op.samples else None
    return (
        isinstance(op.kind, Elementwise)
        and sample is not None
        and not sample.attrs
        and len(sample.inputs) == inputs
        and all("f" in d.kinds and d.shape is None and d.values is None for d in sample.inputs)
        and op.vjp is not None
    )


def _public(op: Op) -> str | None:
    for path in ("df", "df.math", "df.nn"):
        if op.name in dir(df if path == "df" else getattr(df, path[3:])):
            return f"{path}.{op.name}"
    return None


def inside(w: Writer, value: Value, low: float, high: float) -> str:
    return f"df.clip_by_value({value.name}, {low}, {high})"


@production
def element(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, is_float if w.domain == "smooth" else is_real)
    if a is None:
        return None
    if w.domain == "whole":
        op = EXACT[s.k % len(EXACT)]
        if op in ("relu", "relu6") or not a.is_float:
            op = ("abs", "square", "sign")[s.k % 3]
        namespace = "nn." if op.startswith("relu") else ""
        return w.assign(w.bound_values(f"df.{namespace}{op}({a.name})", a.dtype), a.dtype, a.sizes)
    path, [(low, high)] = smooth_elements(1)[s.k % len(smooth_elements(1))]
    return w.assign(w.bound_values(f"{path}({inside(w, a, low, high)})", a.dtype), a.dtype, a.sizes)


@production
def pair(w: Writer, s: Step) -> Value | None:
    a, b = w.pick(s.i, is_float if w.domain == "smooth" else is_number), w.pick(s.j, is_number)
    if a is None or b is None:
        return None
    if w.domain == "whole":
        op = EXACT_PAIRS[s.k % (3 if "complex" in a.dtype else 5)]
        text = f"df.{op}({a.name}, {w.as_broadcastable(b, a)})"
        if "complex" in a.dtype:
            real = w.bound_values(f"df.math.real({text})", "float64")
            text = f"df.complex({real}, df.zeros_like(df.math.real({a.name})))"
            return w.assign(f"df.cast({text}, df.{a.dtype})", a.dtype, a.sizes)
        return w.assign(w.bound_values(text, a.dtype), a.dtype, a.sizes)
    path, [(low, high), (low2, high2)] = smooth_elements(2)[s.k % len(smooth_elements(2))]
    other = f"df.clip_by_value({w.as_broadcastable(b, a)}, {low2}, {high2})"
    return w.assign(w.bound_values(f"{path}({inside(w, a, low, high)}, {other})", a.dtype), a.dtype, a.sizes)


@production
def compared(w: Writer, s: Step) -> Value | None:
    a, b = w.pick(s.i, is_real), w.pick(s.j, is_real)
    if a is None or b is None or w.domain == "smooth":
        return None
    return w.assign(f"df.{COMPARISONS[s.k % 5]}({a.name}, {w.as_broadcastable(b, a)})", "bool", a.sizes)


@production
def chosen(w: Writer, s: Step) -> Value | None:
    a, b = w.pick(s.i, is_real), w.pick(s.j, is_real)
    if a is None or b is None:
        return None
    return w.assign(
        f"df.where({a.name} > {0.1234 if a.is_float else s.k % 3}, {a.name}, {w.as_broadcastable(b, a)})",
        a.dtype,
        a.sizes,
    )


@production
def quotient(w: Writer, s: Step) -> Value | None:
    a, b = w.pick(s.i, lambda v: v.is_integer), w.pick(s.j, lambda v: v.is_integer)
    if a is None or b is None or w.domain == "smooth":
        return None
    divisor = w.bound_values(f"df.abs({w.as_broadcastable(b, a)})", a.dtype)
    return w.assign(f"{a.name} {('//', '%')[s.k % 2]} ({divisor} + 1)", a.dtype, a.sizes)


@production
def cast(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, lambda v: "complex" not in v.dtype)
    if a is None:
        return None
    dtypes = ("float32", "float64") if w.domain == "smooth" else DTYPES
    dtype = dtypes[s.k % len(dtypes)]
    text = f"df.abs({a.name})" if dtype.startswith("u") and a.is_signed else a.name
    return w.assign(f"df.cast({text}, df.{dtype})", dtype, a.sizes)


REDUCTIONS = ("sum", "max", "min", "mean", "logsumexp", "variance", "prod")


@production
def reduction(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, is_float if w.domain == "smooth" else is_real, exact_sums)
    if a is None:
        return None
    axes = [x for x in range(a.rank) if s.j >> x & 1]
    names = REDUCTIONS[:3] if w.domain == "whole" else REDUCTIONS[:6]
    name, keep = names[s.k % len(names)], bool(s.k & 8)
    if name != "sum" and any(max_size_of(a.sizes[x]) == 0 for x in axes or range(a.rank)):
        name = "sum"
    text = f"df.reduce_{name}({a.name}, {axes or None}, keepdims={keep})"
    gone = set(axes or range(a.rank))
    sizes = tuple(1 if x in gone else n for x, n in enumerate(a.sizes) if keep or x not in gone)
    if name in ("max", "min"):  # of no elements: the least or greatest number
        text = w.bound_values(text, a.dtype)
    elif name in ("variance", "mean"):
        text = f"df.where(df.math.is_finite({text}), {text}, 0.0)"
    elif name == "logsumexp":
        text = f"df.clip_by_value({text}, -50.0, 50.0) * 0.1"
    else:
        text = w.bound_values(text + (" * 0.3" if w.domain == "smooth" else ""), a.dtype)
    return w.assign(text, a.dtype, sizes)


@production
def truth(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, lambda v: v.dtype == "bool", has_axes)
    if a is None:
        return None
    axis = s.j % a.rank
    sizes = tuple(n for x, n in enumerate(a.sizes) if x != axis)
    return w.assign(f"df.reduce_{('any', 'all')[s.k % 2]}({a.name}, {axis})", "bool", sizes)


@production
def centred(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, is_float, exact_sums, has_axes)
    if a is None or w.domain == "whole":
        return None
    axis = s.j % a.rank
    names = (
        "df.nn.softmax({0}, axis={1})",
        "df.nn.log_softmax({0}, axis={1}) * 0.2",
        "df.math.l2_normalize({0} + 2.5, axis={1})",
        "{0} - df.reduce_mean({0}, axis={1}, keepdims=True)",
        "{0} - df.nn.moments({0}, [{1}], keepdims=True)[0]",
    )
    return w.assign(names[s.k % 5].format(a.name, axis), a.dtype, a.sizes)


@production
def place(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, is_real, has_axes)
    if a is None or w.domain == "smooth":
        return None
    axis = s.j % a.rank
    if not isinstance(a.sizes[axis], int) or a.sizes[axis] == 0:
        return None
    sizes = tuple(n for x, n in enumerate(a.sizes) if x != axis)
    return w.assign(f"df.arg{('max', 'min')[s.k % 2]}({a.name}, axis={axis})", "int64", sizes)


@production
def running(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, is_float if w.domain == "smooth" else is_real, has_axes, exact_sums)
    if a is None:
        return None
    axis, more = s.j % a.rank, f"exclusive={bool(s.k & 1)}, reverse={bool(s.k & 2)}"
    if w.domain == "smooth" and s.k & 4:
        return w.assign(
            w.bound_values(f"df.math.cumprod({a.name} * 0.1 + 1.0, {axis}, {more})", a.dtype),
            a.dtype,
            a.sizes,
        )
    return w.assign(w.bound_values(f"df.cumsum({a.name}, {axis}, {more})", a.dtype), a.dtype, a.sizes)


@production
def ordered(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, is_real, has_axes)
    if a is None:
        return None
    axis = s.j % a.rank
    direction = ("ASCENDING", "DESCENDING")[s.k % 2]
    if s.k & 2 and w.domain == "whole":
        return w.assign(f"df.argsort({a.name}, {axis}, '{direction}')", "int32", a.sizes)
    return w.assign(f"df.sort({a.name}, {axis}, '{direction}')", a.dtype, a.sizes)


@production
def transposed(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, has_axes)
    if a is None:
        return None
    order = list(range(a.rank))
    order = order[s.k % a.rank :] + order[: s.k % a.rank]
    return w.assign(f"df.transpose({a.name}, {order})", a.dtype, tuple(a.sizes[x] for x in order))


@production
def turned(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, has_axes)
    if a is None:
        return None
    axis = s.j % a.rank
    texts = (
        f"df.reverse({a.name}, [{axis}])",
        f"df.roll({a.name}, {s.k % 4 - 1}, {axis})",
        f"{a.name}[::-1]",
    )
    return w.assign(texts[s.k % 3], a.dtype, a.sizes)


@production
def another_axis(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, lambda v: v.rank < 4)
    if a is None:
        return None
    if a.rank and a.sizes[0] == 1 and s.k & 1:
        return w.assign(f"df.squeeze({a.name}, [0])", a.dtype, a.sizes[1:])
    axis = s.j % (a.rank + 1)
    return w.assign(f"df.expand_dims({a.name}, {axis})", a.dtype, (*a.sizes[:axis], 1, *a.sizes[axis:]))


@production
def indexed(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, has_axes)
    if a is None:
        return None
    axis = s.j % a.rank
    size = a.sizes[axis]
    if isinstance(size, DynamicSize) or size == 0:
        return None
    index = s.k % size
    key = ", ".join([*[":"] * axis, str(index if s.k & 16 else index - size)])
    return w.assign(f"{a.name}[{key}]", a.dtype, tuple(n for x, n in enumerate(a.sizes) if x != axis))


@production
def stacked(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, lambda v: v.rank < 4)
    if a is None or not w.is_small((2, *a.sizes)):
        return None
    b = w.pick(s.j, lambda v: (v.dtype, v.sizes) == (a.dtype, a.sizes)) or a
    axis = s.k % (a.rank + 1)
    return w.assign(f"df.stack([{a.name}, {b.name}], {axis})", a.dtype, (*a.sizes[:axis], 2, *a.sizes[axis:]))


@production
def product(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, is_float if w.domain == "smooth" else is_real, is_matrix, exact_sums)
    if a is None:
        return None
    b = (
        w.pick(s.j, lambda v: v.dtype == a.dtype and v.rank == 2 and v.sizes[0] == a.sizes[1])
        if s.k & 4
        else None
    )
    sizes: tuple[Size, ...]
    if b is not None:
        text, sizes = f"df.matmul({a.name}, {b.name})", (a.sizes[0], b.sizes[1])
    elif s.k & 1:
        text, sizes = f"df.matmul({a.name}, {a.name}, transpose_b=True)", (a.sizes[0], a.sizes[0])
    elif s.k & 2:
        text, sizes = f"df.einsum('ij,ik->jk', {a.name}, {a.name})", (a.sizes[1], a.sizes[1])
    else:
        text, sizes = f"df.matmul({a.name}, {a.name}, transpose_a=True)", (a.sizes[1], a.sizes[1])
    work = Value("", "", (*sizes, a.sizes[1] if b is not None or s.k & 1 else a.sizes[0])).max_elements
    if not w.is_small(sizes) or work > 1_000_000:
        return None
    return w.assign(
        w.bound_values(text + (" * 0.1" if w.domain == "smooth" else ""), a.dtype), a.dtype, sizes
    )


@production
def complex_parts(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, is_wide_float)
    c = w.pick(s.j, lambda v: "complex" in v.dtype)
    if c is not None and s.k & 1:
        dtype = "float32" if c.dtype == "complex64" else "float64"
        parts = ("df.math.real({0})", "df.math.imag({0})", "df.math.real({0} * df.math.conj({0}))")
        return w.assign(w.bound_values(parts[s.k // 2 % 3].format(c.name), dtype), dtype, c.sizes)
    if a is None:
        return None
    return w.assign(
        f"df.complex({a.name}, {a.name} * 2.0)",
        "complex64" if a.dtype == "float32" else "complex128",
        a.sizes,
    )


@production
def from_numpy(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, lambda v: v.dtype in ("float32", "int32"))
    if a is None or w.in_vmap or s.k % 4:
        return None
    value = w.assign(
        f"df.numpy_function(lambda z: z[::-1].copy() if z.ndim else z, [{a.name}], df.{a.dtype})",
        a.dtype,
        a.sizes,
    )
    w.line(f"{value.name} = df.stop_gradient(df.reshape({value.name}, df.shape({a.name})))")
    return value


Fits = Callable[[Value], bool]
