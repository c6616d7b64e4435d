"""Shapes: of known and unknown rank."""

import copy
import pickle

import pytest

import dualflow as df
from dualflow.core.errors import InvalidArgumentError

UNKNOWN = df.TensorShape(None)


def test_a_shape_of_none_has_an_unknown_rank():
    assert repr(UNKNOWN) == "<unknown>"
    assert UNKNOWN.rank is None
    assert UNKNOWN.num_elements() is None
    assert not UNKNOWN.is_fully_defined()
    assert not UNKNOWN
    assert df.TensorShape(None) == UNKNOWN
    assert df.TensorShape([]) != UNKNOWN
    assert df.TensorSpec(None).shape is UNKNOWN


def test_copies_of_it_are_the_same():
    assert copy.deepcopy(UNKNOWN) is UNKNOWN
    assert pickle.loads(pickle.dumps(UNKNOWN)) is UNKNOWN
    assert pickle.loads(pickle.dumps(df.TensorShape([2, None]))) == (2, None)


@pytest.mark.parametrize("ask", [len, list, lambda s: s[0], lambda s: 3 in s, lambda s: s.as_list()])
def test_what_asks_for_the_rank_is_refused(ask):
    with pytest.raises(InvalidArgumentError, match="rank of a tensor is unknown"):
        ask(UNKNOWN)


def test_a_spec_of_unknown_rank_takes_any_tensor_of_its_dtype():
    spec = df.TensorSpec(None)
    assert spec.is_compatible_with(df.ones([2, 3]))
    assert spec.is_compatible_with(df.ones([]))
    assert not spec.is_compatible_with(df.constant(1))
    assert not df.TensorSpec([2]).is_compatible_with(spec)
