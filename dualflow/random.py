"""Random numbers: ``df.random``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.ops.neural.sampling import log_uniform_candidate_sampler as log_uniform_candidate_sampler
    from dualflow.ops.random_numbers.functions import categorical as categorical
    from dualflow.ops.random_numbers.functions import gamma as gamma
    from dualflow.ops.random_numbers.functions import normal as normal
    from dualflow.ops.random_numbers.functions import poisson as poisson
    from dualflow.ops.random_numbers.functions import shuffle as shuffle
    from dualflow.ops.random_numbers.functions import stateless_normal as stateless_normal
    from dualflow.ops.random_numbers.functions import stateless_uniform as stateless_uniform
    from dualflow.ops.random_numbers.functions import truncated_normal as truncated_normal
    from dualflow.ops.random_numbers.functions import uniform as uniform
    from dualflow.ops.random_numbers.streams import Generator as Generator
    from dualflow.ops.random_numbers.streams import get_global_generator as get_global_generator
    from dualflow.ops.random_numbers.streams import set_seed as set_seed

_publish(globals(), internal=("TYPE_CHECKING",), deferred=True)
