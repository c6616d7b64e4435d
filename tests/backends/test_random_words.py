"""Random numbers that a seed decides don't depend on how many threads draw them."""

import numpy as np

import dualflow as df
from dualflow.backends.llvm.runtime import threads


def test_the_number_of_threads_changes_nothing():
    draw = df.function(lambda: df.random.stateless_uniform([200_000], (3, 4)))
    expected, before = df.random.stateless_uniform([200_000], (3, 4)), threads.num_threads()
    try:
        for count in (1, 2):
            threads.set_num_threads(count)
            np.testing.assert_array_equal(draw(), expected)
    finally:
        threads.set_num_threads(before)
