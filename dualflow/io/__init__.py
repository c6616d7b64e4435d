"""Files and their contents: ``df.io``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.graph_mode.graph_def_files import write_graph as write_graph
    from dualflow.io import gfile as gfile
    from dualflow.ops.files.contents import matching_files as matching_files
    from dualflow.ops.files.contents import read_file as read_file
    from dualflow.ops.files.contents import write_file as write_file
    from dualflow.ops.files.image_writing import encode_jpeg as encode_jpeg
    from dualflow.ops.files.image_writing import encode_png as encode_png
    from dualflow.ops.files.images import decode_and_crop_jpeg as decode_and_crop_jpeg
    from dualflow.ops.files.images import decode_bmp as decode_bmp
    from dualflow.ops.files.images import decode_gif as decode_gif
    from dualflow.ops.files.images import decode_image as decode_image
    from dualflow.ops.files.images import decode_jpeg as decode_jpeg
    from dualflow.ops.files.images import decode_png as decode_png
    from dualflow.ops.files.images import extract_jpeg_shape as extract_jpeg_shape
    from dualflow.ops.files.images import is_jpeg as is_jpeg
    from dualflow.ops.files.raw import decode_base64 as decode_base64
    from dualflow.ops.files.raw import decode_compressed as decode_compressed
    from dualflow.ops.files.raw import decode_raw as decode_raw
    from dualflow.ops.files.raw import encode_base64 as encode_base64
    from dualflow.ops.files.tables import decode_csv as decode_csv
    from dualflow.ops.records.example_features import parse_example as parse_example
    from dualflow.ops.records.example_features import parse_sequence_example as parse_sequence_example
    from dualflow.ops.records.example_features import parse_single_example as parse_single_example
    from dualflow.ops.records.example_features import (
        parse_single_sequence_example as parse_single_sequence_example,
    )
    from dualflow.ops.records.feature_specs import FixedLenFeature as FixedLenFeature
    from dualflow.ops.records.feature_specs import FixedLenSequenceFeature as FixedLenSequenceFeature
    from dualflow.ops.records.feature_specs import RaggedFeature as RaggedFeature
    from dualflow.ops.records.feature_specs import VarLenFeature as VarLenFeature
    from dualflow.ops.records.record_files import TFRecordOptions as TFRecordOptions
    from dualflow.ops.records.record_files import TFRecordWriter as TFRecordWriter
    from dualflow.ops.records.tensor_messages import parse_tensor as parse_tensor
    from dualflow.ops.records.tensor_messages import serialize_tensor as serialize_tensor

_publish(
    globals(),
    lazy={
        "dualflow.graph_mode.graph_def_files": "write_graph",
        "dualflow.io": "gfile",
        "dualflow.ops.files.contents": "matching_files read_file write_file",
        "dualflow.ops.records.example_features": (
            "parse_example parse_sequence_example parse_single_example parse_single_sequence_example"
        ),
        "dualflow.ops.records.feature_specs": (
            "FixedLenFeature FixedLenSequenceFeature RaggedFeature VarLenFeature"
        ),
        "dualflow.ops.files.image_writing": "encode_jpeg encode_png",
        "dualflow.ops.files.images": (
            "decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png "
            "extract_jpeg_shape is_jpeg"
        ),
        "dualflow.ops.files.raw": "decode_base64 decode_compressed decode_raw encode_base64",
        "dualflow.ops.records.record_files": "TFRecordOptions TFRecordWriter",
        "dualflow.ops.files.tables": "decode_csv",
        "dualflow.ops.records.tensor_messages": "parse_tensor serialize_tensor",
    },
)
