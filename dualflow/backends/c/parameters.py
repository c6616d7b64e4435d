"""The parameters of an exported function: its tensors and their dynamic sizes."""

from __future__ import annotations

from collections.abc import Iterator

from dualflow.backends.c.program_source import CProgram
from dualflow.backends.c.source_lines import c_type
from dualflow.core.records import NamedTuple
from dualflow.core.spec import TensorSpec


class CParameter(NamedTuple):
    """A parameter of the exported function.

    Attributes:
        name: its name.
        spec: of the tensor that it points to; None for a size.
        role: "argument", "variable", "size" or "output".
        shape: the shape of the tensor as text, with the names of sizes.
    """

    name: str
    spec: TensorSpec | None
    role: str
    shape: str

    @property
    def declaration(self) -> str:
        """The C declaration of the parameter."""
        if self.spec is None:
            return f"int64_t {self.name}"
        const = "const " if self.role == "argument" else ""
        return f"{const}{c_type(self.spec.dtype)} *{self.name}"


def parameters_of(program: CProgram, embedded: int) -> Iterator[CParameter]:
    """All parameters except the workspace; the last ``embedded`` inputs are constants of the file."""
    count = len(program.inputs) - embedded
    values = zip(program.inputs[:count], program.plan.arguments, strict=False)
    for i, (name, spec) in enumerate(values):
        yield CParameter(
            name, spec, "variable" if i in program.written else "argument", _shape(program, spec)
        )
    for name in program.sizes.names.values():
        yield CParameter(name, None, "size", "")
    for i, spec in enumerate(program.plan.outputs):
        yield CParameter(f"out{i}", spec, "output", _shape(program, spec))


def _shape(program: CProgram, spec: TensorSpec) -> str:
    sizes = [program.shown_sizes.text(size).replace("df_", "") for size in spec.shape if size is not None]
    return f"[{', '.join(sizes)}]"


def shown_definitions(program: CProgram) -> dict[str, str]:
    """The names in the shapes of the parameters, each with its expression, which has only those before."""
    definitions = program.shown_sizes.definitions.items()
    return {name.removeprefix("df_"): text.replace("df_", "") for name, text in definitions}
