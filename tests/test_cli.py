"""The command line, each command in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from forked_programs import run_forked

import dualflow as df

Run = Callable[..., subprocess.CompletedProcess[str]]

MODULE = """
import dualflow as df

SIZE = 16


def pair(x, y):
    return df.exp(x) * y


@df.function
def square(x):
    return x * x


square.example_args = (df.constant([1.0, 2.0]),)


def shown(x):
    return df.tanh(x)


shown.example_args = lambda: (df.ones([SIZE]),)


def constant():
    return df.constant(1.0) + 2.0


def grown(x):
    while df.reduce_sum(x) < 100.0:
        if x[0] > 3.0:
            x = x * 1.5
        else:
            x = x + 1.0
    return x


def wrong(x):
    return df.matmul(x, x)


def wrong_in_a_loop(x):
    for row in x:
        x = df.matmul(row, row)
    return x


class Losses:
    @staticmethod
    def mean(x):
        return df.reduce_mean(x)


@df.function(input_signature=[df.TensorSpec([None, 3]), df.TensorSpec([None], df.int32)])
def picked(x, indices):
    return df.reduce_sum(df.gather(x, indices))


@df.function(input_signature=[df.TensorSpec(None)])
def of_any_rank(x):
    return x + 1.0


class Scale:
    @df.function
    def of(self, x):
        return x * 2.0


scale = Scale()
calls = []


def counted(x):
    calls.append(x)
    return x * float(len(calls))


def crash(x):
    raise ZeroDivisionError("a bug of the user's")
"""

EXAMPLES = """
import dualflow as df


def scale(x, factor):
    return x * factor


def example_args():
    return df.ones([3]), 2.5
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs ``python -m dualflow`` in a folder with a few modules; returns the finished process."""
    (tmp_path / "model.py").write_text(MODULE)
    (tmp_path / "examples_of_its_own.py").write_text(EXAMPLES)
    (tmp_path / "broken.py").write_text("import dualflow\nraise OSError('no such disk')\n")
    (tmp_path / "needy.py").write_text("import a_module_that_nobody_wrote\n")
    folder = os.path.dirname(os.path.dirname(df.__file__))
    environment = {**os.environ, "PYTHONPATH": folder, "DUALFLOW_CACHE_DIR": str(tmp_path / "cache")}

    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return run_forked(["-m", "dualflow", *words], cwd=tmp_path, env=environment | variables)

    return run


@pytest.fixture
def console(run: Run, tmp_path: Path) -> Run:
    """Runs the console command ``dualflow``, as the script that pip writes for the project's entry point."""
    with (Path(df.__file__).parents[1] / "pyproject.toml").open("rb") as file:
        module, _, function = tomllib.load(file)["project"]["scripts"]["dualflow"].partition(":")
    script = tmp_path / "bin" / "dualflow"
    script.parent.mkdir()
    script.write_text(f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n")

    def run_script(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(script), *words]
        environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(df.__file__))}
        return subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
        )

    return run_script


def test_the_console_command_imports_from_the_current_folder(console: Run) -> None:
    done = console("graph", "model:square")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("graph square(%x: float32[2])")


def test_the_console_command_runs_modules_of_the_current_folder(console: Run, tmp_path: Path) -> None:
    (tmp_path / "printing.py").write_text("import sys, model\nprint(__name__, sys.argv[1:])\n")
    done = console("run", "-m", "printing", "one", "--two")
    assert done.stdout == "__main__ ['one', '--two']\n"


def test_messages_of_the_console_command_have_its_name(console: Run) -> None:
    assert console("graph", "model").stderr.startswith("dualflow graph: 'model' is not MODULE:FUNCTION")
    assert "usage: dualflow [-h]" in console("--help").stdout


def test_compare_prints_a_table(run: Run) -> None:
    done = run("compare", "model:pair", "--args", "df.ones([SIZE, 3]), df.zeros([3])")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "pair(x: float32[16, 3], y: float32[3])"
    assert any(line.startswith("time per call") for line in lines)
    assert any(line.startswith("work ") and "operations in 1 step" in line for line in lines)
    assert max(map(len, lines)) <= 88


