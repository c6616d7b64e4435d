"""Exported WebAssembly: modules run in node and pages run in Chromium return dualflow's results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from required_tools import require_module, require_tool

import dualflow as df
from dualflow.core.errors import FailedPreconditionError
from tests.backends.c.test_exported_c import FUNCTIONS, normal, results_of
from tests.harness.chromium import Page, chromium
from tests.harness.digits_model import digits, digits_classifier

Array = np.ndarray[Any, Any]


@pytest.fixture
def clang() -> None:
    """Clang and LLD."""
    require_tool("clang")
    require_tool("wasm-ld")


SEVEN = ((0.25, 0.2), (0.75, 0.2), (0.45, 0.85))
"""The corners of a 7, as parts of the canvas's sides."""


def in_node(folder: Path, script: str) -> Any:
    """The value, as JSON, that a JavaScript module with these lines assigns to ``result``."""
    head = """
const numbers = ({ data, shape }) => ({ shape, data: Array.from(data, (x) => Number(x)) });
const failure = (call) => { try { call(); } catch (error) { return `${error.name}: ${error.message}`; } };
let result;
"""
    tail = "\nconsole.log(JSON.stringify(result));\n"
    (folder / "test.mjs").write_text(head + script + tail)
    done = subprocess.run(
        [require_tool("node"), "test.mjs"], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def exported(
    folder: Path, function: Callable[..., Any], *specs: df.TensorSpec, to: str = "wasm"
) -> list[str]:
    traced = function if hasattr(function, "get_concrete_function") else df.function(function)
    return traced.get_concrete_function(*specs).export(folder, to)


@pytest.mark.usefixtures("clang")
@pytest.mark.parametrize(
    "dynamic_sizes",
    [pytest.param(False, id="static", marks=pytest.mark.exhaustive), pytest.param(True, id="dynamic")],
)
def test_a_module_computes_in_node_what_python_computes(tmp_path: Path, dynamic_sizes: bool) -> None:
    script, expected = ["result = [];"], []
    for function, arrays in FUNCTIONS:
        (x,) = arrays
        shape = [None] * x.ndim if dynamic_sizes else list(x.shape)
        traced = df.function(function)
        exported(tmp_path, traced, df.TensorSpec(shape, x.dtype, name="x"))
        name = function.__name__
        data = f"{{ data: Float32Array.from({json.dumps(x.ravel().tolist())}), shape: {list(x.shape)} }}"
        script += [
            f'import {{ load as load_{name} }} from "./{name}.mjs";',
            f"result.push(Object.values((await load_{name}()).run({{ x: {data} }})).map(numbers));",
        ]
        expected.append(results_of(traced, arrays))
    for values, results in zip(in_node(tmp_path, "\n".join(script)), expected, strict=True):
        for value, result in zip(values, results, strict=True):
            assert value["shape"] == list(result.shape)
            np.testing.assert_allclose(value["data"], result.ravel(), rtol=3e-6, atol=1e-6)


@pytest.mark.usefixtures("clang")
def test_a_step_updates_the_arrays_of_the_caller(tmp_path: Path) -> None:
    weights = df.Variable(normal(4, 3), name="weights")

    @df.function
    def step(x: Any, y: Any) -> Any:
        with df.GradientTape() as tape:
            loss = df.reduce_mean((df.matmul(x, weights) - y) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    exported(tmp_path, step, df.TensorSpec([None, 4], name="x"), df.TensorSpec([None, 3], name="y"))
    x, y, before = normal(8, 4), normal(8, 3), np.asarray(weights)
    inputs = {"x": x, "y": y, "weights": before}
    fields = ", ".join(f"{n}: Float32Array.from({json.dumps(a.ravel().tolist())})" for n, a in inputs.items())
    result = in_node(
        tmp_path,
        'import { load } from "./step.mjs";\n'
        f"const arrays = {{ {fields} }};\n"
        "const model = await load();\n"
        "const losses = [1, 2, 3].map(() => model.run(arrays).out0.data[0]);\n"
        "result = { losses, weights: Array.from(arrays.weights) };",
    )
    np.testing.assert_allclose(result["losses"], [float(step(x, y)) for _ in range(3)], rtol=1e-5)
    np.testing.assert_allclose(result["weights"], np.asarray(weights).ravel(), rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("clang")
def test_integers_bools_and_complex_numbers_pass(tmp_path: Path) -> None:
    def mixed(n: Any, flags: Any, z: Any) -> Any:
        return n * 3, df.logical_not(flags), z * z, df.cast(n, df.uint8)

    exported(
        tmp_path,
        mixed,
        *[df.TensorSpec([2], t, name=s) for s, t in (("n", "int64"), ("flags", "bool"), ("z", "complex64"))],
    )
    result = in_node(
        tmp_path,
        'import { load } from "./mixed.mjs";\n'
        "const [n, flags] = [BigInt64Array.of(-5n, 2n ** 40n), Uint8Array.of(1, 0)];\n"
        "const inputs = { n, flags, z: Float32Array.of(1, 2, 0, 3) };\n"
        "result = Object.values((await load()).run(inputs)).map((x) => Array.from(x.data, Number));",
    )
    assert result == [[-15, 3 * 2**40], [0, 1], [-3, 4, -9, 0], [251, 0]]


@pytest.mark.usefixtures("clang")
def test_memory_grows_for_large_inputs_and_empty_ones_pass(tmp_path: Path) -> None:
    exported(tmp_path, lambda x: df.reduce_sum(x, 1), df.TensorSpec([None, None], name="x"))
    script = """
import { load } from "./program.mjs";
const model = await load();
const large = { data: new Float32Array(4e6).fill(0.25), shape: [2, 2e6] };
const sum = (x) => numbers(model.run({ x }).out0);
const empty = (...shape) => ({ data: new Float32Array(0), shape });
result = [sum(large), sum(empty(3, 0)), sum(empty(0, 3))];
"""
    assert in_node(tmp_path, script) == [
        {"shape": [2], "data": [500000, 500000]},
        {"shape": [3], "data": [0, 0, 0]},
        {"shape": [0], "data": []},
    ]


@pytest.mark.usefixtures("clang")
def test_wrong_inputs_and_failed_checks_throw_with_a_message(tmp_path: Path) -> None:
    def scaled(x: Any, y: Any) -> Any:
        df.debugging.assert_positive(x, message="sizes are positive")
        return x * y

    exported(tmp_path, scaled, df.TensorSpec([None, 2], name="x"), df.TensorSpec([None, 2], name="y"))
    script = """
import { load } from "./scaled.mjs";
const model = await load();
const f = (...numbers) => Float32Array.from(numbers);
result = [
  { x: f(1, 2) }, { x: f(1, 2), y: f(1, 2), z: f(1) },
  { x: [1, 2], y: f(1, 2) }, { x: f(1, 2, 3), y: f(1, 2) },
  { x: { data: f(1, 2), shape: [2, 1] }, y: f(1, 2) }, { x: { data: f(1, 2), shape: [3, 2] }, y: f(1, 2) },
  { x: f(1, 2, 3, 4), y: f(1, 2, 3, 4, 5, 6) }, { x: f(1, -2), y: f(1, 2) },
].map((inputs) => failure(() => model.run(inputs)));
"""
    missing, unknown, kind, count, shape, size, unequal, check = in_node(tmp_path, script)
    assert missing == "TypeError: the input y is missing; scaled takes a Float32Array (float32)."
    assert unknown == "TypeError: scaled has no input z; it takes x, y."
    assert kind == "TypeError: the input x is Array; scaled takes a Float32Array (float32)."
    assert count == "RangeError: the input x has 3 elements; scaled takes the shape [x_size0, 2]."
    assert shape == "RangeError: the input x has shape [2, 1]; scaled takes [x_size0, 2]."
    assert size == "RangeError: the input x has 2 elements, which is not the shape [3, 2]."
    assert "must be equal or 1" in unequal
    assert check.startswith("Error: sizes are positive\nCondition x > 0 did not hold\nFile ")


@pytest.mark.exhaustive
def test_ziglang_compiles_the_same_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_module("ziglang")
    node = os.path.dirname(require_tool("node"))
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    exported(tmp_path, lambda x: df.sin(x) * 2.0, df.TensorSpec([2], name="x"))
    monkeypatch.setenv("PATH", node)
    script = """
import { load } from "./program.mjs";
result = numbers((await load()).run({ x: Float32Array.of(1, 1e30) }).out0);
"""
    np.testing.assert_allclose(
        in_node(tmp_path, script)["data"], 2 * np.sin(np.float32([1, 1e30])), rtol=1e-6
    )


def test_without_a_compiler_the_error_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "ziglang", None)
    with pytest.raises(FailedPreconditionError, match="Install clang and lld, or the package ziglang"):
        exported(tmp_path, lambda x: x + 1.0, df.TensorSpec([2]))


@pytest.mark.usefixtures("clang")
def test_exported_modules_and_pages_are_replaced_and_other_files_are_not(tmp_path: Path) -> None:
    for to, names in (("wasm", ["program.wasm", "program.mjs"]), ("html", ["program.html"])):
        for _ in range(2):
            paths = exported(tmp_path, lambda x: x + 1.0, df.TensorSpec([2]), to=to)
            assert [Path(p).name for p in paths] == names
    (tmp_path / "program.wasm").write_bytes(b"\0asm\1\0\0\0")
    with pytest.raises(
        FailedPreconditionError, match=r"program\.wasm exists, and dualflow has not written it"
    ):
        exported(tmp_path, lambda x: x + 1.0, df.TensorSpec([2]))


def ready(page: Page, path: Path) -> None:
    """Open an exported page, and wait until it shows results."""
    page.open(path)
    page.value(
        "new Promise((done) => { const look = () => document.documentElement.dataset.state === 'ready'"
        " ? done() : setTimeout(look, 5); look(); })"
    )


def fits(page: Page) -> bool:
    """Whether the page is no wider than the window."""
    return bool(page.value("document.documentElement.scrollWidth <= innerWidth"))


@pytest.mark.usefixtures("clang")
def test_a_page_classifies_a_drawn_seven(tmp_path: Path) -> None:
    (path,) = exported(tmp_path, digits_classifier(), df.TensorSpec([None, 8, 8], name="image"), to="html")
    with chromium(tmp_path / "profile") as page:
        ready(page, Path(path))
        for scheme, width in (("light", 900), ("dark", 360)):
            page.appearance(scheme=scheme, width=width)
            assert fits(page)
            left, top, side = page.value(
                "(({ left, top, width }) => [left, top, width])"
                "(document.getElementById('drawing').getBoundingClientRect())"
            )
            corners = [(left + side * x, top + side * y) for x, y in SEVEN]
            line = [
                (a[0] + (b[0] - a[0]) * t / 9, a[1] + (b[1] - a[1]) * t / 9)
                for a, b in pairwise(corners)
                for t in range(10)
            ]
            page.drag(line)
            assert page.value("document.getElementById('guess').textContent") == "This is a 7."
            assert page.value("document.querySelector('.bars .best').textContent").startswith("7")
            page.value("document.querySelector('button').click()")
            assert page.value("document.getElementById('guess').textContent") == "Draw with the pointer."
        colours = page.value("getComputedStyle(document.body).backgroundColor")
        page.appearance(scheme="light", width=360)
        assert page.value("getComputedStyle(document.body).backgroundColor") != colours
        ready(page, Path(path))
        page.key("Tab")
        strokes = [*["ArrowLeft"] * 8, *["ArrowUp"] * 8, " ", *["ArrowRight"] * 14]
        for key in [*strokes, *["ArrowDown", "ArrowDown", "ArrowLeft"] * 8, " "]:
            page.key(key)
        assert page.value("document.getElementById('guess').textContent") == "This is a 7."
        assert page.errors == []


@pytest.mark.usefixtures("clang")
def test_a_page_of_another_function_has_fields_and_tables(tmp_path: Path) -> None:
    def affine(x: Any, w: Any) -> Any:
        df.debugging.assert_non_negative(w, message="weights are positive")
        return df.matmul(x, w) + 1.0

    (path,) = exported(
        tmp_path, affine, df.TensorSpec([None, 2], name="x"), df.TensorSpec([2, 2], name="w"), to="html"
    )
    table = "[...document.querySelectorAll('#outputs td')].map((cell) => Number(cell.textContent))"
    error = "document.querySelector('.error').textContent"

    def run(x: str, w: str) -> None:
        page.value(f"document.getElementById('input_x').value = {x!r}; 0")
        page.value(f"document.getElementById('input_w').value = {w!r}; 0")
        page.value("document.querySelector('button.main').click()")

    with chromium(tmp_path / "profile") as page:
        ready(page, Path(path))
        page.appearance(scheme="dark", width=360)
        assert fits(page)
        assert page.value(table) == [1, 1]
        run("1 2", "1 0 0, 3")
        assert page.value(table) == [2, 7]
        run("1 2", "1 0 0 -3")
        assert page.value(error).startswith("weights are positive")
        run("1 2 3", "1 0 0 3")
        assert page.value(error) == "x needs 2 numbers, and has 3."
        page.value(
            "(({ field }) => { field.value = 2; field.dispatchEvent(new Event('change')); })"
            "({ field: document.getElementById('x_size0') })"
        )
        run("1 2 3 4", "1 0 0 1")
        assert page.value(table) == [2, 3, 4, 5]
        assert page.value(error) == ""
        assert page.errors == []


def test_the_classifier_of_digits_is_worth_a_page() -> None:
    images, labels = digits()
    probabilities = np.asarray(digits_classifier()(images))
    assert np.mean(np.argmax(probabilities, 1) == labels) > 0.97
