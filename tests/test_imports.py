"""The order of the packages, read from the import statements of the source."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeGuard

import networkx as nx

import dualflow
from dualflow.ops.families import load_families
from dualflow.ops.record import REGISTRY, Op

ROOT = Path(dualflow.__file__).parents[1]
PACKAGES = ("dualflow", "keras_dualflow")
MAX_LINES = 500

ORDER = [
    ["core"],
    ["scalar", "sizes", "version"],
    ["ops"],
    ["gradient"],
    ["eager", "graph"],
    ["graph.passes", "graph.draw"],
    ["schedule"],
    ["backends.runtime"],
    ["backends.llvm.text"],
    ["backends.llvm.maths", "backends.llvm.runtime"],
    ["backends.llvm.product"],
    ["backends.c", "backends.llvm", "backends.numba", "backends.onnx"],
    ["backends.opencl"],
    ["backends"],
    ["function.errors", "function.options", "function.bound_method"],
    ["function.arguments", "function.tracing"],
    ["function.calls", "function.control"],
    ["function.autograph", "function.debugging"],
    ["function.batching"],
    ["function"],
    ["function.inspect", "graph_mode"],
    ["data", "linear_operators", "lookup", "profiler", "summary", "testing", "train"],
    ["saved", "rewrites", "distribute"],
    ["random"],
    ["numpy"],
    ["array_api"],
    ["keras_dualflow.choice", "keras_dualflow.all_or_none", "keras_dualflow.replicas"],
    ["keras_dualflow.branches"],
    ["keras_dualflow.patches", "keras_dualflow.tensorflow_imports"],
    ["keras_dualflow.hook"],
    ["keras_dualflow.startup", "keras_dualflow.df_keras", "keras_dualflow.src.core"],
    ["keras_dualflow.src.ops", "keras_dualflow.src.training"],
    ["keras_dualflow.src.random", "keras_dualflow.src.rnn", "keras_dualflow.src.trainer"],
]
"""The packages from the lowest up; some are one file. Those in one row don't import each other.

