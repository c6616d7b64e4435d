"""Input pipelines: ``df.data``.

A :class:`Dataset` describes the source of elements and the transformations applied to them; iterating over it
computes them.
"""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.data import experimental as experimental
    from dualflow.data.dataset import Dataset as Dataset
    from dualflow.data.element import DatasetSpec as DatasetSpec
    from dualflow.data.iterator import Iterator as Iterator
    from dualflow.data.iterator import NumpyIterator as NumpyIterator
    from dualflow.data.options import Options as Options
    from dualflow.data.options import ThreadingOptions as ThreadingOptions
    from dualflow.data.record_files import TFRecordDataset as TFRecordDataset
    from dualflow.data.stage import AUTOTUNE as AUTOTUNE
    from dualflow.data.stage import INFINITE_CARDINALITY as INFINITE_CARDINALITY
    from dualflow.data.stage import UNKNOWN_CARDINALITY as UNKNOWN_CARDINALITY
    from dualflow.data.text_files import FixedLengthRecordDataset as FixedLengthRecordDataset
    from dualflow.data.text_files import TextLineDataset as TextLineDataset

_publish(
    globals(),
    lazy={
        "dualflow.data": "experimental",
        "dualflow.data.dataset": "Dataset",
        "dualflow.data.element": "DatasetSpec",
        "dualflow.data.iterator": "Iterator NumpyIterator",
        "dualflow.data.options": "Options ThreadingOptions",
        "dualflow.data.record_files": "TFRecordDataset",
        "dualflow.data.stage": "AUTOTUNE INFINITE_CARDINALITY UNKNOWN_CARDINALITY",
        "dualflow.data.text_files": "FixedLengthRecordDataset TextLineDataset",
    },
)
