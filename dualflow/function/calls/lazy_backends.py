"""Imports the compiler backends at the first compile: importing them takes time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from dualflow.core.locks import imported
from dualflow.eager.tensor import EagerTensor
from dualflow.graph.capabilities import Capabilities
from dualflow.graph.ir import Graph, Node

if TYPE_CHECKING:
    from dualflow.backends.llvm.any_length import AnyLength
    from dualflow.backends.llvm.features import FastPathReport
    from dualflow.backends.llvm.program_cache import ProgramEntry
    from dualflow.function.arguments.results import Packer
    from dualflow.function.calls.call_form import CallForm
    from dualflow.graph.compiled import Backend, Compiled
    from dualflow.graph.options import CompileOptions
    from dualflow.graph.passes.pipeline import Pass


_BACKENDS: Final = {
    "llvm": "dualflow.backends.llvm.backend",
    "numba": "dualflow.backends.numba.backend",
    "opencl": "dualflow.backends.opencl.backend",
    "numpy": "dualflow.backends.interpreter",
}
_CAPABILITIES: Final = {
    "c": "dualflow.backends.c.capabilities",
    "llvm": "dualflow.backends.llvm.capabilities",
    "numba": "dualflow.backends.numba.capabilities",
    "opencl": "dualflow.backends.opencl.capabilities",
    "numpy": "dualflow.backends.interpreter",
}
"""The modules with the capabilities of a backend's programs: passes read them without a compiler."""
_PROGRAM_CACHES: Final = {"llvm": "dualflow.backends.llvm.program_cache"}
"""The modules of backends that keep whole programs on disk."""


_C_CALLS: Final = ("llvm",)
"""The backends whose graphs the C fast call may serve."""
_EARLY_COMPILES: Final = {"llvm": "dualflow.backends.llvm.early_compile"}
"""The modules of backends that begin to compile before the passes run."""


def capabilities_of(name: str) -> Capabilities:
    """The capabilities that programs of the backend ``name`` have on this machine."""
    capabilities: Capabilities = imported(_CAPABILITIES[name]).capabilities()
    return capabilities


def backend_of(name: str) -> Backend:
    """The backend ``name``, which compiles graphs."""
    backend: Backend = imported(_BACKENDS[name])
    return backend


@contextmanager
def building(graph: Graph, options: CompileOptions) -> Iterator[Callable[[Graph], Compiled]]:
    """A function that compiles a graph after all passes, for a graph before them.

    A backend may compile what the programs of ``graph`` call while the passes run.
    """
    early = _EARLY_COMPILES.get(options.backend)
    if early is None:
        yield lambda optimised: backend_of(options.backend).build(optimised, options)
        return
    with imported(early).compiling_early(graph) as background:
        yield lambda optimised: imported(_BACKENDS[options.backend]).build(optimised, options, background)


def program_entry(graph: Graph, options: CompileOptions) -> ProgramEntry | None:
    """The entry of a graph in its backend's cache of programs; None for a backend that has none."""
    module = _PROGRAM_CACHES.get(options.backend)
    if module is None:
        return None
    entry: ProgramEntry | None = imported(module).program_entry(graph, options)
    return entry


def c_call(
    executable: Compiled, form: CallForm | None, pack: Packer | None, fail: Callable[..., None]
) -> Callable[..., Any] | None:
    """Import and call :func:`dualflow.function.calls.c_call.c_call`."""
    module = imported("dualflow.function.calls.c_call")
    call: Callable[..., Any] | None = module.c_call(executable, form, pack, fail)
    return call


def has_c_calls(backend: str) -> bool:
    """Whether :func:`c_call` may serve graphs of a backend."""
    return backend in _C_CALLS


def prepare_c_calls() -> None:
    """Import and call :func:`dualflow.function.calls.c_call.prepare_c_calls`."""
    imported("dualflow.function.calls.c_call").prepare_c_calls()


def any_length(executable: Any) -> AnyLength | None:
    """Import and call :func:`dualflow.backends.llvm.any_length.any_length`."""
    kernel: AnyLength | None = imported("dualflow.backends.llvm.any_length").any_length(executable)
    return kernel


def features() -> Sequence[FastPathReport]:
    """Import and call :func:`dualflow.backends.llvm.features.features`."""
    result: Sequence[FastPathReport] = imported("dualflow.backends.llvm.features").features(EagerTensor)
    return result


def machine() -> dict[str, Any]:
    """Import and call :func:`dualflow.backends.llvm.machine.machine`."""
    result: dict[str, Any] = imported("dualflow.backends.llvm.machine").machine()
    return result


def numba_source(graph: Graph, constants: Sequence[Any]) -> str:
    """Import and call :func:`dualflow.backends.numba.export.export`."""
    result: str = imported("dualflow.backends.numba.export").export(graph, constants)
    return result


def c_program(graph: Graph, constants: Sequence[Any]) -> Any:
    """Import and call :func:`dualflow.backends.c.export.exported`."""
    return imported("dualflow.backends.c.export").exported(graph, constants)


def write_c_files(program: Any, folder: str, to: str, *, cpu: str, force: bool) -> list[str]:
    """Import and call :func:`dualflow.backends.c.files.write_files`."""
    write = imported("dualflow.backends.c.files").write_files
    paths: list[str] = write(program, folder, to, cpu=cpu, force=force)
    return paths


def onnx_composites() -> Pass:
    """Import :data:`dualflow.backends.onnx.composites.COMPOSITES`."""
    composites: Pass = imported("dualflow.backends.onnx.composites").COMPOSITES
    return composites


def onnx_model(graph: Graph, outputs: Sequence[str], captured: Sequence[str], values: Sequence[Any]) -> Any:
    """Import and call :func:`dualflow.backends.onnx.export.onnx_model`."""
    return imported("dualflow.backends.onnx.export").onnx_model(graph, outputs, captured, values)


def write_onnx_file(model: Any, path: str, *, force: bool) -> list[str]:
    """Import and call :func:`dualflow.backends.onnx.files.write_model`."""
    paths: list[str] = imported("dualflow.backends.onnx.files").write_model(model, path, force=force)
    return paths


def kernel_listing(graph: Graph) -> str:
    """Import and call :func:`dualflow.backends.numba.listing.listing`."""
    result: str = imported("dualflow.backends.numba.listing").listing(graph)
    return result


def listed_kernels(graph: Graph) -> dict[Node, str]:
    """Import and call :func:`dualflow.backends.numba.listing.listed_kernels`."""
    names: dict[Node, str] = imported("dualflow.backends.numba.listing").listed_kernels(graph)
    return names


def device_listing(executable: Any) -> str:
    """Import and call :func:`dualflow.backends.opencl.listing.listing`."""
    result: str = imported("dualflow.backends.opencl.listing").listing(executable.program)
    return result


def numba_function(executable: Any, captured: Sequence[Any]) -> Any:
    """Import and call :func:`dualflow.backends.llvm.numba_bridge.as_njit`."""
    return imported("dualflow.backends.llvm.numba_bridge").as_njit(executable, captured)
