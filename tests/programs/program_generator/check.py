"""Invariants of a random program's runs: eager equals compiled, also when called again and after failures."""

from __future__ import annotations

import linecache
import re
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import dualflow as df

from .texts import fault_of_kind, fault_of_text, is_refusal

Array = np.ndarray[Any, Any]
TOLERANCE = {
    "float64": 1e-7,
    "complex128": 1e-7,
    "float32": 2e-3,
    "complex64": 2e-3,
    "float16": 5e-2,
    "bfloat16": 0.3,
}


@dataclass
class Outcome:
    """How one call ended: its results or its error, and what the variables hold then."""

    results: list[Array] = field(default_factory=list)
    error: Exception | None = None
    state: list[Array] = field(default_factory=list)

    def __str__(self) -> str:
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}"
        return "\n".join(f"{a.dtype}{list(a.shape)} {np.array2string(a, threshold=40)}" for a in self.results)


def loop_over_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    """``vmap`` as a Python loop, unless there are no rows, whose results have sizes all the same."""

    def mapped(*arguments: Any) -> Any:
        results = [function(*rows) for rows in zip(*arguments, strict=True)]
        return df.stack(results) if results else df.autodiff.vmap(function)(*arguments)

    return mapped


def load(path: str, source: str, **replaced: Any) -> dict[str, Any]:
    """The names of the script, whose lines errors and AutoGraph find under ``path``."""
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    names: dict[str, Any] = {"__name__": "program", "__file__": path}
    exec(compile(source, path, "exec"), names)
    names.update(replaced)
    return names


def outcome(call: Callable[..., Any], arguments: Sequence[Array], state: Sequence[Any]) -> Outcome:
    try:
        results = call(*map(df.constant, arguments))
        return Outcome([r.numpy() for r in results], None, [v.numpy().copy() for v in state])
    except Exception as error:
        return Outcome([], error, [v.numpy().copy() for v in state])


def outcomes(names: dict[str, Any], call: Callable[..., Any]) -> list[Outcome]:
    """Each call twice: the second runs by the kept trace and its fast path."""
    return [outcome(call, arguments, names["state"]) for arguments in names["calls"] for _ in range(2)]


def check(path: str, source: str) -> list[str]:
    """What is wrong with the program's runs; nothing where all agree."""
    whole = ".uniform(" not in source
    df.config.set_eager_kernels("numpy")
    try:
        names = load(path, source, vmap=loop_over_rows, inner=lambda f: f)
        expected = outcomes(names, names["run"])
        faults = slopes(names) if not whole and "tape.gradient(total" in source else []
    finally:
        df.config.set_eager_kernels("compiled")
    names = load(path, source)
    ways = {"eager": outcomes(names, names["run"])}
    names = load(path, source)
    try:
        compiled = df.function(names["run"], **names["options"])
    except Exception as error:
        return [*faults, f"options: {error!r}"]
    ways["compiled"] = outcomes(names, compiled)
    if "tape.gradient(total" in source:
        names = load(path, source)
        names["run"].__globals__["program"] = df.function(names["program"], **names["options"])
        ways["under a tape"] = outcomes(names, names["run"])
    exact = whole and not any(
        name in source for name in ("GradientTape", "autodiff.grad", "autodiff.jvp", "autodiff.vjp")
    )
    rounded = max((TOLERANCE[name] for name in TOLERANCE if name in source), default=1e-7)
    precision = 0.0 if exact else rounded
    for way, result in ways.items():
        for i, (mine, theirs) in enumerate(zip(result, expected, strict=True)):
            is_compiled = way != "eager" or "@inner" in source
            unused = theirs.error is not None and is_unused(theirs.error, path, source)
            fault = differs(mine, theirs, precision, "compiled" if is_compiled else way, unused=unused)
            if fault:
                faults.append(f"{way}, call {i // 2}{' again' if i % 2 else ''}: {fault}")
                break
        if not names["state"] and "first_call" not in names["options"]:
            faults += [
                f"{way}, call {i // 2}: another result when called again"
                for i in range(0, len(result), 2)
                if not same_bits(result[i], result[i + 1])
            ]
    errors = [o.error for result in (expected, *ways.values()) for o in result if o.error is not None]
    return [
        *faults,
        *{f"error text: {fault}" for error in errors if (fault := fault_of_text(error, path, source))},
    ]


def check_texts(path: str, source: str, name: str | None) -> list[str]:
    """What is wrong with the texts of the errors that a wrong program ends with, eagerly and compiled."""
    return _faults(path, source, lambda error: fault_of_text(error, path, source, name))


def check_kinds(path: str, source: str, name: str | None) -> list[str]:
    """What is wrong with the classes of the errors that a wrong program ends with, eagerly and compiled."""
    return _faults(path, source, lambda error: fault_of_kind(error, path, name))


