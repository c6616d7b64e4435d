"""``python -m dualflow run``: programs written for TensorFlow, as processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import dualflow as df
from dualflow.cli import main

Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]

IMPORTS = """
import json, subprocess, sys
import tensorflow as tf
import tensorflow.compat.v1 as tf1
import tensorflow.experimental.numpy as tnp
import tensorflow.math
from tensorflow import linalg, nn
from tensorflow.data import Dataset
import neighbour

child = "import sys; print('dualflow' in sys.modules, [type(f).__name__ for f in sys.meta_path])"
print(json.dumps({
    "argv": sys.argv,
    "name": __name__,
    "main": sys.modules["__main__"].__dict__ is globals(),
    "names": [__file__, __package__, __spec__, __cached__],
    "path": sys.path[0],
    "modules": [tf.__name__, tf1.__name__, tensorflow.math.__name__, linalg.__name__, nn.__name__],
    "spec": tf.__spec__.name,
    "dataset": Dataset is tf.data.Dataset,
    "numpy": tnp is tf.experimental.numpy,
    "sum": float(tf.reduce_sum(tf.ones([3]))),
    "child": subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout,
}))
sys.exit(3)
"""

MISSING = """
import importlib

for name in ("contrib.layers", "matmul", "python.kernel_tests", "keraz", "keras.layers.experimental"):
    try:
        importlib.import_module(f"tensorflow.{name}")
    except ModuleNotFoundError as error:
        print(error.name, "|", error)
try:
    from tensorflow import placeholder
except ImportError as error:
    print(error.name, "|", error)
try:
    import tensorflow_abacus
except ModuleNotFoundError as error:
    print(error.name, "|", error)
"""

TOLD = {
    "tensorflow.contrib.layers": "'dualflow.contrib' has no attribute 'layers': use df.compat.v1.layers.",
    "tensorflow.matmul": "it is an object, from tensorflow import matmul.",
    "tensorflow.python.kernel_tests": "No module named 'tensorflow.python.kernel_tests': use the public name",
    "tensorflow.keraz": "module 'dualflow' has no attribute 'keraz'. Did you mean 'keras'?",
    "tensorflow.keras.layers.experimental": "No module named 'tensorflow.keras.layers.experimental'.",
    "placeholder": "module 'dualflow' has no attribute 'placeholder': use df.compat.v1.placeholder.",
    "tensorflow_abacus": "No module named 'tensorflow_abacus'",
}

FAILING = """
import json


def outer(x):
    return inner(x)


def inner(x):
    try:
        json.loads("[")
    except ValueError as error:
        raise {error} from error


outer(1)
"""

OF_DUALFLOW = """
import tensorflow as tf

def product(x):
    return tf.matmul(x, x)

product(tf.ones([2, 3]))
"""

SPAWNING = """
import multiprocessing
import sys
import tensorflow as tf

def double(x):
    return tf.__name__, __name__, int(tf.constant(x) * 2)

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(1) as pool:
        print(pool.map(double, [1, 4]))
"""


TENSORFLOW_1 = """
import sys
{imports}

x = tf.placeholder(tf.float32, [2, 3], name="x")
loss = tf.reduce_sum(tf.square(x), name="loss")
with tf.Session() as session:
    total = session.run(loss, {{x: [[1.0, 2.0, 3.0]] * 2}})
print(total, loss.name, x.shape[0].value, bool(loss.shape))
print(tf.compat.v1 is tf, tf.compat.v2.__name__)
"""

EAGER_TENSORFLOW_1 = """
from __future__ import absolute_import, division, print_function
import tensorflow as tf
import tensorflow.contrib.eager as tfe

tfe.enable_eager_execution()
w = tfe.Variable(3.0, name="w")
grad = tfe.implicit_gradients(lambda x: w * x * w)
tf.train.GradientDescentOptimizer(0.1).apply_gradients(grad(2.0))
print(w.numpy(), tf.random_uniform([2]).shape, tf.executing_eagerly())
"""

BOTH_VERSIONS = """
import tensorflow as tf
try:
    tf.placeholder
except AttributeError:
    tf = tf.compat.v1
print(tf.__name__, tf.executing_eagerly())
"""

SPAWNING_1 = """
import multiprocessing
import tensorflow as tf

