"""Functions and modules of LLVM IR. A module is compiled to one object file."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.backends.llvm.text.builder import Builder
from dualflow.backends.llvm.text.emitted_values import EmittedValue, Symbols
from dualflow.backends.llvm.text.types import Type
from dualflow.core.errors import InternalError

Argument = tuple[str, Type] | tuple[str, Type, str]

_METADATA = (
    "!0 = !{i32 1}",  # of stores that bypass the cache
    "!1 = distinct !{!1, !2}",  # of innermost loops
    '!2 = !{!"llvm.loop.align", i32 32}',
)


class LlvmFunction:
    """One function: its arguments as values, and the builder of its body."""

    def __init__(
        self,
        symbols: Symbols,
        name: str,
        ret: Type,
        args: Sequence[Argument],
        attributes: str,
        internal: bool,
    ) -> None:
        self.name, self.ret = name, ret
        self.builder = Builder(symbols)
        self.args = tuple([EmittedValue(self.builder, a[1], f"%{a[0]}") for a in args])
        parameters = ", ".join([f"{a[1]} {a[2] if len(a) == 3 else ''} %{a[0]}" for a in args])
        linkage = "internal " if internal else ""
        self._head = f"define {linkage}{ret} @{name}({parameters}) #0 {attributes} {{"

    def text(self) -> str:
        """The definition as LLVM assembly."""
        lines = [self._head]
        for block in self.builder.blocks:
            lines.append(f"{block.label}:")
            lines += block.lines
        return "\n".join([*lines, "}", ""])


class LlvmModule(Symbols):
    """Functions and declarations of one object file.

    ``vector_bits`` is the width of the widest register that the code may use.
    """

    def __init__(self, vector_bits: int = 512) -> None:
        super().__init__(converts_halves=vector_bits > 128)
        self.vector_bits = vector_bits
        self.functions: dict[str, LlvmFunction] = {}

    def function(
        self, name: str, ret: Type, args: Sequence[Argument], attributes: str = "", internal: bool = False
    ) -> LlvmFunction:
        """Add a function, whose body is written through its ``builder``.

        ``args`` are (name, type) or (name, type, parameter attributes such as "noalias"); ``attributes`` are
        the function's own ("alwaysinline", "noinline cold"); an ``internal`` one is local to the module.
        """
        if name in self.functions:
            raise InternalError(f"function {name} is defined twice in one module")
        function = LlvmFunction(self, name, ret, args, attributes, internal)
        self.functions[name] = function
        self.signatures[name] = ret, tuple([a.type for a in function.args])
        return function

    def text(self, *, scalar: bool = False) -> str:
        """The whole module as LLVM assembly.

        That of ``scalar`` code has no vector width: LLVM takes 1 ms to set up each width that a process uses.
        """
        bits = self.vector_bits
        width = "" if scalar else f'"prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'
        parts = [*self.declarations.values()]
        parts += [function.text() for function in self.functions.values()]
        return "\n".join([*parts, f"attributes #0 = {{ nounwind {width} }}", *_METADATA, ""])
