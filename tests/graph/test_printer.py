"""The text form of graphs."""

from __future__ import annotations

import re

import numpy as np

import dualflow as df
from dualflow.core.spec import TensorSpec
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.pipeline import optimise


def test_a_line_shows_value_spec_op_inputs_and_the_users_line(traced):
    graph = traced(lambda x, w: df.matmul(x, w), TensorSpec([2, 3], name="x"), TensorSpec([3, 1], name="w"))
    assert re.fullmatch(
        r"graph <lambda>\(%x: float32\[2, 3\], %w: float32\[3, 1\]\)\n"
        r"    %0: float32\[2, 1\] = matmul\(%x, %w.*\)   # test_printer.py:\d+\n"
        r"    return %0",
        str(graph),
    )


def test_a_variable_is_shown_by_name_with_its_update(traced):
    v = df.Variable([1.0], name="weight")

    def step(x):
        v.assign_add(x)

    text = str(traced(step, [1]))
    assert "%weight: float32[1] = variable" in text
    assert "%weight <- %0" in text
    assert text.endswith("return nothing")


def test_equal_names_are_distinguished(traced):
    a, b = df.Variable(1.0, name="v"), df.Variable(2.0, name="v")
    text = str(traced(lambda: a * b))
    assert "%v: float32[]" in text
    assert "multiply(%v, %v_1)" in text


def test_attributes_are_shown(traced):
    assert "axis=(0,), keepdims=True" in str(traced(lambda x: df.reduce_sum(x, 0, keepdims=True), [2, 3]))


def test_a_large_constant_is_cut_short(traced):
    graph = traced(lambda x: x + np.arange(16.0, dtype=np.float32), [16])
    assert "constant(value=[ 0., 1., ..., 14., 15.])" in str(graph)


def test_the_body_of_a_fused_node_is_indented(traced):
    lines = str(optimise(traced(lambda x: df.exp(x) * 2.0, [100]), CompileOptions())).split("\n")
    assert any(line.startswith(" " * 8 + "body: graph ") for line in lines)
    assert any(line.startswith(" " * 12) and "exp(" in line for line in lines)


def test_the_branches_of_a_cond_are_indented_graphs(traced):
    def pick(x):
        return df.cond(x > 0.0, lambda: x * 2.0, lambda: df.exp(x))

    lines = str(traced(pick, [])).split("\n")
    (at,) = (i for i, line in enumerate(lines) if "= cond(" in line)
    assert "branches" not in lines[at]
    assert [line.split("(")[0] for line in lines[at:] if "graph" in line] == [
        "        branches[0]: graph <lambda>",
        "        branches[1]: graph <lambda>",
    ]
    assert lines[at + 2].startswith(" " * 12 + "%0: float32[] = exp(%")


def test_bodies_inside_of_bodies_are_indented_further(traced):
    def count(x):
        return df.while_loop(
            lambda i: i < 10.0, lambda i: (df.cond(i > x, lambda: i + 1.0, lambda: i + 2.0),), (x,)
        )

    text = str(traced(count, []))
    assert re.search(r"^ {8}condition: graph ", text, re.MULTILINE)
    assert re.search(r"^ {8}body: graph ", text, re.MULTILINE)
    assert re.search(r"^ {16}branches\[1\]: graph ", text, re.MULTILINE)
    assert "Graph(name" not in text
