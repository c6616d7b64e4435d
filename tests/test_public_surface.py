"""What ``dir``, ``help`` and tab show of each public namespace, and the error for another name."""

from __future__ import annotations

import inspect
import pydoc
import re
import subprocess
import sys
from collections import Counter
from types import FunctionType, ModuleType
from typing import Any

import pytest

import dualflow as df
from dualflow.compat import v1
from dualflow.core import absent, errors

NAMESPACES: dict[str, Any] = {
    "df": df,
    "df.array_api": df.array_api,
    "df.array_api.fft": df.array_api.fft,
    "df.array_api.linalg": df.array_api.linalg,
    "df.autograph": df.autograph,
    "df.audio": df.audio,
    "df.autodiff": df.autodiff,
    "df.bitwise": df.bitwise,
    "df.compat": df.compat,
    "df.compat.v1": v1,
    "df.compat.v1.app": v1.app,
    "df.compat.v1.data": v1.data,
    "df.compat.v1.gfile": v1.gfile,
    "df.compat.v1.graph_util": v1.graph_util,
    "df.compat.v1.initializers": v1.initializers,
    "df.compat.v1.layers": v1.layers,
    "df.compat.v1.logging": v1.logging,
    "df.compat.v1.losses": v1.losses,
    "df.compat.v1.math": v1.math,
    "df.compat.v1.metrics": v1.metrics,
    "df.compat.v1.nn": v1.nn,
    "df.compat.v1.random": v1.random,
    "df.compat.v1.summary": v1.summary,
    "df.compat.v1.train": v1.train,
    "df.config": df.config,
    "df.contrib": df.contrib,
    "df.contrib.metrics": df.eager.metrics,
    "df.contrib.summary": df.contrib.summary,
    "df.config.experimental": df.config.experimental,
    "df.config.optimizer": df.config.optimizer,
    "df.data": df.data,
    "df.data.experimental": df.data.experimental,
    "df.debugging": df.debugging,
    "df.distribute": df.distribute,
    "df.distribute.cluster_resolver": df.distribute.cluster_resolver,
    "df.distribute.experimental": df.distribute.experimental,
    "df.dtypes": df.dtypes,
    "df.eager": df.eager,
    "df.errors": df.errors,
    "df.experimental": df.experimental,
    "df.experimental.extension_type": df.experimental.extension_type,
    "df.image": df.image,
    "df.initializers": df.initializers,
    "df.io": df.io,
    "df.io.gfile": df.io.gfile,
    "df.linalg": df.linalg,
    "df.lookup": df.lookup,
    "df.lookup.experimental": df.lookup.experimental,
    "df.math": df.math,
    "df.math.special": df.math.special,
    "df.nest": df.nest,
    "df.nn": df.nn,
    "df.numpy": df.numpy,
    "df.numpy.fft": df.numpy.fft,
    "df.numpy.linalg": df.numpy.linalg,
    "df.numpy.random": df.numpy.random,
    "df.profiler": df.profiler,
    "df.profiler.experimental": df.profiler.experimental,
    "df.graph_util": df.graph_util,
    "df.quantization": df.quantization,
    "df.ragged": df.ragged,
    "df.random": df.random,
    "df.random.experimental": df.random.experimental,
    "df.raw_ops": df.raw_ops,
    "df.rewrite": df.rewrite,
    "df.onnx": df.onnx,
    "df.saved_model": df.saved_model,
    "df.signal": df.signal,
    "df.sets": df.sets,
    "df.sparse": df.sparse,
    "df.strings": df.strings,
    "df.summary": df.summary,
    "df.summary.experimental": df.summary.experimental,
    "df.sysconfig": df.sysconfig,
    "df.test": df.test,
    "df.train": df.train,
    "df.train.experimental": df.train.experimental,
    "df.types": df.types,
    "df.types.experimental": df.types.experimental,
    "df.version": df.version,
    "df.xla": df.xla,
    "df.xla.experimental": df.xla.experimental,
}
MODULES = {path.rpartition(".")[2] for path in NAMESPACES} | {"v2", "flags", "rnn_cell"}
"""The namespaces that other namespaces show; ``compat.v2`` is dualflow itself, ``v1.flags`` Abseil's."""
KERAS = {"keras", "losses", "metrics", "optimizers"}
"""The namespaces of Keras."""
MESSAGES = {"Event", "Summary"}
"""Messages of tensorboardX."""


@pytest.fixture(params=NAMESPACES)
def namespace(request: pytest.FixtureRequest) -> Any:
    return NAMESPACES[request.param]


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def last_line(program: str) -> str:
    return run(program).stderr.strip().splitlines()[-1]


# What is shown


def test_a_namespace_shows_public_names_only(namespace: Any) -> None:
    names = dir(namespace)
    assert names == sorted(set(names))
    assert [name for name in names if name.startswith("_")] == []
    assert sorted(namespace.__all__) == names


def test_a_namespace_shows_what_is_of_this_package(namespace: Any) -> None:
    foreign = []
    for name in sorted(set(dir(namespace)) - KERAS - MESSAGES):
        value = getattr(namespace, name)
        owner = value if isinstance(value, type | FunctionType) else type(value)
        ours = (
            value is None
            or isinstance(value, str | int | float | tuple)
            or name in MODULES
            or owner.__module__.startswith("dualflow")
        )
        if not ours or (isinstance(value, ModuleType) and name not in MODULES):
            foreign.append(name)
    assert foreign == []