All other modules are public namespaces, which may import every package. Keras's backend may import public
namespaces, as users do."""

FORBIDDEN = {
    ("eager", package)
    for row in ORDER
    for package in row
    if package.startswith(("graph.", "schedule", "backends"))
}
"""Pairs of packages that must not import each other, although one is higher."""

LAYERS = [package for row in ORDER for package in row]
LOWER = {
    package: {
        below
        for lower in ORDER[:level]
        for below in lower
        if not {(package, below), (below, package)} & FORBIDDEN
    }
    for level, row in enumerate(ORDER)
    for package in row
}
"""Each package, and the packages that it may import."""

TYPES_ONLY = {
    ("dualflow.core.dispatch", "dualflow.core.spec"): "tensors have a spec, which describes them",
    ("dualflow.core.dispatch", "dualflow.ops.record"): "an engine's methods take an op",
    ("dualflow.core.delegating_engine", "dualflow.ops.record"): "and so do those of engines that delegate",
    ("dualflow.core.dispatch", "dualflow.ops.tensor"): "and return a tensor, which has all operators",
    ("dualflow.ops.widening", "dualflow.ops.record"): "a record's call passes the record",
    ("dualflow", "dualflow.onnx"): "models of ONNX are computed by public functions, and loaded on demand",
    ("dualflow", "dualflow.compat"): "imported by programs that need it; type checkers read it always",
}
"""Imports against the order, for type checkers only."""

LATE = {
    "llvmlite": "0.1 s and 100 MB: only a compile without an entry in the object cache needs it",
    "ml_dtypes": "0.02 s: only bfloat16 and floats of 8 bits need it",
    "networkx": "0.1 s: only analyses of a graph need it",
    "numpy.fft": "5 ms: NumPy imports it at its first use, and a fork must wait for the import",
    "numpy.random": "10 ms: NumPy imports it at its first use, and a fork must wait for the import",
    "numba": "0.2 s: only a user's own numba code needs it",
    "scipy": "0.05 s: only the ops that call its LAPACK or its special functions need it",
    "dualflow.function.autograph.compilation": "10 ms: only a function with control flow needs it",
    "dualflow.function.autograph.array_aliases": "only functions that assign items of arrays need it",
    "dualflow.scalar.complex_pairs": "0.7 ms: only graphs with complex numbers need it",
    "dualflow.backends": "imports llvmlite, numba or pyopencl; the first compile needs it",
    "dualflow.schedule.chunked_scans": "only scans on devices need it",
    "dualflow.schedule.column_kernels": "only reductions of columns need it",
    "dualflow.schedule.executed_work": "only reports need it",
    "dualflow.schedule.product_epilogues": "only backends that fuse products with what follows need it",
    "dualflow.schedule.race_check": "only compilations that check passes need it",
    "dualflow.schedule.plan": "10 ms: graphs that NumPy runs are planned only for reports of memory",
    "dualflow.function.calls.strict": "only functions that are strict need it",
    "dualflow.function.tracing.deferred_ops": "only reads of dynamic sizes of a trace need it",
    "dualflow.function.tracing.deferred_calls": "only a call that fails in a trace needs it",
    "dualflow.function.calls.memory_budget": "only functions that have a budget need it",
    "dualflow.function.debugging.debug": "only Function.debug needs it",
    "dualflow.function.debugging.pdb_prompt": "imports pdb, 0.05 s",
    "dualflow.function.calls.c_call": "imports dualflow.backends.llvm",
    "dualflow.function.batching": "only functions under vmap need it",
    "dualflow.graph.analysis": "imports networkx",
    "dualflow.graph.passes.fusion_check": "imports networkx",
    "dualflow.graph.passes.complex_parts": "only graphs with complex numbers need it",
    "dualflow.graph.passes.complex_products": "only products of complex numbers need it",
    "dualflow.graph.passes.empty_checks": "only graphs with required tensors need it",
    "dualflow.graph.passes.epilogues": "only graphs with products need it",
    "dualflow.graph.passes.float16": "only graphs with float16 need it",
    "dualflow.graph.passes.hoist_invariants": "only graphs with branches or loops need it",
    "dualflow.graph.passes.hoist_random": "only graphs with branches or loops need it",
    "dualflow.graph.passes.inline_branches": "only graphs with branches or loops need it",
    "dualflow.graph.passes.integer_products": "only products of integers need it",
    "dualflow.graph.passes.loop_products": "only graphs with branches or loops need it",
    "dualflow.graph.passes.native_collectives": "only graphs with collectives need it",
    "dualflow.graph.passes.partial_products": "only slices of products need it",
    "dualflow.graph.passes.scatter_epilogues": "only graphs with scatters need it",
    "dualflow.graph.passes.hoist_size_scalars": "only graphs that compute with sizes need it",
    "dualflow.graph.passes.small_operands": "only ops that have kernels for small operands need it",
    "dualflow.graph.passes.sparse_updates": "only graphs with scatters need it",
    "dualflow.graph.passes.unroll_trivial_loops": "only graphs with branches or loops need it",
    "dualflow.graph.passes.pipeline": "5 ms: a program that is on disk needs no pass",
    "dualflow.function.inspect.compare_page": "only the page of a comparison needs it; imports networkx",
    "dualflow.graph.draw.drawing": "only a picture of a graph needs it",
    "dualflow.compat.v1": "0.1 s: only programs for TensorFlow 1, and internal modules, need it",
    "dualflow.core.blas": "only products and solutions by NumPy's BLAS need it",
    "dualflow.core.absent": "only the error for an absent name needs it",
    "scipy.special": "60 ms: only a special function that is computed needs it",
    "scipy.stats.qmc": "0.5 s: only a point of Sobol's sequence needs it",
    "mpi4py": "loads MPI, and no dependency: only jobs of several workers need it",
    "tensorboardX": "0.1 s, and no dependency: only summaries need it",
    "logging": "5 ms: only logs need it",
    "dualflow.core.log_topics": "imports logging",
    "dualflow.data.dataset": "only keras.utils.split_dataset needs it",
    "dualflow.data.batching": "only keras.utils.split_dataset needs it",
    "dualflow.data.notebook": "only the display of a dataset in a notebook needs it",
    "matplotlib": "0.3 s, and no dependency: only a picture of a graph needs it",
    "PIL": "0.05 s, and no dependency: only files of images need it",
    "dualflow.core.string_arrays": "registers the dtype of strings: only strings need it",
    "keras": "1 to 2 s, and no dependency: only models need it",
    "keras_dualflow.replicas": "only strategies with several replicas need it",
    "keras_dualflow.src.export": "imports Keras's layers, whose base class imports it when a model is saved",
    "keras_dualflow.hook": "only a Keras that runs on this backend needs it",
    "dualflow.ops.segments": "only a variable's scattered products, maxima and minima need it",
    "dualflow.ops.sparse.indexed_slices": "only a variable's slices need it",
    "dualflow.random": "only keras.utils.set_random_seed needs it",
    "dualflow.summary": "only Keras's callback TensorBoard needs it",
    "dataclasses": "1 ms: only dataclasses of the caller's, and errors about dualflow's own, need it",
    "json": "5 ms at each start of Python: only a settings file of Keras needs it",
}
"""Modules that may be imported inside a function, with the reason."""


@dataclass(frozen=True)
class Import:
    """An import: the two modules, the line, and whether it is for type checkers only or in a function."""

    importer: str
    imported: str
    line: int
    typing_only: bool
    late: bool


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for package in PACKAGES for path in sorted(ROOT.glob(f"{package}/**/*.py"))}


@cache
def trees() -> dict[str, ast.Module]:
    """The syntax tree of each module, parsed at the first use, not when tests are collected."""
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}


def imports_of(name: str) -> Iterator[Import]:
    """Every import in a module, also those in functions and in ``if TYPE_CHECKING`` blocks."""
    pending: list[tuple[ast.AST, bool, bool]] = [(trees()[name], False, False)]
    nodes = ast.AST if computes_imports(name) else (ast.stmt, ast.ExceptHandler, ast.match_case)
    while pending:
        node, typing_only, late = pending.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(name, alias.name, node.lineno, typing_only, late)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name}:{node.lineno}: imports name their module in full"
            assert node.module is not None
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield Import(name, inner if inner in FILES else node.module, node.lineno, typing_only, late)
        elif (module := computed_import(node)) is not None:
            yield Import(name, module, node.lineno, typing_only, late=True)
        elif isinstance(node, ast.If) and is_type_checking(node.test):
            pending += [(child, True, late) for child in node.body]
        else:
            inside = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            children = (child for child in ast.iter_child_nodes(node) if isinstance(child, nodes))
            pending += [(child, typing_only, inside) for child in children]


def is_type_checking(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "TYPE_CHECKING" for node in ast.walk(test))


def computes_imports(name: str) -> bool:
    """Whether an expression of a module may import: most have none, and aren't searched."""
    return re.search(r"\b(?:import_module|imported)\(", FILES[name].read_text(encoding="utf-8")) is not None


