"""TensorFlow's other namespace for generators and seeds: ``df.random.experimental``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish
from dualflow.ops.random_numbers.stateless import fold_in, split

stateless_fold_in, stateless_split = fold_in, split

if TYPE_CHECKING:
    from dualflow.eager.generator import Generator as Generator
    from dualflow.eager.generator_state import create_rng_state as create_rng_state
    from dualflow.eager.global_generator import get_global_generator as get_global_generator
    from dualflow.eager.global_generator import set_global_generator as set_global_generator
    from dualflow.ops.random_numbers.stateless import stateless_shuffle as stateless_shuffle
    from dualflow.ops.random_numbers.states import Algorithm as Algorithm

_publish(
    globals(),
    internal=("fold_in", "split"),
    lazy={
        "dualflow.eager.generator": "Generator",
        "dualflow.eager.generator_state": "create_rng_state",
        "dualflow.eager.global_generator": "get_global_generator set_global_generator",
        "dualflow.ops.random_numbers.stateless": "stateless_shuffle",
        "dualflow.ops.random_numbers.states": "Algorithm",
    },
)