def test_every_name_is_documented(namespace: Any) -> None:
    assert inspect.getdoc(namespace)
    values = {name: getattr(namespace, name) for name in dir(namespace)}
    assert [name for name, value in values.items() if value is not None and not inspect.getdoc(value)] == []


def test_help_shows_every_function(namespace: Any) -> None:
    text = pydoc.render_doc(namespace, renderer=pydoc.plaintext)
    functions = [n for n in dir(namespace) if isinstance(getattr(namespace, n), FunctionType)]
    assert [name for name in functions if f"{name}" not in text] == []
    if functions:
        assert inspect.getdoc(getattr(namespace, functions[0])).splitlines()[0] in text  # type: ignore[union-attr]


def test_dir_shows_names_of_all() -> None:
    assert {"add", "compat", "float32", "estimator"} & set(dir(df)) == {"add", "compat", "float32"}
    assert {"Session", "placeholder", "float32", "matmul"} <= set(dir(v1))


def test_every_error_is_among_the_errors() -> None:
    written = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert written - {"annotations"} <= set(dir(df.errors))


def test_errors_are_imported_by_name() -> None:
    assert run("from dualflow.errors import InvalidArgumentError, OutOfRangeError").returncode == 0


@pytest.mark.parametrize(
    ("package", "extra", "namespace", "hidden"),
    [
        ("keras", "keras", "dualflow", KERAS - {"keras"}),
        ("tensorboardX", "summary", "dualflow.compat.v1", MESSAGES),
        ("tensorboardX", "summary", "dualflow.compat.v1.summary", MESSAGES),
    ],
)
def test_names_of_a_package_that_is_not_installed_are_not_shown(
    package: str, extra: str, namespace: str, hidden: set[str]
) -> None:
    program = f"""
import sys
sys.modules[{package!r}] = None
from {namespace} import *
import {namespace} as space
assert not {hidden} & set(dir(space))
space.{min(hidden)}
"""
    assert re.search(rf"pip install .dualflow\[{extra}\]", last_line(program))


# What is not there


@pytest.mark.parametrize(
    ("place", "name", "advice"),
    [
        ("df", "random_normal", "use df.random.normal."),
        ("df", "placeholder", "use df.compat.v1.placeholder."),
        ("df", "sum", "use df.reduce_sum."),
        ("df", "top_k", "use df.math.top_k."),
        ("df", "CriticalSection", "hold a threading.Lock around more"),
        ("df", "zeross", "Did you mean 'zeros'?"),
        ("df.math", "sum", "use df.reduce_sum."),
        ("df.nn", "dropuot", "Did you mean 'dropout'?"),
        ("df.summary", "FileWriter", "use df.compat.v1.summary.FileWriter"),
        ("df.compat.v1.nn", "rleu", "Did you mean 'relu'"),
        ("df.compat.v1.train", "import_meta_graph", "a checkpoint has no graph"),
        ("df.array_api", "transpose", "use df.array_api.permute_dims."),
        ("df.array_api", "cumsum", "use df.array_api.cumulative_sum."),
        ("df.linalg", "experimental", "write the iteration with df.while_loop"),
    ],
)
def test_a_missing_name_reports_what_to_use(place: str, name: str, advice: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(NAMESPACES[place], name)
    assert f"has no attribute {name!r}" in str(caught.value)
    assert advice in str(caught.value)


def test_nothing_has_a_name_that_nothing_made(namespace: Any) -> None:
    assert not hasattr(namespace, "nosuch")
    assert not hasattr(namespace, "_nosuch")


def test_a_missing_name_points_at_the_users_line() -> None:
    lines = run("import dualflow as df\ndf.estimator").stderr.splitlines()
    assert [line for line in lines if line.startswith("  File")] == ['  File "<string>", line 2, in <module>']
    assert "Did you mean" not in lines[-1]


def test_a_missing_names_error_has_the_name() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = df.estimator
    assert caught.value.name == "estimator"
    assert caught.value.obj is None


def test_importing_a_missing_name_reports_what_to_use() -> None:
    last = last_line("from dualflow import estimator")
    assert "MissingNameError" in last
    assert "write the training loop" in last
    assert "Did you mean 'dropout'" in last_line("from dualflow.nn import dropuot")


def test_importing_a_missing_name_is_an_import_error() -> None:
    with pytest.raises(ImportError):
        exec("from dualflow import estimator")


def test_every_place_that_is_named_exists() -> None:
    for section, name, advice in absent.rows():
        if advice is None or not advice.startswith("use df.") or " " in advice.removeprefix("use "):
            continue
        value: Any = df
        for part in advice.removeprefix("use df.").split("."):
            assert hasattr(value, part), (section, name, advice)
            value = getattr(value, part)


def test_asking_for_a_missing_name_imports_nothing_heavy() -> None:
    program = (
        "import sys, dualflow as df; hasattr(df, 'estimator'); print('dualflow.compat.v1' in sys.modules)"
    )
    assert run(program).stdout.strip() == "False"


def test_a_name_has_one_row_in_each_namespace() -> None:
    named = [(row.section, row.name) for row in absent.rows()]
    assert [name for name, count in Counter(named).items() if count > 1] == []


@pytest.mark.parametrize("place", ["dualflow.linalg", "dualflow.numpy.fft"])
def test_importing_a_missing_name_from_a_namespace_of_one_file_reports_what_to_use(place: str) -> None:
    with pytest.raises(errors.MissingNameError, match=f"module '{place}' has no attribute 'nosuch'"):
        exec(f"from {place} import nosuch")


def test_importing_an_internal_package_imports_it() -> None:
    assert run("from dualflow import schedule").returncode == 0
