"""Random numbers: ``df.random``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.eager.generator import Generator as Generator
    from dualflow.eager.generator_state import create_rng_state as create_rng_state
    from dualflow.eager.global_generator import get_global_generator as get_global_generator
    from dualflow.eager.global_generator import set_global_generator as set_global_generator
    from dualflow.eager.seeds import set_seed as set_seed
    from dualflow.ops.neural.candidates import all_candidate_sampler as all_candidate_sampler
    from dualflow.ops.neural.candidates import (
        fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler,
    )
    from dualflow.ops.neural.candidates import (
        learned_unigram_candidate_sampler as learned_unigram_candidate_sampler,
    )
    from dualflow.ops.neural.candidates import log_uniform_candidate_sampler as log_uniform_candidate_sampler
    from dualflow.ops.neural.candidates import uniform_candidate_sampler as uniform_candidate_sampler
    from dualflow.ops.random_numbers.functions import categorical as categorical
    from dualflow.ops.random_numbers.functions import gamma as gamma
    from dualflow.ops.random_numbers.functions import normal as normal
    from dualflow.ops.random_numbers.functions import poisson as poisson
    from dualflow.ops.random_numbers.functions import shuffle as shuffle
    from dualflow.ops.random_numbers.functions import truncated_normal as truncated_normal
    from dualflow.ops.random_numbers.functions import uniform as uniform
    from dualflow.ops.random_numbers.stateless import fold_in as fold_in
    from dualflow.ops.random_numbers.stateless import split as split
    from dualflow.ops.random_numbers.stateless import stateless_binomial as stateless_binomial
    from dualflow.ops.random_numbers.stateless import stateless_categorical as stateless_categorical
    from dualflow.ops.random_numbers.stateless import stateless_gamma as stateless_gamma
    from dualflow.ops.random_numbers.stateless import stateless_normal as stateless_normal
    from dualflow.ops.random_numbers.stateless import (
        stateless_parameterized_truncated_normal as stateless_parameterized_truncated_normal,
    )
    from dualflow.ops.random_numbers.stateless import stateless_poisson as stateless_poisson
    from dualflow.ops.random_numbers.stateless import stateless_truncated_normal as stateless_truncated_normal
    from dualflow.ops.random_numbers.stateless import stateless_uniform as stateless_uniform
    from dualflow.ops.random_numbers.states import Algorithm as Algorithm
    from dualflow.random import experimental as experimental

_publish(
    globals(),
    lazy={
        "dualflow.eager.generator": "Generator",
        "dualflow.eager.generator_state": "create_rng_state",
        "dualflow.eager.global_generator": "get_global_generator set_global_generator",
        "dualflow.eager.seeds": "set_seed",
        "dualflow.ops.neural.candidates": (
            "all_candidate_sampler fixed_unigram_candidate_sampler learned_unigram_candidate_sampler "
            "log_uniform_candidate_sampler uniform_candidate_sampler"
        ),
        "dualflow.ops.random_numbers.functions": (
            "categorical gamma normal poisson shuffle truncated_normal uniform"
        ),
        "dualflow.ops.random_numbers.stateless": (
            "fold_in split stateless_binomial stateless_categorical stateless_gamma stateless_normal "
            "stateless_parameterized_truncated_normal stateless_poisson stateless_truncated_normal "
            "stateless_uniform"
        ),
        "dualflow.ops.random_numbers.states": "Algorithm",
        "dualflow.random": "experimental",
    },
)
