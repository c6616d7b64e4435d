"""Layers: ``v1.layers``. A layer is an object with variables; a function creates one and calls it."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.compat.v1.layers.base import Layer as Layer
    from dualflow.compat.v1.layers.convolution import Conv1D as Conv1D
    from dualflow.compat.v1.layers.convolution import Conv2D as Conv2D
    from dualflow.compat.v1.layers.convolution import Conv3D as Conv3D
    from dualflow.compat.v1.layers.convolution import conv1d as conv1d
    from dualflow.compat.v1.layers.convolution import conv2d as conv2d
    from dualflow.compat.v1.layers.convolution import conv3d as conv3d
    from dualflow.compat.v1.layers.core import Dense as Dense
    from dualflow.compat.v1.layers.core import Dropout as Dropout
    from dualflow.compat.v1.layers.core import Flatten as Flatten
    from dualflow.compat.v1.layers.core import dense as dense
    from dualflow.compat.v1.layers.core import dropout as dropout
    from dualflow.compat.v1.layers.core import flatten as flatten
    from dualflow.compat.v1.layers.normalization import BatchNormalization as BatchNormalization
    from dualflow.compat.v1.layers.normalization import batch_normalization as batch_normalization
    from dualflow.compat.v1.layers.pooling import AveragePooling1D as AveragePooling1D
    from dualflow.compat.v1.layers.pooling import AveragePooling2D as AveragePooling2D
    from dualflow.compat.v1.layers.pooling import AveragePooling3D as AveragePooling3D
    from dualflow.compat.v1.layers.pooling import MaxPooling1D as MaxPooling1D
    from dualflow.compat.v1.layers.pooling import MaxPooling2D as MaxPooling2D
    from dualflow.compat.v1.layers.pooling import MaxPooling3D as MaxPooling3D
    from dualflow.compat.v1.layers.pooling import average_pooling1d as average_pooling1d
    from dualflow.compat.v1.layers.pooling import average_pooling2d as average_pooling2d
    from dualflow.compat.v1.layers.pooling import average_pooling3d as average_pooling3d
    from dualflow.compat.v1.layers.pooling import max_pooling1d as max_pooling1d
    from dualflow.compat.v1.layers.pooling import max_pooling2d as max_pooling2d
    from dualflow.compat.v1.layers.pooling import max_pooling3d as max_pooling3d
    from dualflow.compat.v1.layers.separable import SeparableConv1D as SeparableConv1D
    from dualflow.compat.v1.layers.separable import SeparableConv2D as SeparableConv2D
    from dualflow.compat.v1.layers.separable import separable_conv1d as separable_conv1d
    from dualflow.compat.v1.layers.separable import separable_conv2d as separable_conv2d
    from dualflow.compat.v1.layers.transposed import Conv2DTranspose as Conv2DTranspose
    from dualflow.compat.v1.layers.transposed import Conv3DTranspose as Conv3DTranspose
    from dualflow.compat.v1.layers.transposed import conv2d_transpose as conv2d_transpose
    from dualflow.compat.v1.layers.transposed import conv3d_transpose as conv3d_transpose

_publish(
    globals(),
    lazy={
        "dualflow.compat.v1.layers.base": "Layer",
        "dualflow.compat.v1.layers.convolution": "Conv1D Conv2D Conv3D conv1d conv2d conv3d",
        "dualflow.compat.v1.layers.core": "Dense Dropout Flatten dense dropout flatten",
        "dualflow.compat.v1.layers.normalization": "BatchNormalization batch_normalization",
        "dualflow.compat.v1.layers.pooling": (
            "AveragePooling1D AveragePooling2D AveragePooling3D MaxPooling1D MaxPooling2D MaxPooling3D "
            "average_pooling1d average_pooling2d average_pooling3d max_pooling1d max_pooling2d "
            "max_pooling3d"
        ),
        "dualflow.compat.v1.layers.separable": (
            "SeparableConv1D SeparableConv2D separable_conv1d separable_conv2d"
        ),
        "dualflow.compat.v1.layers.transposed": (
            "Conv2DTranspose Conv3DTranspose conv2d_transpose conv3d_transpose"
        ),
    },
)