def _faults(path: str, source: str, fault_of: Callable[[Exception], str | None]) -> list[str]:
    """The result of ``fault_of`` for the errors that end a program, eagerly and compiled."""
    names, faults = load(path, source), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for way, make in (
            ("eager", lambda: names["run"]),
            ("compiled", lambda: df.function(names["run"], **names["options"])),
        ):
            for arguments in names["calls"]:
                try:
                    leaves = df.nest.flatten(make()(*map(df.constant, arguments)))
                    [x.numpy() for x in leaves if isinstance(x, df.Tensor)]
                except Exception as error:
                    fault = fault_of(error)
                    faults += [] if fault is None else [f"{way}: {fault}"]
    return faults


def same_bits(a: Outcome, b: Outcome) -> bool:
    return (a.error is None) == (b.error is None) and [x.tobytes() for x in a.results] == [
        x.tobytes() for x in b.results
    ]


def differs(
    mine: Outcome, theirs: Outcome, tolerance: float, way: str, *, unused: bool = False
) -> str | None:
    if mine.error is not None and theirs.error is None:
        if way == "compiled" and is_refusal(mine.error):
            return None
        return f"raises {type(mine.error).__name__}: {mine.error}\nwhere the reference gives\n{theirs}"
    if theirs.error is not None and mine.error is None:
        if way == "compiled" and (unused or isinstance(theirs.error, IndexError)):
            return None  # of an element, or of an op, that no result depends on
        return f"gives\n{mine}\nwhere the reference raises {theirs}"
    for what, a, b in (("result", mine.results, theirs.results), ("variable", mine.state, theirs.state)):
        if mine.error is not None and not is_of_the_run(mine.error):
            continue
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            if x.dtype != y.dtype or x.shape != y.shape:
                return f"{what} {i} is {x.dtype}{list(x.shape)}, not {y.dtype}{list(y.shape)}"
            if not agree(x, y, tolerance):
                shown, second = (np.array2string(z, threshold=60) for z in (x, y))
                return f"{what} {i} is\n{shown}\nnot\n{second}"
    return None


def is_unused(error: Exception, path: str, source: str) -> bool:
    """Whether the line that raised an error assigns names that no other line reads: compiling removes it."""
    numbers = [x.lineno for x in traceback.extract_tb(error.__traceback__) if x.filename == path]
    lines = source.splitlines()
    line = lines.pop(numbers[-1] - 1) if numbers and numbers[-1] is not None else ""
    target = re.match(r"\s*(\w+(?:, \w+)*) = ", line)
    names = target[1].split(", ") if target else []
    return bool(names) and not any(re.search(rf"\b{name}\b", x) for name in names for x in lines)


def is_of_the_run(error: Exception) -> bool:
    """Whether the error can't be raised while tracing, before anything runs."""
    return "assert" in str(error) or isinstance(error, IndexError)


def agree(x: Array, y: Array, tolerance: float) -> bool:
    if x.dtype.kind in "iub" or not tolerance:
        return bool(np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"))
    x, y = (a.astype(complex if a.dtype.kind == "c" else float) for a in (x, y))
    finite = np.abs(y[np.isfinite(y)])
    return bool(
        np.allclose(x, y, rtol=tolerance, atol=tolerance * max(1.0, finite.max(initial=0)), equal_nan=True)
    )


def slopes(names: dict[str, Any]) -> list[str]:
    """Gradients of float64 programs that are not the slopes of their values along a random direction."""
    if names["state"]:
        return []
    gradients = (slope(names, arguments) for arguments in names["calls"])
    return [f"gradient, call {i}: {fault}" for i, fault in enumerate(gradients) if fault is not None]


def slope(names: dict[str, Any], arguments: Sequence[Array]) -> str | None:
    floats = [i for i, a in enumerate(arguments) if a.dtype == np.float64]
    if any(a.dtype == np.float32 for a in arguments) or not floats:
        return None
    random = np.random.default_rng(7)
    direction = {i: random.standard_normal(arguments[i].shape) for i in floats}

    def total(step: float) -> float:
        moved = [a + step * direction[i] if i in direction else a for i, a in enumerate(arguments)]
        results = names["program"](*map(df.constant, moved))
        if any(r.dtype is df.float32 for r in results):
            raise ArithmeticError("float32 finite differences are too inexact")
        return float(sum(np.sum(r.numpy()) for r in results if r.dtype.is_floating))

    gradients = outcome(names["run"], arguments, ()).results[-len(floats) :]
    try:
        along = float(sum(np.sum(g * direction[i]) for g, i in zip(gradients, floats, strict=True)))
        differences = [(total(h) - total(-h)) / (2 * h) for h in (1e-4, 3e-5, 1e-5)]
    except Exception:  # a program that fails is compared as such
        return None
    spread, scale = max(differences) - min(differences), max(1.0, abs(along), *map(abs, differences))
    if spread < 1e-6 * scale and abs(along - differences[1]) > 1e-4 * scale:
        return f"{along} along a direction in which values change by {differences[1]}"
    return None