def double(x):
    with tf.Session() as session:
        return tf.__name__, float(session.run(tf.constant(x) * 2.0))

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(double, [1.0, 4.0]))
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs Python with these words in a folder of its own."""
    folder = os.path.dirname(os.path.dirname(df.__file__))
    environment = {**os.environ, "PYTHONPATH": folder, "DUALFLOW_CACHE_DIR": str(tmp_path / "cache")}

    def run(*words: str, stdin: str = "") -> Done:
        return subprocess.run(
            [sys.executable, *words],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            check=False,
            input=stdin,
        )

    return run


def test_tensorflow_s_modules_are_dualflow_s_namespaces(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "program.py").write_text(IMPORTS)
    (folder / "neighbour.py").write_text("import tensorflow")
    done = run("-m", "dualflow", "run", "programs/program.py", "--epochs", "-m", "run")
    assert done.returncode == 3, done.stderr
    assert done.stderr == f"dualflow {df.version.DUALFLOW} stands in for tensorflow in this process.\n"
    modules = json.loads(done.stdout)
    assert modules["argv"] == ["programs/program.py", "--epochs", "-m", "run"]
    assert (modules["name"], modules["main"]) == ("__main__", True)
    assert modules["names"] == [str(folder / "program.py"), None, None, None]
    assert modules["path"] == str(folder)
    names = ["", ".compat.v1", ".math", ".linalg", ".nn"]
    assert modules["modules"] == [f"dualflow{name}" for name in names]
    assert modules["spec"] == "dualflow"
    assert modules["dataset"] is True
    assert modules["numpy"] is True
    assert modules["sum"] == 3.0
    assert modules["child"].startswith("False ")
    assert "StandIn" not in modules["child"]


def test_tensors_are_of_the_module_tensorflow(run: Run, tmp_path: Path) -> None:
    """By which eagerpy, autoray and opt_einsum recognise them."""
    (tmp_path / "recognise.py").write_text(
        "import pickle\nimport tensorflow as tf\n"
        "x, seen = tf.constant([1.0]), []\n"
        "tf.function(lambda x: seen.append(x) or x)(x)\n"
        "print({type(v).__module__ for v in (x, tf.Variable(1.0), *seen)}, isinstance(x, tf.Tensor))\n"
        "open('x.pkl', 'wb').write(pickle.dumps([x, tf.Variable(2.0)]))\n"
    )
    done = run("-m", "dualflow", "run", "recognise.py")
    assert done.stdout == "{'tensorflow'} True\n", done.stderr
    done = run("-c", "import pickle; print([float(x) for x in pickle.load(open('x.pkl', 'rb'))])")
    assert done.stdout == "[1.0, 2.0]\n", done.stderr


def test_a_module_that_is_not_there_reports_what_to_use(run: Run, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(MISSING)
    done = run("-m", "dualflow", "run", "program.py")
    messages = dict(line.split(" | ", 1) for line in done.stdout.splitlines())
    assert messages.keys() == TOLD.keys()
    for name, message in TOLD.items():
        assert message in messages[name]


@pytest.mark.parametrize("error", ["KeyError(x)", "SystemExit(7)", "KeyboardInterrupt"])
def test_a_program_ends_as_python_ends_it(run: Run, tmp_path: Path, error: str) -> None:
    (tmp_path / "program.py").write_text(FAILING.format(error=error))
    expected, ended = run("program.py"), run("-m", "dualflow", "run", "program.py")
    assert (ended.returncode, ended.stdout, ended.stderr) == (
        expected.returncode,
        expected.stdout,
        expected.stderr,
    )
    assert ended.returncode in (1, 7, -signal.SIGINT)


def test_a_syntax_error_is_shown_as_python_shows_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("def f(:\n    pass\n")
    expected, ended = run("program.py"), run("-m", "dualflow", "run", "program.py")
    assert (ended.returncode, ended.stderr) == (1, expected.stderr)


def test_the_traceback_of_an_error_of_dualflow_has_the_program_s_frames(run: Run, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(OF_DUALFLOW)
    lines = run("-m", "dualflow", "run", "program.py").stderr.splitlines()
    frames = [line.strip() for line in lines if line.startswith('  File "')]
    file = tmp_path / "program.py"
    assert frames == [f'File "{file}", line 7, in <module>', f'File "{file}", line 5, in product']


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_of_multiprocessing_have_dualflow_too(run: Run, tmp_path: Path, method: str) -> None:
    (tmp_path / "program.py").write_text(SPAWNING)
    done = run("-m", "dualflow", "run", "program.py", method)
    assert done.stdout == "[('dualflow', '__mp_main__', 2), ('dualflow', '__mp_main__', 8)]\n", done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("imports", "name"),
    [
        ("import tensorflow as tf", "tf.placeholder"),
        ("import tensorflow\ntf = tensorflow\ntensorflow.set_random_seed(1)", "tensorflow.set_random_seed"),
        ("from tensorflow import Session\nimport tensorflow as tf", "tensorflow.Session"),
        ("import tensorflow.contrib.eager as tfe\nimport tensorflow as tf", "tensorflow.contrib.eager"),
    ],
)
def test_a_program_for_tensorflow_1_builds_graphs(run: Run, tmp_path: Path, imports: str, name: str) -> None:
    (tmp_path / "program.py").write_text(TENSORFLOW_1.format(imports=imports))
    done = run("-m", "dualflow", "run", "program.py")
    assert done.stdout.splitlines() == ["28.0 loss:0 2 True", "True dualflow"], done.stderr
    reason = f"program.py uses {name} of TensorFlow 1: it runs as with --v1.\n"
    assert (
        done.stderr == f"{reason}dualflow {df.version.DUALFLOW} stands in for tensorflow 1 in this process.\n"
    )


def test_a_module_for_tensorflow_1_is_run_by_the_option(run: Run, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(TENSORFLOW_1.format(imports="import tensorflow as tf"))
    done = run("-m", "dualflow", "run", "--v1", "-m", "program", "--v1")
    assert done.stdout.splitlines() == ["28.0 loss:0 2 True", "True dualflow"], done.stderr


def test_a_program_for_tensorflow_1_may_run_eagerly(run: Run, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(EAGER_TENSORFLOW_1)
    done = run("-m", "dualflow", "run", "program.py")
    assert done.stdout == "1.8 (2,) True\n", done.stderr


def test_a_program_for_both_versions_gets_the_second(run: Run, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(BOTH_VERSIONS)
    done = run("-m", "dualflow", "run", "program.py")
    assert done.stdout == "dualflow.compat.v1 True\n", done.stderr


def test_a_program_for_tensorflow_2_imports_no_names_of_the_first(run: Run, tmp_path: Path) -> None:
    lines = ["import sys", "import tensorflow as tf", "before = 'dualflow.compat.v1' in sys.modules"]
    lines += ["print(before, tf.compat.v1.placeholder.__name__)"]
    (tmp_path / "program.py").write_text("\n".join(lines))
    done = run("-m", "dualflow", "run", "program.py")
    assert done.stdout == "False placeholder\n", done.stderr


def test_processes_of_multiprocessing_have_tensorflow_1_too(run: Run, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SPAWNING_1)
    done = run("-m", "dualflow", "run", "program.py")
    assert done.stdout == "[('dualflow.compat.v1', 2.0), ('dualflow.compat.v1', 8.0)]\n", done.stderr


def test_a_module_is_run_by_its_name(run: Run, tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("import tensorflow")
    (package / "__main__.py").write_text("import sys\nprint(sys.argv, __spec__.name, __package__)")
    done = run("-m", "dualflow", "run", "-m", "package", "-m", "x")
    assert done.stdout == f"{[str(package / '__main__.py'), '-m', 'x']} package.__main__ package\n"


def test_programs_can_be_debugged(run: Run, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(OF_DUALFLOW)
    done = run(
        "-m", "dualflow", "run", "-m", "pdb", "program.py", stdin="b 5\nc\np x.shape, tf.__name__\nq\n"
    )
    assert "program.py(5)product()" in done.stdout
    assert "((2, 3), 'dualflow')" in done.stdout


def test_an_archive_is_a_program(run: Run, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "program.pyz", "w") as archive:
        archive.writestr("__main__.py", "import part, tensorflow\nprint(part.X, tensorflow.__name__)")
        archive.writestr("part.py", "X = 1")
    assert run("-m", "dualflow", "run", "program.pyz").stdout == "1 dualflow\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.py"], "there is no file 'nowhere.py'"),
        (["."], ". has no __main__.py"),
        (["-m", "nowhere"], "there is no module 'nowhere' that can be run"),
        (["-m", "json.nowhere"], "there is no module 'json.nowhere' that can be run"),
    ],
)
def test_an_unusable_program_path_is_reported(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    assert main(["run", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_process_that_has_tensorflow_itself_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", ModuleType("tensorflow"))
    assert main(["run", "program.py"]) == 2
    assert "TensorFlow is imported in this process already" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["run"], ["run", "-m"], ["run", "--unknown"]])
def test_without_a_program_the_usage_is_shown(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert "python -m dualflow run [--v1] (FILE | -m MODULE)" in capsys.readouterr().err
