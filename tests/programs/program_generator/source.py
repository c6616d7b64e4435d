"""The Python source of a program: a complete script with its inputs and calls."""

from __future__ import annotations

from . import composites, control, effects, matrices, segments, signals, sized, windows
from .elementary import PRODUCTIONS
from .records import Call, Input, Program
from .values import DynamicSize, Size, Value
from .writer import Writer

__all__ = [
    "composites",
    "control",
    "effects",
    "matrices",
    "segments",
    "signals",
    "sized",
    "source",
    "windows",
]

LARGE = 600_000
SMALL = 6_000

HEAD = """import numpy as np

import dualflow as df

vmap = df.autodiff.vmap
inner = df.function
"""
GRADIENT = """

def run({names}, n):
    with df.GradientTape() as tape:
        tape.watch([{watched}])
        results = program({names}, n)
        total = df.add_n([df.reduce_sum(df.cast(r, df.float64)) for r in results if r.dtype.is_floating])
    return *results, *tape.gradient(total, [{watched}], unconnected_gradients="zero")
"""
JVP = """

def run({names}, n):
    def function({watched}):
        return program({names}, n)

    results, tangents = df.autodiff.jvp(function, [{watched}], [{ones}])
    return *results, *tangents
"""
TAIL = """

if __name__ == "__main__":
    compiled = df.function(run, **options)
    for arguments in calls:
        for way in (run, compiled):
            try:
                print([r.numpy() for r in way(*map(df.constant, arguments))])
            except Exception as error:
                print(type(error).__name__, error)
"""


def source(program: Program) -> str:
    """The script; its last lines run all calls in both modes."""
    large = any(size > 100 for call in program.calls for size in call.sizes)
    w = Writer(program.domain, LARGE if large else SMALL, PRODUCTIONS)
    arguments = [Value(f"a{i}", x.dtype, x.sizes) for i, x in enumerate(program.inputs)]
    w.scope += arguments
    w.variables += variables(program)
    w.steps(program.steps)
    floats = [v for v in w.scope if v.dtype in ("float32", "float64")]
    results = [w.scope[-1 - r % len(w.scope)] for r in program.results]
    if program.options.transform != "values" and floats and not any(v.is_float for v in results):
        results.append(floats[-1])
    names = ", ".join(a.name for a in arguments)
    lines = [HEAD]
    lines += [
        f"{v.name} = df.Variable({data(v.dtype, v.sizes, i, program.domain)})"
        for i, v in enumerate(w.variables)
    ]
    lines += w.declarations
    lines += [
        "",
        f"def program({names}, n):",
        *w.lines,
        f"    return ({', '.join(r.name for r in results)},)",
    ]
    lines += [run_function(program, arguments)]
    lines += [
        f"state = [{', '.join(v.name for v in w.variables)}]",
        f"options = dict({options(program)})",
        "calls = [",
    ]
    lines += [f"    ({arguments_of(program, call)})," for call in program.calls]
    return "\n".join([*lines, "]", TAIL])


def variables(program: Program) -> list[Value]:
    """Two variables where a step is about variables: of the first input's dtype, and a scalar."""
    if not any(_uses_variables(step.name) for step in _all(program.steps)):
        return []
    dtype = next((x.dtype for x in program.inputs if x.dtype in ("float32", "float64", "int32")), "float32")
    return [Value("state0", dtype, (4, 3)), Value("state1", dtype, ())]


def _uses_variables(name: str) -> bool:
    return name in ("read", "assigned", "scattered_onto")


def _all(steps: tuple[object, ...]) -> list[object]:
    pending, visited = list(steps), []
    while pending:
        step = pending.pop()
        visited.append(step)
        pending += [*step.body, *step.otherwise]  # type: ignore[attr-defined]
    return visited


def run_function(program: Program, arguments: list[Value]) -> str:
    watched = [a.name for a in arguments if a.dtype in ("float32", "float64")]
    if program.options.transform == "values" or not watched:
        return "\n\nrun = program\n"
    text = GRADIENT if program.options.transform == "gradient" else JVP
    return text.format(
        names=", ".join(a.name for a in arguments),
        watched=", ".join(watched),
        ones=", ".join(f"df.ones_like({name})" for name in watched),
    )


def options(program: Program) -> str:
    texts = [f"{name}={text}" for name, text in program.options.function]
    if program.options.open_signature:
        specs = [
            f"df.TensorSpec({[None if isinstance(n, DynamicSize) else n for n in x.sizes]}, df.{x.dtype})"
            for x in program.inputs
        ]
        texts.append(f"input_signature=[{', '.join([*specs, 'df.TensorSpec([], df.int32)'])}]")
    return ", ".join(texts)


def arguments_of(program: Program, call: Call) -> str:
    arrays = [
        data(x.dtype, shape_of(x, call), call.seed + i, program.domain) for i, x in enumerate(program.inputs)
    ]
    return ", ".join([*arrays, f"np.int32({call.n})"])


def shape_of(x: Input, call: Call) -> tuple[int, ...]:
    """The shape that a call gives an input: the dynamic size "n0" is the first of the call's, and so on."""
    return tuple([call.sizes[int(n.name[1:])] if isinstance(n, DynamicSize) else n for n in x.sizes])


def data(dtype: str, shape: tuple[Size, ...], seed: int, domain: str) -> str:
    """An expression for an array: small whole numbers with ties, or numbers between -2 and 2."""
    random = f"np.random.default_rng({seed})"
    if domain == "smooth" and dtype in ("float32", "float64"):
        return f"{random}.uniform(-2, 2, {shape}).astype('{dtype}')"
    low = 0 if dtype.startswith(("u", "b")) and dtype != "bfloat16" else -4
    return f"{random}.integers({low}, {2 if dtype == 'bool' else 5}, {shape}).astype('{dtype}')"
