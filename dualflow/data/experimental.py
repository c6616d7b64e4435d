"""The names of ``tf.data.experimental``: ``df.data.experimental``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.data.csv_datasets import CsvDataset as CsvDataset
    from dualflow.data.csv_datasets import make_csv_dataset as make_csv_dataset
    from dualflow.data.device_copies import copy_to_device as copy_to_device
    from dualflow.data.device_copies import prefetch_to_device as prefetch_to_device
    from dualflow.data.experimental_functions import assert_cardinality as assert_cardinality
    from dualflow.data.experimental_functions import cardinality as cardinality
    from dualflow.data.experimental_functions import dense_to_ragged_batch as dense_to_ragged_batch
    from dualflow.data.experimental_functions import enable_debug_mode as enable_debug_mode
    from dualflow.data.experimental_functions import get_next_as_optional as get_next_as_optional
    from dualflow.data.experimental_functions import get_single_element as get_single_element
    from dualflow.data.optional import Optional as Optional
    from dualflow.data.options import AutoShardPolicy as AutoShardPolicy
    from dualflow.data.options import DistributeOptions as DistributeOptions
    from dualflow.data.stage import AUTOTUNE as AUTOTUNE
    from dualflow.data.stage import INFINITE_CARDINALITY as INFINITE_CARDINALITY
    from dualflow.data.stage import UNKNOWN_CARDINALITY as UNKNOWN_CARDINALITY
    from dualflow.data.transformations import Counter as Counter
    from dualflow.data.transformations import RandomDataset as RandomDataset
    from dualflow.data.transformations import bucket_by_sequence_length as bucket_by_sequence_length
    from dualflow.data.transformations import choose_from_datasets as choose_from_datasets
    from dualflow.data.transformations import enumerate_dataset as enumerate_dataset
    from dualflow.data.transformations import get_structure as get_structure
    from dualflow.data.transformations import group_by_window as group_by_window
    from dualflow.data.transformations import ignore_errors as ignore_errors
    from dualflow.data.transformations import load as load
    from dualflow.data.transformations import map_and_batch as map_and_batch
    from dualflow.data.transformations import parallel_interleave as parallel_interleave
    from dualflow.data.transformations import sample_from_datasets as sample_from_datasets
    from dualflow.data.transformations import save as save
    from dualflow.data.transformations import scan as scan
    from dualflow.data.transformations import shuffle_and_repeat as shuffle_and_repeat
    from dualflow.data.transformations import take_while as take_while
    from dualflow.data.transformations import unbatch as unbatch
    from dualflow.data.transformations import unique as unique

_publish(
    globals(),
    lazy={
        "dualflow.data.csv_datasets": "CsvDataset make_csv_dataset",
        "dualflow.data.device_copies": "copy_to_device prefetch_to_device",
        "dualflow.data.experimental_functions": (
            "assert_cardinality cardinality dense_to_ragged_batch enable_debug_mode get_next_as_optional "
            "get_single_element"
        ),
        "dualflow.data.optional": "Optional",
        "dualflow.data.options": "AutoShardPolicy DistributeOptions",
        "dualflow.data.stage": "AUTOTUNE INFINITE_CARDINALITY UNKNOWN_CARDINALITY",
        "dualflow.data.transformations": (
            "Counter RandomDataset bucket_by_sequence_length choose_from_datasets enumerate_dataset "
            "get_structure group_by_window ignore_errors load map_and_batch parallel_interleave "
            "sample_from_datasets save scan shuffle_and_repeat take_while unbatch unique"
        ),
    },
)