def computed_import(node: ast.AST) -> str | None:
    """The module that ``import_module("...")`` or ``imported("...")`` names."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called in ("import_module", "imported"):
        argument = node.args[0]
        return argument.value if isinstance(argument, ast.Constant) else None
    return None


FAMILIES = {name for name in FILES if name.startswith("dualflow.ops.") and FILES[name].stem == "__init__"}


@cache
def imports() -> list[Import]:
    """Every import of every module."""
    return [i for name in FILES for i in imports_of(name)]


@cache
def package_of(module: str) -> str | None:
    """The innermost package in ``ORDER`` that contains a module; None for public namespaces."""
    inside = [p for p in LAYERS if f"{module}.".removeprefix("dualflow.").startswith(f"{p}.")]
    return max(inside, key=len, default=None)


def is_ours(module: str) -> bool:
    return module.partition(".")[0] in PACKAGES


def graph_of(imports: list[Import]) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(FILES)
    graph.add_edges_from((i.importer, i.imported) for i in imports if i.imported in FILES)
    return graph


def test_every_package_in_the_order_exists() -> None:
    assert {package_of(name) for name in FILES} - {None} == set(LOWER)


def test_the_table_of_the_architecture_has_the_packages_in_their_order() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("## Packages")[2].partition("\n## ")[0]
    names = [
        name
        for row in re.findall(r"^\| ([^|]*) \|", table, re.MULTILINE)
        for name in re.findall(r"\[(.*?)\]", row)
    ]
    levels = {name: level for level, row in reversed([*enumerate(ORDER)]) for name in row}
    ordered = [levels[name] for name in names if name in levels and "." not in name]
    assert len(ordered) > 10
    assert ordered == sorted(ordered)


def test_the_wheel_installs_these_packages_alone() -> None:
    """Another name at the top level could hide a module of the user's program, as `benchmarks` would."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert settings["targets"]["wheel"]["packages"] == [*PACKAGES]


