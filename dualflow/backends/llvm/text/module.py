"""Functions and modules: what becomes an object file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dualflow.backends.llvm.text.builder import Builder
from dualflow.backends.llvm.text.types import Type
from dualflow.backends.llvm.text.values import EmittedValue, Symbols
from dualflow.core.errors import InternalError

Argument = tuple[str, Type] | tuple[str, Type, str]


class LlvmFunction:
    """One function: its arguments as values, and the builder that fills its body."""

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


class Fragment(NamedTuple):
    """A function as text, and all that it stands on: what any module may take in.

    Attributes:
        name: the function's name in ``text``.
        text: its definition.
        others: the definitions of the functions that it calls.
        signatures: the types of all of them, and of what they declare.
        declarations: what is bound when the object is loaded.
        data: constant data.
    """

    name: str
    text: str
    others: Mapping[str, str]
    signatures: Mapping[str, tuple[Type, tuple[Type, ...]]]
    declarations: Mapping[str, str]
    data: Mapping[str, str]


class LlvmModule(Symbols):
    """Functions, declarations and constant data that become one object file.

    `vector_bits` is the widest register that the code may use (512 lets AVX-512 machines use all of it).
    """

    def __init__(self, vector_bits: int = 512) -> None:
        super().__init__()
        self.vector_bits = vector_bits
        self.functions: dict[str, LlvmFunction] = {}
        self._data: dict[str, str] = {}
        self._included: dict[str, str] = {}

    def function(
        self, name: str, ret: Type, args: Sequence[Argument], attributes: str = "", internal: bool = False
    ) -> LlvmFunction:
        """A new function, to be filled through its `builder`.

        `args` are (name, type) or (name, type, parameter attributes such as "noalias"); `attributes` are the
        function's own ("alwaysinline", "noinline cold"); an `internal` one cannot be seen from outside.
        """
        if name in self.functions or name in self._included:
            raise InternalError(f"function {name} is defined twice in one module")
        made = LlvmFunction(self, name, ret, args, attributes, internal)
        self.functions[name] = made
        self.signatures[name] = ret, tuple([a.type for a in made.args])
        return made

    def constant_data(self, name: str, data: bytes, align: int = 64) -> str:
        """Read-only bytes; `Builder.address(name)` points at them."""
        escaped = "".join([f"\\{byte:02x}" for byte in data])
        head = f"@{name} = private unnamed_addr constant"
        self._data[name] = f'{head} [{len(data)} x i8] c"{escaped}", align {align}'
        return name

    def fragment(self, name: str) -> Fragment:
        """The function ``name`` of this module, which is complete, for others to include."""
        texts = {other: function.text() for other, function in self.functions.items()}
        text = texts.pop(name)
        return Fragment(name, text, texts, self.signatures, self.declarations, self._data)

    def include(self, fragment: Fragment, name: str) -> None:
        """Take in a function under another name, with what it stands on where that is not here yet."""
        if self.has(name):
            raise InternalError(f"function {name} is defined twice in one module")
        for other, text in fragment.others.items():
            if not self.has(other):
                self._included[other] = text
        self._included[name] = fragment.text.replace(f"@{fragment.name}(", f"@{name}(", 1)
        self._data |= fragment.data
        self.declarations |= fragment.declarations
        self.signatures |= {n: types for n, types in fragment.signatures.items() if n != fragment.name}
        self.signatures[name] = fragment.signatures[fragment.name]

    def text(self) -> str:
        """The whole module as LLVM assembly."""
        width = f'"prefer-vector-width"="{self.vector_bits}" "min-legal-vector-width"="{self.vector_bits}"'
        parts = [*self._data.values(), *self.declarations.values()]
        parts += self._included.values()
        parts += [function.text() for function in self.functions.values()]
        return "\n".join([*parts, f"attributes #0 = {{ nounwind {width} }}", "!0 = !{i32 1}", ""])
