"""Errors of ops state the op, the shapes, and what to do."""

from typing import ClassVar

import numpy as np
import pytest
from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import REGISTRY, Op, register

CASES = [
    (
        lambda: df.add(df.ones([2]), df.ones([3])),
        InvalidArgumentError,
        r"add\(float32\[2\], float32\[3\]\).*reshape",
    ),
    (lambda: df.reshape(df.ones([6]), [4, 2]), InvalidArgumentError, r"6 elements .* \(4, 2\), which has 8"),
    (lambda: df.reshape(df.ones([6]), [4, -1]), InvalidArgumentError, r"6 is no multiple of 4"),
    (lambda: df.reshape(df.ones([6]), [0, -1]), InvalidArgumentError, r"6 is no multiple of 0"),
    (lambda: df.reshape(df.ones([6]), [-1, -1]), InvalidArgumentError, r"Only one size"),
    (lambda: df.broadcast_to(df.ones([2]), [3]), InvalidArgumentError, r"broadcast"),
    (lambda: df.squeeze(df.ones([2, 1]), 0), InvalidArgumentError, r"axis 0 .* not of size 1"),
    (lambda: df.transpose(df.ones([2, 3]), [0, 0]), InvalidArgumentError, r"each axis|once"),
    (lambda: df.expand_dims(df.ones([2]), 3), InvalidArgumentError, r"axis 3 is out of range"),
    (
        lambda: df.reduce_sum(df.ones([2]), axis=1),
        InvalidArgumentError,
        r"axis 1 is out of range for a tensor of rank 1",
    ),
    (lambda: df.reduce_sum(df.ones([2, 2]), axis=[0, -2]), InvalidArgumentError, r"twice"),
    (lambda: df.reduce_sum(df.ones([2]), axis=0.5), DTypeError, r"axis"),
    (lambda: df.concat([df.ones([2, 3]), df.ones([3, 2])], 0), InvalidArgumentError, r"differ on axis 1"),
    (lambda: df.concat([df.ones([2]), df.ones([2, 2])], 0), InvalidArgumentError, r"df\.stack"),
    (lambda: df.concat([], 0), InvalidArgumentError, r"empty"),
    (lambda: df.stack([df.ones([2]), df.ones([3])]), InvalidArgumentError, r"differ on axis 0|one shape"),
    (lambda: df.split(df.ones([5]), 2), InvalidArgumentError, r"2 equal parts"),
    (lambda: df.split(df.ones([5]), [1, 2]), InvalidArgumentError, r"do not make up the size 5"),
    (lambda: df.unstack(df.ones([3]), num=2), InvalidArgumentError, r"unstack into 2"),
    (lambda: df.pad(df.ones([2]), [[1, 1]], "WRAP"), InvalidArgumentError, r"CONSTANT, REFLECT or SYMMETRIC"),
    (lambda: df.pad(df.ones([2]), [[2, 0]], "REFLECT"), InvalidArgumentError, r"too short"),
    (lambda: df.pad(df.ones([2]), [1, 1]), InvalidArgumentError, r"\[before, after\]"),
    (lambda: df.tile(df.ones([2]), [1, 2]), InvalidArgumentError, r"each axis"),
    (lambda: df.where([1, 0], 1.0, 2.0), DTypeError, r"comparison"),
    (lambda: df.where([True, False], 1.0), DTypeError, r"both x and y"),
    (lambda: df.gather(df.ones([3]), [0.0]), DTypeError, r"integers.*df\.cast"),
    (lambda: df.one_hot([0.5], 3), DTypeError, r"df\.cast"),
    (lambda: df.boolean_mask(df.ones([3]), [True, False]), InvalidArgumentError, r"mask of shape \(2,\)"),
    (lambda: df.boolean_mask(df.ones([3]), [1, 0, 1]), DTypeError, r"comparison"),
    (lambda: df.range(0, 5, 0), InvalidArgumentError, r"delta"),
    (lambda: df.linspace(0.0, 1.0, 0), InvalidArgumentError, r"1 number or more"),
    (lambda: df.zeros([-1]), InvalidArgumentError, r"negative"),
    (lambda: df.zeros([1.5]), DTypeError, r"integer"),
    (lambda: df.constant("a", df.int32), DTypeError, r"to_number"),
    (lambda: df.constant([[1], [1, 2]]), InvalidArgumentError, r"different lengths"),
    (lambda: df.convert_to_tensor(df.ones([1]), df.int32), InvalidArgumentError, r"df\.cast"),
    (lambda: df.fill([2], [1, 2]), InvalidArgumentError, r"one number"),
    (lambda: df.erf(1j), DTypeError, r"erf\(complex128\[\]\).*real numbers"),
    (lambda: df.bitwise.bitwise_and(1.0, 2.0), DTypeError, r"integers or bools"),
    (lambda: df.argsort([1, 2], direction="UP"), InvalidArgumentError, r"ASCENDING"),
    (lambda: df.math.top_k([1, 2], k=3), InvalidArgumentError, r"top_k\(3\)"),
    (lambda: df.scatter_nd([[0]], [1, 2], [3]), InvalidArgumentError, r"should have shape \(1,\)"),
    (lambda: df.norm([1.0], ord="big"), InvalidArgumentError, r"'euclidean'"),
    (lambda: df.clip_by_global_norm([None], 1.0), InvalidArgumentError, r"every entry is None"),
    (lambda: df.nn.gelu(df.constant(1)), DTypeError, r"gelu takes floats"),
]


class TestErrorMessages(ErrorCases):
    cases: ClassVar = {f"{number} {case[2]}": case for number, case in enumerate(CASES)}


def test_an_op_without_samples_cannot_register():
    op = Op("untested", "Nothing.", infer=lambda x: x, kernel=lambda x: x, kind=Opaque("a test"))
    with pytest.raises(df.errors.InternalError, match="no samples"):
        register(op)
    assert "untested" not in REGISTRY


def test_an_op_registers_once():
    with pytest.raises(df.errors.InternalError, match="twice"):
        register(REGISTRY["add"])


def test_an_op_prints_its_name():
    assert repr(REGISTRY["add"]) == "<op add>"


def test_numpys_own_errors_are_reported_in_the_ops_words():
    with pytest.raises(InvalidArgumentError, match=r"matmul\(float32\[2, 3\], float32\[2, 3\]\)"):
        df.matmul(np.ones((2, 3), "f"), np.ones((2, 3), "f"))