def test_packages_import_only_lower_packages() -> None:
    wrong = []
    for statement in imports():
        here, there = package_of(statement.importer), package_of(statement.imported)
        if here is None or not is_ours(statement.imported) or here == there:
            continue
        if there is None and here.startswith("keras_dualflow.") and statement.imported.startswith("dualflow"):
            continue  # a public namespace
        if there not in LOWER[here] and not is_excepted(statement):
            wrong.append(f"{statement.importer}:{statement.line} imports {statement.imported}")
    assert wrong == []


def test_dualflow_imports_only_parts_of_the_keras_backend_that_load_neither() -> None:
    """``keras_dualflow.src`` imports Keras, which chooses its backend at its first import."""
    allowed = {f"keras_dualflow.{name}" for name in ("choice", "startup", "df_keras")}
    imported = {i.imported for i in imports() if i.importer.startswith("dualflow")}
    assert {name for name in imported if name.startswith("keras_dualflow")} == allowed


def is_excepted(statement: Import) -> bool:
    """Whether an import is for type checkers alone, and may be against the order.

    All ops return tensors, and the methods of tensors call ops.
    """
    pair = statement.importer, statement.imported
    of_ops = package_of(statement.importer) == "ops" and statement.imported == "dualflow.ops.tensor"
    return statement.typing_only and (pair in TYPES_ONLY or of_ops)


def test_imports_have_no_cycles() -> None:
    """Late imports count, and those that only a type checker sees."""
    graph = graph_of([i for i in imports() if not is_excepted(i)])
    cycles = [sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1]
    assert cycles == []


def test_passes_import_nothing_that_depends_on_the_machine() -> None:
    modules = {"dualflow.core.memory", "os", "platform", "sys", "time"}
    dependent = [
        i for i in imports() if i.importer.startswith("dualflow.graph.passes") and i.imported in modules
    ]
    assert [f"{i.importer}:{i.line} imports {i.imported}" for i in dependent] == []


def test_exceptions_are_still_needed() -> None:
    pairs = {(i.importer, i.imported) for i in imports() if i.typing_only}
    assert set(TYPES_ONLY) - pairs == set()


def test_every_folder_is_a_package_with_a_docstring() -> None:
    folders = {module_name(path.parent / "__init__.py") for path in FILES.values()}
    assert [name for name in folders if name not in FILES or ast.get_docstring(trees()[name]) is None] == []


def test_the_order_of_packages_is_acyclic() -> None:
    order = nx.DiGraph((i, j) for i, below in LOWER.items() for j in below)
    assert nx.is_directed_acyclic_graph(order)
    assert not nx.has_path(order, "eager", "graph")
    assert not any(
        nx.has_path(order, package, "eager") for package in LAYERS if package.startswith("backends")
    )


