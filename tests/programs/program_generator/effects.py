"""Productions that read and change variables, and those that may fail."""

from __future__ import annotations

from .elementary import exact_sums, has_axes, is_real, production
from .records import Step
from .sized import rows
from .values import Value, max_size_of
from .writer import Writer

__all__ = ["read"]


def variable(w: Writer, i: int) -> Value | None:
    return w.variables[i % len(w.variables)] if w.variables and not w.in_vmap else None


@production
def read(w: Writer, s: Step) -> Value | None:
    state = variable(w, s.i)
    return None if state is None else w.assign(f"{state.name} + 0", state.dtype, state.sizes)


@production
def assigned(w: Writer, s: Step) -> Value | None:
    state = variable(w, s.i)
    a = w.pick(s.j, is_real, exact_sums)
    if state is None or a is None:
        return None
    dtype, names = state.dtype, ("assign", "assign_add", "assign_sub")
    if a.sizes == state.sizes:
        text = w.as_dtype(a, dtype)
    else:
        text = f"df.fill({[*state.sizes]}, {w.bound_values(f'df.reduce_sum({w.as_dtype(a, dtype)})', dtype)})"
    w.line(f"{state.name}.{names[s.k % 3]}({text})")
    return None


@production
def scattered_onto(w: Writer, s: Step) -> Value | None:
    """Rows of a variable changed at positions that may be outside."""
    state = variable(w, s.i)
    if state is None or not state.rank:
        return None
    update = f"df.ones({[1, *state.sizes[1:]]}, df.{state.dtype})"
    method = ("scatter_nd_add", "scatter_nd_update")[s.k % 2]
    w.line(f"{state.name}.{method}([[n % {max_size_of(state.sizes[0]) + 1}]], {update})")
    return None


@production
def checked(w: Writer, s: Step) -> Value | None:
    """A check that fails for some calls."""
    if w.in_vmap:
        return None
    a = w.pick(s.i, is_real, exact_sums)
    if a is None or s.k & 1:
        w.line("df.debugging.assert_less(n, 4)")
    else:
        w.line(f"df.debugging.assert_less(df.reduce_sum({a.name}), df.cast({s.k % 8}, {a.name}.dtype))")
    return None


@production
def picked(w: Writer, s: Step) -> Value | None:
    """The row ``n``, which some calls don't have."""
    a = w.pick(s.i, has_axes)
    if a is None or w.in_vmap:
        return None
    texts = (
        f"{a.name}[n]",
        f"df.gather({a.name}, n)",
        f"df.gather({a.name}, [n, 0])[0]",
        f"{a.name}[{rows(a)} - 1]",
    )
    return w.assign(texts[s.k % 4], a.dtype, a.sizes[1:])