@pytest.mark.parametrize("command", ["compare", "verify", "explain", "graph", "export"])
@pytest.mark.parametrize("name", ["wrong", "wrong_in_a_loop"])
def test_an_error_names_the_users_line(run: Run, command: str, name: str) -> None:
    written = ["out.py"] if command == "export" else []
    done = run(command, f"model:{name}", *written, "--args", "df.ones([2, 3])")
    assert done.returncode == 2
    assert "takes matrices" in done.stderr or "multipl" in done.stderr or "matmul" in done.stderr
    line = next(i for i, text in enumerate(MODULE.splitlines(), 1) if f"def {name}(" in text)
    assert f'model.py", line {line + 1}, in {name}' in done.stderr
    assert "dualflow/" not in done.stderr.replace("python -m dualflow", "")


def test_compare_writes_a_page(run: Run, tmp_path: Path) -> None:
    done = run("compare", "model:constant", "--html", str(tmp_path / "report.html"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("constant()")
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_page_that_cannot_be_written_is_reported_in_words(run: Run) -> None:
    done = run("compare", "model:constant", "--html", "nowhere/report.html")
    assert done.returncode == 2
    assert "nowhere/report.html can't be written: No such file or directory." in done.stderr


def test_compare_prints_json(run: Run) -> None:
    done = run("compare", "model:pair", "--json", "--args", "df.ones([4])", "y=np.float32(2)")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["name"] == "pair"
    assert report["agrees"] is True
    assert report["eager_ops"] == {"exp": 1, "multiply": 1}
    assert report["workload"]["steps"] == report["workload"]["parallelism"] == 1


def test_compare_takes_functions_with_loops_and_choices(run: Run) -> None:
    done = run("compare", "model.py:grown", "--json", "--args", "df.ones([4])")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["agrees"] is True


@pytest.mark.parametrize(
    ("function", "first"),
    [
        ("model:square", "square(x: float32[2])"),
        ("model:shown", "shown(x: float32[16])"),
        ("examples_of_its_own:scale", "scale(x: float32[3], factor: 2.5)"),
        ("model:constant", "constant()"),
        ("model.py:square", "square(x: float32[2])"),
        ("model:picked", "picked(x: float32[?, 3], indices: int32[?])"),
    ],
    ids=[
        "attribute",
        "function that answers them",
        "of the module",
        "none needed",
        "file",
        "input signature",
    ],
)
def test_arguments_are_found_where_the_module_gives_them(run: Run, function: str, first: str) -> None:
    done = run("verify", function)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{first} agrees")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["graph", "model:picked"], "graph picked(%x: float32[?, 3], %indices: int32[?])"),
        (["graph", "model:picked", "--optimised"], "graph picked(%x: float32[n0, 3], %indices: int32[n1])"),
        (["export", "model:picked", "out.py"], "out.py: "),
        (["export", "model:picked", "out/", "--to", "c"], "picked.h"),
    ],
)
def test_an_input_signature_needs_no_arguments(run: Run, words: list[str], text: str) -> None:
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert text in done.stdout


