"""A random program as data: its steps, the types of its inputs, its calls, and ``df.function``'s options."""

from __future__ import annotations

from dataclasses import dataclass, field

from .values import Size


@dataclass(frozen=True)
class Step:
    """One production of the grammar: its name, three numbers that choose, and the steps inside it."""

    name: str
    i: int = 0
    j: int = 0
    k: int = 0
    body: tuple[Step, ...] = ()
    otherwise: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Input:
    """An argument of the program; dynamic sizes have the numbers that a call gives them."""

    dtype: str
    sizes: tuple[Size, ...]


@dataclass(frozen=True)
class Call:
    """One call: a number for each dynamic size, the number ``n``, and the seed of the data."""

    sizes: tuple[int, ...]
    n: int
    seed: int


@dataclass(frozen=True)
class Options:
    """How the program is differentiated and compiled.

    Attributes:
        transform: "values", "gradient" (values and the gradients of their sum) or "jvp".
        open_signature: whether sizes are dynamic in the input signature; else each size has its trace.
        function: further options of ``df.function``, as source.
    """

    transform: str = "values"
    open_signature: bool = False
    function: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Program:
    """A whole program.

    Attributes:
        domain: "whole" (small whole numbers, whose arithmetic is exact in each dtype) or "smooth" (bounded
            differentiable steps on floats).
        inputs: the arguments before ``n``, a scalar int32.
        steps: what it computes.
        results: which values it returns, counted back from the last.
        calls: the calls, in order.
        options: how it is compiled.
    """

    domain: str
    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    calls: tuple[Call, ...]
    options: Options = field(default_factory=Options)
