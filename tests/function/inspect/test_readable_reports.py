"""What a REPL and a notebook show of reports, traces and graphs: text and pictures to read."""

from __future__ import annotations

import html
import json
import os
import pickle
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from required_tools import require_module

import dualflow as df

REPORTS: dict[str, Callable[[Any, Any], Any]] = {
    "compare": lambda f, x: df.compare(f, x),
    "verify": lambda f, x: df.verify(f, x),
    "explain": lambda f, x: f.explain(),
    "status": lambda f, x: f.status(),
    "status of a trace": lambda f, x: f.get_concrete_function(x).status(),
    "memory": lambda f, x: f.get_concrete_function(x).memory,
    "graph": lambda f, x: f.get_concrete_function(x).graph,
    "kernels": lambda f, x: f.get_concrete_function(x).kernels,
    "source": lambda f, x: f.get_concrete_function(x).source(),
    "signatures": lambda f, x: f.pretty_printed_concrete_signatures(),
    "status of an untraced function": lambda f, x: df.function(lambda y: y).status(),
}


@pytest.fixture
def function() -> Any:
    return df.function(lambda x: df.exp(x) * 2.0 + 1.0, name="f")


@pytest.mark.parametrize("name", REPORTS)
def test_the_repr_of_a_report_is_what_print_prints(name: str, function: Any) -> None:
    report = REPORTS[name](function, df.ones([3]))
    assert repr(report) == str(report)
    assert "\\n" not in repr(report).replace('"\\n"', "")


def test_a_report_that_is_text_is_a_string(function: Any) -> None:
    report = function.status()
    assert isinstance(report, str)
    assert report.splitlines()[0] == report.partition("\n")[0]
    assert json.loads(json.dumps(report)) == report
    assert pickle.loads(pickle.dumps(report)) == report


def test_the_prompt_shows_lines() -> None:
    commands = "import dualflow as df\nf = df.function(lambda x: x + 1.0, name='f')\n_ = f(df.ones([2]))\n"
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(df.__file__))}
    done = subprocess.run(
        [sys.executable, "-i", "-q"],
        input=f"{commands}f.explain()\n",
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert done.stdout.splitlines() == ["f was traced 1 time.", "1. at call 1: x: float32[2]"]


@pytest.mark.parametrize("name", ["verify", "explain", "status"])
def test_a_notebook_shows_reports_as_text_with_markup_escaped(name: str) -> None:
    unnamed = df.function(lambda x: x + 1.0)
    _ = unnamed(df.ones([2]))
    shown = REPORTS[name](unnamed, df.ones([2]))._repr_html_()
    assert "&lt;lambda&gt;" in shown
    assert "<lambda>" not in shown
    assert ElementTree.fromstring(shown).tag == "pre"


def test_a_notebook_shows_a_comparison_as_a_page_in_a_frame(function: Any) -> None:
    report = df.compare(function, df.ones([3]))
    (document,) = re.findall(r'<iframe [^>]*srcdoc="([^"]*)"></iframe>', report._repr_html_())
    assert html.unescape(document) == report.page()


def test_a_notebook_shows_a_trace_with_its_results_and_graph(function: Any) -> None:
    shown = function.get_concrete_function(df.TensorSpec([None, 3]))._repr_html_()
    root = ElementTree.fromstring(f"<div>{shown}</div>")
    text = "".join(root.itertext())
    assert text.startswith("<ConcreteFunction f(x: float32[?, 3])> -> float32[?, 3]")
    assert "exp(%x)" in text


def test_a_notebook_shows_a_picture_of_a_graph(function: Any) -> None:
    graph = function.get_concrete_function(df.TensorSpec([3])).graph
    root = ElementTree.fromstring(graph._repr_svg_())
    assert root.tag.endswith("svg")
    assert {"exp", "multiply", "add"} <= {text.strip() for text in root.itertext()}


IN_A_CELL = """
from dualflow.core.progress import progress
steps = progress("work", 4, after=0.0)
steps.step()
with steps:
    while not steps._shown:
        pass
"""


@pytest.mark.exhaustive
def test_a_notebook_shows_the_progress_of_an_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    notebooks, client = require_module("nbformat"), require_module("nbclient")
    monkeypatch.delenv("DUALFLOW_PROGRESS", raising=False)
    notebook = notebooks.v4.new_notebook(cells=[notebooks.v4.new_code_cell(IN_A_CELL)])
    root = Path(df.__file__).parents[1]
    client.NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": root}}).execute()
    shown = "".join(output.text for output in notebook.cells[0].outputs if output.name == "stderr")
    assert "work  ######------------------  25%" in shown