def test_imports_inside_functions_are_declared() -> None:
    def declared(module: str) -> bool:
        return any(module == name or module.startswith(f"{name}.") for name in LATE)

    late = [i for i in imports() if i.late and not i.typing_only]
    assert [f"{i.importer}:{i.line} imports {i.imported}" for i in late if not declared(i.imported)] == []


def test_no_file_is_too_long_to_read() -> None:
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in FILES.items()}
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}


def test_no_module_has_a_vague_name() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert [name for name in FILES if vague & set(name.split("."))] == []


def test_each_class_name_is_defined_once() -> None:
    """So a name in a traceback or a search is unambiguous; public names may be aliases.

    Keras's convention names some classes of its backend as dualflow's own are named.
    """
    classes = defaultdict(list)
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[name.partition(".")[0], node.name].append(f"{name}:{node.lineno}")
    assert {name: places for name, places in classes.items() if len(places) > 1} == {}


def test_flat_op_modules_import_no_family() -> None:
    """``import dualflow`` loads the flat modules of ``ops``; families are loaded with their public names."""
    base = [i for i in imports() if i.importer.startswith("dualflow.ops.") and i.importer.count(".") == 2]
    families = [f"{i.importer}:{i.line} imports {i.imported}" for i in base if is_of_family(i.imported)]
    assert families == []


def is_of_family(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in FAMILIES)


def test_importing_dualflow_loads_no_late_module() -> None:
    program = "import sys, dualflow; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(ended.stdout.split())
    assert not {*LATE, *FAMILIES, "ml_dtypes"} & loaded - {"dualflow.backends"}
    assert "numpy" in loaded


def test_importing_a_module_of_a_public_package_loads_no_advice_on_missing_names() -> None:
    """The import system looks a name up in the package first; advice on missing names takes 5 ms to load."""
    program = "import sys; from dualflow.numpy import operands; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "dualflow.core.absent" not in ended.stdout.split()


def registry() -> dict[str, Op]:
    """The ops, complete."""
    load_families()
    return dict(REGISTRY)


def test_every_op_can_be_tested() -> None:
    assert [name for name, op in registry().items() if not op.samples and op.effect is None] == []


def may_name_ops(module: str) -> bool:
    """Whether a module may name ops: in ``ops``, and in passes, whose rules are identities of ops."""
    return package_of(module) == "ops" or module.startswith("dualflow.graph.passes.")


def test_no_list_of_ops_exists_besides_the_registry() -> None:
    """Two names of ops side by side in a display are a list of ops."""
    names = set(registry())
    lists = []
    for module, tree in trees().items():
        if may_name_ops(module) or len(names & quoted_words(module)) < 2:
            continue
        exported = [statement.value for statement in tree.body if is_export_list(statement)]
        for node in ast.walk(tree):
            if isinstance(node, ast.List | ast.Tuple | ast.Set):
                items = node.elts
            elif isinstance(node, ast.Dict):
                items = [key for key in node.keys if key is not None]
            else:
                continue
            listed = [x.value for x in items if isinstance(x, ast.Constant) and x.value in names]
            if len(listed) > 1 and node not in exported:
                lists.append(f"{module}:{node.lineno} lists {listed}")
    assert lists == []


def quoted_words(module: str) -> set[str]:
    """The words of a module that have a quotation mark on each side: most modules quote no op."""
    return set(re.findall(r"""(?<=["'])\w+(?=["'])""", FILES[module].read_text(encoding="utf-8")))


def is_export_list(statement: ast.stmt) -> TypeGuard[ast.Assign]:
    """Whether a statement is ``__all__ = [...]``, which repeats the names a module exports."""
    return isinstance(statement, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == "__all__" for target in statement.targets
    )


def test_no_code_compares_names_of_ops() -> None:
    """Properties of an op are in its record; code that compares names would be a second list of ops."""
    comparison = re.compile(r"""\bop\.name\s*(==|!=|in|not in)\s*["'(\[{]""")
    lines = [
        f"{module}:{number}"
        for module, path in FILES.items()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if not may_name_ops(module) and comparison.search(line)
    ]
    assert lines == []