def test_dots_lead_into_classes(run: Run) -> None:
    done = run("verify", "model:Losses.mean", "--args", "df.ones([5])")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["model"], "'model' is not MODULE:FUNCTION"),
        (["nowhere:f"], "there is no module 'nowhere'"),
        (["nowhere.py:f"], "there is no file 'nowhere.py'"),
        (["needy:f"], "needs the module a_module_that_nobody_wrote"),
        (["broken:f"], "broken can't be imported: OSError: no such disk"),
        (["broken.py:f"], "broken.py can't be imported: OSError: no such disk"),
        (["model:sqare"], "model has no 'sqare'; its functions are pair, square, shown"),
        (["model:Losses.sum"], "model:Losses has no 'sum'; its functions are mean"),
        (["model:SIZE"], "model:SIZE is 16, which can't be called"),
        (["model:pair"], "pair takes x, y: give its arguments"),
        (["model:of_any_rank"], "has an unknown rank: give the arguments with --args"),
        (["model:pair", "--args", "df.ones("], "can't be evaluated: SyntaxError"),
        (["model:pair", "--args", "unknown"], "can't be evaluated: NameError"),
        (["model:pair", "--args", "df.ones([2])"], "missing a required argument: 'y'"),
        (["model:pair", "--args", "df.ones([2]), df.ones([3])"], "do not broadcast"),
        (
            ["model:square", "--args", "df.ones([2])", "--device", "/CPU:0"],
            "'/CPU:0' is no device to compare",
        ),
    ],
)
def test_compare_reports_unsupported_functions(run: Run, words: list[str], message: str) -> None:
    done = run("compare", *words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("python -m dualflow compare: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_verify_prints_that_the_results_agree(run: Run) -> None:
    done = run("verify", "model:pair", "--args", "df.TensorSpec([None])", "df.ones([])")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("pair(x: float32[32], y: float32[]) agrees")


def test_verify_exits_with_1_and_the_line_that_differs(run: Run) -> None:
    done = run("verify", "model.py:counted", "--args", "df.ones([2])")
    assert (done.returncode, done.stderr) == (1, "")
    line = next(i for i, text in enumerate(MODULE.splitlines(), 1) if "float(len(calls))" in text)
    assert "multiply" in done.stdout
    assert f'model.py", line {line}, in counted' in done.stdout


@pytest.mark.parametrize("function", ["model:square", "model:scale.of"])
def test_explain_prints_the_traces_and_how_each_part_runs(run: Run, function: str) -> None:
    done = run("explain", function, "--args", "df.TensorSpec([3])")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    name = function.rpartition(":")[2].rpartition(".")[2]
    assert lines[0] == f"{name} was traced 1 time."
    assert "x: float32[3]" in lines[1]
    assert lines[3] == f"<ConcreteFunction {name}(x: float32[3])>"
    assert "in this process" in lines


def test_a_bug_of_the_users_keeps_its_traceback(run: Run) -> None:
    done = run("compare", "model:crash", "--args", "1.0")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "ZeroDivisionError: a bug of the user's" in done.stderr


def test_info_prints_what_show_config_prints(run: Run) -> None:
    done = run("info")
    assert done.returncode == 0, done.stderr
    rows = [line[:16].strip() for line in done.stdout.splitlines()]
    assert rows[:3] == ["dualflow", "Python", "numpy"]
    assert {"LLVM", "backend", "processor", "vectors", "C fast call", "cached", "BLAS"} <= set(rows)


def test_info_as_json_is_plain_data(run: Run) -> None:
    report = json.loads(run("info", "--json").stdout)
    assert report["versions"]["dualflow"] == df.version.DUALFLOW
    assert report["cache"]["objects"] == 0


@pytest.mark.llvm
def test_the_cache_in_info_grows_with_what_was_compiled(run: Run) -> None:
    assert run("compare", "model:constant", "--json").returncode == 0
    assert run("compare", "model:square", "--json").returncode == 0
    cache = json.loads(run("info", "--json").stdout)["cache"]
    assert cache["objects"] > 0
    assert cache["bytes"] > 0


@pytest.mark.llvm
def test_cache_prints_its_size_and_clears_nothing_but_compiled_code(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    assert run("cache", "size").stdout == f"{folder}: 0 objects, 0 B, at most 512 MiB\n"
    assert run("explain", "model:square").returncode == 0
    (folder / "notes.txt").write_text("mine")
    count = len([*folder.glob("*.dfo")])
    assert count > 0
    assert run("cache", "size").stdout.startswith(f"{folder}: {count} object")
    done = run("cache", "clear")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{folder}: {count} object")
    assert done.stdout.endswith(" removed\n")
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("action", ["size", "clear"])
def test_without_a_cache_the_command_gives_the_reason(run: Run, action: str) -> None:
    done = run("cache", action, DUALFLOW_CACHE_DIR="")
    assert done.returncode == 2
    assert done.stderr == "python -m dualflow cache: no code is kept on disk: DUALFLOW_CACHE_DIR is empty.\n"


def test_cache_reports_what_it_cannot_remove(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cache" / f"{'0' * 64}.dfo").mkdir(parents=True)  # which is no entry
    done = run("cache", "clear")
    assert done.returncode == 2
    assert "1 object" in done.stderr
    assert "can't be removed" in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["compare", "--help"], ["info", "--help"]])
def test_help_is_printed_on_request(run: Run, words: list[str]) -> None:
    done = run(*words)
    assert done.returncode == 0
    assert "usage: python -m dualflow" in done.stdout


def test_a_reader_that_ends_early_is_no_error(console: Run, tmp_path: Path) -> None:
    console("info")  # it writes the script
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "bin" / "dualflow"), "info"],
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(df.__file__))},
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_version_is_printed_on_request(run: Run) -> None:
    assert run("--version").stdout.strip() == f"dualflow {df.version.DUALFLOW}"


