"""Python source of a program: a step becomes lines where the values that it needs are in scope, else none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .records import Step
from .values import DynamicSize, Size, Value, broadcasts_to

Production = Callable[["Writer", Step], "Value | None"]


class Writer:
    """Lines of source, and the values in scope.

    Attributes:
        domain: see :class:`Program`.
        max_elements: no value has more elements.
        static_sizes_only: whether sizes must not depend on data: in functions that ``vmap`` maps.
        variables: the names of variables, with their types.
        declarations: lines of the module, before the program.
    """

    def __init__(self, domain: str, max_elements: int, productions: dict[str, Production]) -> None:
        self.domain = domain
        self.max_elements = max_elements
        self.static_sizes_only = False
        self.in_vmap = 0
        self.depth = 0
        self.lines: list[str] = []
        self.scope: list[Value] = []
        self.variables: list[Value] = []
        self.declarations: list[str] = []
        self._productions = productions
        self._indent = 1
        self._names = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self._indent + text)

    def declare(self, text: str) -> None:
        """Add a line of the module, once."""
        if text not in self.declarations:
            self.declarations.append(text)

    def name(self, prefix: str = "v") -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def size(self, maximum: int) -> DynamicSize:
        """A new size that is known only at run time."""
        return DynamicSize(self.name("size"), maximum)

    def assign(self, text: str, dtype: str, sizes: tuple[Size, ...]) -> Value:
        """A new value in scope: ``name = text``."""
        value = Value(self.name(), dtype, sizes)
        self.line(f"{value.name} = {text}")
        self.scope.append(value)
        return value

    def pick(self, i: int, *predicates: Callable[[Value], bool]) -> Value | None:
        """The value in scope that ``i`` names among those that fit, counted back from the last."""
        values = [v for v in self.scope if all(fit(v) for fit in predicates)]
        return values[-1 - i % len(values)] if values else None

    def is_small(self, sizes: tuple[Size, ...]) -> bool:
        return Value("", "", sizes).max_elements <= self.max_elements

    def as_dtype(self, value: Value, dtype: str) -> str:
        """An expression for a value in another dtype."""
        return value.name if value.dtype == dtype else f"df.cast({value.name}, df.{dtype})"

    def as_broadcastable(self, value: Value, target: Value, dtype: str | None = None) -> str:
        """An expression of a dtype that broadcasts with ``target`` without changing its sizes."""
        text = self.as_dtype(value, dtype or target.dtype)
        if broadcasts_to(value.sizes, target.sizes):
            return text
        return self.bound_values(f"df.reduce_sum({text})", dtype or target.dtype)

    def bound_values(self, text: str, dtype: str) -> str:
        """An expression whose elements are small again."""
        if self.domain == "smooth" and dtype in ("float32", "float64"):
            return f"df.tanh({text})"
        if dtype in ("complex64", "complex128", "bool"):
            return text
        return f"df.clip_by_value({text}, {0 if dtype.startswith('u') else -9}, 9)"

    def steps(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            self._productions[step.name](self, step)

    @contextmanager
    def block(self, header: str) -> Iterator[list[Value]]:
        """Lines inside a compound statement; its values leave the scope with it."""
        self.line(header)
        scope, begun = self.scope, len(self.lines)
        self.scope = list(scope)
        self._indent += 1
        self.depth += 1
        yield self.scope
        if len(self.lines) == begun:
            self.line("pass")
        self._indent -= 1
        self.depth -= 1
        self.scope = scope

    def function(
        self, parameters: list[Value], body: tuple[Step, ...], like: Value | None = None
    ) -> tuple[str, Value]:
        """A local function that takes these steps, with the last value that fits as result."""
        name = self.name("f")
        with self.block(f"def {name}({', '.join(p.name for p in parameters)}):"):
            self.scope.extend(parameters)
            self.steps(body)
            result = self.last(like or parameters[-1])
            self.line(f"return {result.name}")
        return name, result

    def last(self, like: Value, growing: bool = False) -> Value:
        """The last value of the type of ``like``; its first size may differ where it may grow."""
        tail = like.sizes[1:] if growing else like.sizes
        candidates = [
            v
            for v in self.scope
            if v.dtype == like.dtype and v.rank == like.rank and (v.sizes[1:] if growing else v.sizes) == tail
        ]
        return candidates[-1] if candidates else like
