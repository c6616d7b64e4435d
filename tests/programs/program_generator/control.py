"""Productions with steps inside: loops, conditionals, ``vmap``, derivatives, inner functions."""

from __future__ import annotations

from .elementary import has_axes, is_float, is_number, production
from .records import Step
from .sized import rows
from .values import DynamicSize, Value, max_size_of
from .writer import Writer

__all__ = ["repeated"]


def carried(w: Writer, s: Step) -> Value | None:
    """What a loop changes: a value that few iterations keep small."""
    return None if w.depth > 3 else w.pick(s.i, is_number)


def condition(w: Writer, s: Step) -> str:
    """A scalar bool known only at run time."""
    a = w.pick(s.j, lambda v: v.is_real)
    if a is None or s.k & 1:
        return f"n > {s.k // 2 % 4}"
    limit = 0.1234 if a.is_float else s.k // 2 % 4
    return f"df.reduce_sum({a.name}) > {limit}"


@production
def repeated(w: Writer, s: Step) -> Value | None:
    """``for _ in df.range(n)``, converted by AutoGraph, or ``df.while_loop``."""
    a = carried(w, s)
    if a is None or w.in_vmap:
        return None
    iterations = ("n", "3", "df.minimum(n, 2)", "0")[s.k // 4 % 4]
    if s.k & 1:
        value = w.assign(a.name, a.dtype, a.sizes)
        i = w.name("i")
        with w.block(f"for {i} in df.range({iterations}):"):
            w.scope.append(Value(i, "int32", ()))
            w.steps(s.body)
            w.line(f"{value.name} = {w.last(value).name}")
        return value
    i, x = w.name("i"), Value(w.name("x"), a.dtype, a.sizes)
    name, _ = w.function([Value(i, "int32", ()), x], s.body, x)
    text = (
        f"df.while_loop(lambda i, x: i < {iterations}, lambda i, x: (i + 1, {name}(i, x)), "
        f"(df.constant(0), {a.name}))[1]"
    )
    return w.assign(text, a.dtype, a.sizes)


@production
def growing(w: Writer, s: Step) -> Value | None:
    """A loop whose value changes its first size from one iteration to the next."""
    a = w.pick(s.i, has_axes)
    if a is None or w.depth > 1 or w.in_vmap or w.static_sizes_only:
        return None
    maximum = max_size_of(a.sizes[0]) * 4 + 40
    if not w.is_small((maximum, *a.sizes[1:])):
        return None
    x = Value(w.name("x"), a.dtype, (w.size(maximum), *a.sizes[1:]))
    i = w.name("i")
    name = w.name("f")
    with w.block(f"def {name}({i}, {x.name}):"):
        w.scope += [Value(i, "int32", ()), x]
        w.steps(s.body)
        operand = w.last(x, growing=True)
        longer = f"df.concat([{operand.name}, {a.name}[:1]], 0)" if s.k & 1 else f"{operand.name}[1:]"
        w.line(f"return ({operand.name if s.k & 2 and operand is not x else longer})[:{maximum}]")
    shape = f"[{', '.join(['None', *[str(n) if isinstance(n, int) else 'None' for n in a.sizes[1:]]])}]"
    text = (
        f"df.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, {name}(i, x)), (df.constant(0), {a.name}), "
        f"shape_invariants=([], {shape}))[1]"
    )
    return w.assign(text, a.dtype, (w.size(maximum), *a.sizes[1:]))


@production
def branched(w: Writer, s: Step) -> Value | None:
    """A conditional; its branches may give different numbers of rows."""
    a = w.pick(s.i, has_axes if s.k & 8 else is_number)
    if a is None or w.depth > 3:
        return None
    grows = bool(s.k & 8) and not w.static_sizes_only
    test = condition(w, s)
    if s.k & 16:
        value = Value(w.name(), a.dtype, a.sizes)
        results = []
        for header, body in ((f"if {test}:", s.body), ("else:", s.otherwise)):
            with w.block(header):
                w.steps(body)
                results.append(w.last(a, growing=grows))
                w.line(f"{value.name} = {results[-1].name}")
    else:
        names = []
        results = []
        for body in (s.body, s.otherwise):
            name = w.name("f")
            with w.block(f"def {name}():"):
                w.steps(body)
                results.append(w.last(a, growing=grows))
                w.line(f"return {results[-1].name}")
            names.append(name)
        value = Value(w.name(), a.dtype, a.sizes)
        w.line(f"{value.name} = df.cond({test}, {names[0]}, {names[1]})")
    if any(r.sizes != a.sizes for r in results):
        maximum = max(max_size_of(r.sizes[0]) for r in results)
        value = Value(value.name, a.dtype, (w.size(maximum), *a.sizes[1:]))
    w.scope.append(value)
    return value


@production
def mapped(w: Writer, s: Step) -> Value | None:
    """``vmap`` over rows; the checks replace it by a Python loop over rows."""
    a = w.pick(s.i, has_axes, is_number)
    if a is None or w.depth > 2 or max_size_of(a.sizes[0]) > 40 or not s.body:
        return None
    before, w.static_sizes_only = w.static_sizes_only, True
    w.in_vmap += 1
    outer, w.scope = w.scope, []
    row = Value(w.name("x"), a.dtype, a.sizes[1:])
    name, result = w.function([row], s.body)
    w.scope = outer
    w.in_vmap -= 1
    w.static_sizes_only = before
    if a.sizes[0] == 0:
        return None
    sizes = (a.sizes[0], *result.sizes)
    return w.assign(f"vmap({name})({a.name})", result.dtype, sizes) if w.is_small(sizes) else None


@production
def differentiated(w: Writer, s: Step) -> Value | None:
    """A derivative inside the program: by ``grad``, ``jvp``, or a tape, maybe of recomputed steps."""
    a = w.pick(s.i, is_float)
    if a is None or w.depth > 2 or not s.body:
        return None
    x = Value(w.name("x"), a.dtype, a.sizes)
    name, result = w.function([x], s.body)
    if not result.is_float:
        return None
    inner = f"df.recompute_grad({name})" if s.k & 8 and not w.in_vmap else name
    texts = (
        f"df.autodiff.grad(lambda z: df.reduce_sum({inner}(z)))({a.name})",
        f"df.autodiff.jvp({name}, [{a.name}], [df.ones_like({a.name})])[1]",
        f"df.autodiff.vjp({inner}, {a.name})[1](df.ones_like({inner}({a.name})))[0]",
    )
    k = s.k % 3
    kind = result.dtype if k == 1 else a.dtype
    sizes = result.sizes if k == 1 else a.sizes
    return w.assign(w.bound_values(texts[k], kind), kind, sizes)


@production
def scanned(w: Writer, s: Step) -> Value | None:
    a = w.pick(s.i, has_axes, is_number)
    if a is None or w.depth > 1 or not s.body or w.in_vmap or max_size_of(a.sizes[0]) > 60:
        return None
    state = Value(w.name("s"), a.dtype, a.sizes[1:])
    row = Value(w.name("x"), a.dtype, a.sizes[1:])
    if s.k % 3 == 0:
        if any(isinstance(n, DynamicSize) for n in row.sizes):
            return None
        name, _ = w.function([row], s.body, row)
        spec = f"df.TensorSpec({[*row.sizes]}, df.{a.dtype})"
        return w.assign(f"df.map_fn({name}, {a.name}, fn_output_signature={spec})", a.dtype, a.sizes)
    name, _ = w.function([state, row], s.body, row)
    start = f"df.zeros_like(df.reduce_sum({a.name}, 0))"
    if s.k % 3 == 1:
        return w.assign(f"df.scan({name}, {a.name}, {start})", a.dtype, a.sizes)
    return w.assign(f"df.{('foldl', 'foldr')[s.k // 3 % 2]}({name}, {a.name}, {start})", a.dtype, a.sizes[1:])


@production
def written(w: Writer, s: Step) -> Value | None:
    """Rows written one by one into a TensorArray."""
    a = w.pick(s.i, has_axes, is_number)
    static = a is not None and all(isinstance(n, int) for n in a.sizes[1:])
    if a is None or not static or w.depth > 1 or w.in_vmap or max_size_of(a.sizes[0]) > 60:
        return None
    array, i, row = w.name("array"), w.name("i"), Value(w.name("x"), a.dtype, a.sizes[1:])
    size = "0, dynamic_size=True" if s.k & 1 else rows(a)
    w.line(f"{array} = df.TensorArray(df.{a.dtype}, size={size}, element_shape={[*a.sizes[1:]]})")
    with w.block(f"for {i} in df.range({rows(a)}):"):
        w.line(f"{row.name} = {a.name}[{i}]")
        w.scope += [Value(i, "int32", ()), row]
        w.steps(s.body)
        w.line(f"{array} = {array}.write({i}, {w.last(row).name})")
    return w.assign(f"{array}.stack()", a.dtype, (w.size(max_size_of(a.sizes[0])), *a.sizes[1:]))


@production
def called(w: Writer, s: Step) -> Value | None:
    """A compiled function inside the program."""
    a = w.pick(s.i)
    if a is None or w.depth > 2 or not s.body:
        return None
    x = Value(w.name("x"), a.dtype, a.sizes)
    outer, w.scope = w.scope, []
    w.line("@inner")
    name, result = w.function([x], s.body)
    w.scope = outer
    return w.assign(f"{name}({a.name})", result.dtype, result.sizes)