@pytest.mark.parametrize("words", [[], ["compare"], ["cmpare", "model:pair"], ["info", "--all"]])
def test_wrong_words_are_an_error_with_the_usage(run: Run, words: list[str]) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert "usage: python -m dualflow" in done.stderr
    assert "Traceback" not in done.stderr


def test_graph_prints_the_trace_and_runs_nothing(run: Run) -> None:
    done = run("graph", "model:pair", "--args", "df.TensorSpec([SIZE, 3])", "df.TensorSpec([3])")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "graph pair(%x: float32[16, 3], %y: float32[3])"
    assert lines[1] == "    %0: float32[16, 3] = exp(%x)   # model.py:8"
    assert lines[-1] == "    return %1"


def test_graph_prints_what_runs_with_optimised(run: Run) -> None:
    done = run("graph", "model:square", "--optimised")
    assert done.returncode == 0, done.stderr
    assert "multiply(%x, %x)" in done.stdout
    fused = run("graph", "model:pair", "--optimised", "--args", "df.ones([64])", "df.ones([64])")
    assert "= fused(%x, %y)" in fused.stdout


def test_graph_draws_a_picture(run: Run, tmp_path: Path) -> None:
    done = run("graph", "model:square", "--draw", "square.svg")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("graph square(%x: float32[2])")
    assert "multiply" in (tmp_path / "square.svg").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["model:square", "--draw", "square.gif"], "has no extension of a picture"),
        (
            ["model:square", "--draw", "nowhere/square.svg"],
            "nowhere/square.svg can't be written: No such",
        ),
        (["model:pair"], "pair takes x, y: give its arguments"),
        (["model"], "'model' is not MODULE:FUNCTION"),
    ],
)
def test_a_graph_that_cannot_be_shown_is_reported_in_words(run: Run, words: list[str], message: str) -> None:
    done = run("graph", *words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr


def test_export_replaces_only_what_it_has_written(run: Run, tmp_path: Path) -> None:
    for _ in range(2):  # the second time over its own file
        done = run("export", "model:square", "step.py")
        assert done.returncode == 0, done.stderr
    exported = (tmp_path / "step.py").read_text()
    assert exported.startswith("# Written by python -m dualflow export")
    compile(exported, "step.py", "exec")
    (tmp_path / "notes.py").write_text("x = 1\n")
    done = run("export", "model:square", "notes.py")
    assert done.returncode == 2
    assert "notes.py exists, and dualflow has not written it" in done.stderr
    assert (tmp_path / "notes.py").read_text() == "x = 1\n"
    assert run("export", "model:square", "notes.py", "--force").returncode == 0
    assert (tmp_path / "notes.py").read_text() == exported


@pytest.mark.parametrize("options", [[], ["--force"]])
@pytest.mark.parametrize("target", ["model.py", "link.py"])
def test_export_never_replaces_the_functions_own_file(
    run: Run, tmp_path: Path, target: str, options: list[str]
) -> None:
    source = (tmp_path / "model.py").read_text()
    (tmp_path / "link.py").symlink_to("model.py")
    done = run("export", "model.py:square", target, *options)
    assert done.returncode == 2
    assert f"{target} is the file of the function itself" in done.stderr
    assert (tmp_path / "model.py").read_text() == source
    assert [path for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []
