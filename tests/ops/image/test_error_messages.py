"""Errors of ``df.image``: each states the rejected input and what to do."""

from __future__ import annotations

from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError

image = df.image
V, M, C = df.ones([3]), df.ones([2, 3]), df.constant([1j])
IMAGE, DOT = df.ones([1, 4, 4, 1]), df.ones([1, 1, 1, 1])


CASES = {
    "boxes of classes without a batch": (
        lambda: df.image.combined_non_max_suppression(df.ones([3, 1, 4]), df.ones([3, 2]), 1, 1),
        InvalidArgumentError,
        "takes boxes",
        "reshape them",
    ),
    "no results of all classes": (
        lambda: df.image.combined_non_max_suppression(df.ones([1, 3, 1, 4]), df.ones([1, 3, 2]), 1, 0),
        InvalidArgumentError,
        "of 1 or more",
        "not 0 and 1",
    ),
    "a word for gamma": (lambda: image.adjust_gamma(IMAGE, "a"), DTypeError, "gamma is a number", "not 'a'"),
    "an image of two axes": (
        lambda: image.resize(M, [1, 1]),
        InvalidArgumentError,
        "height, width, channels",
        "df.reshape",
    ),
    "a resizing method": (
        lambda: image.resize(IMAGE, [1, 1], "cubic"),
        InvalidArgumentError,
        "bicubic",
        "not 'cubic'",
    ),
    "a resized size": (
        lambda: image.resize(IMAGE, [0, 1]),
        InvalidArgumentError,
        "of 1 or more",
        r"not \[0, 1\]",
    ),
    "an image without pixels": (
        lambda: image.resize(df.ones([1, 0, 2, 3]), [1, 1]),
        InvalidArgumentError,
        "without pixels",
        "can't be resized",
    ),
    "a resized and padded size": (
        lambda: image.resize_with_pad(IMAGE, 0, 1),
        InvalidArgumentError,
        "1 x 1 or more",
        "not 0 x 1",
    ),
    "a cropped or padded size": (
        lambda: image.resize_with_crop_or_pad(IMAGE, 0, 1),
        InvalidArgumentError,
        "1 x 1 or more",
        "not 0 x 1",
    ),
    "a part beyond an image": (
        lambda: image.crop_to_bounding_box(IMAGE, 2, 0, 3, 1),
        InvalidArgumentError,
        "3 x 1 pixels",
        "images of 4 x 4",
    ),
    "an image that does not fit": (
        lambda: image.pad_to_bounding_box(IMAGE, 2, 0, 5, 4),
        InvalidArgumentError,
        "don't fit",
        "5 x 4",
    ),
    "a central fraction": (
        lambda: image.central_crop(IMAGE, 1.5),
        InvalidArgumentError,
        r"in \(0, 1\]",
        "not 1.5",
    ),
    "complex images": (lambda: image.convert_image_dtype(C, df.float32), DTypeError, "complex128", "df.cast"),
    "two colours": (
        lambda: image.rgb_to_hsv(df.ones([2, 2])),
        InvalidArgumentError,
        "three channels",
        r"\(2, 2\)",
    ),
    "grey of three channels": (
        lambda: image.grayscale_to_rgb(V),
        InvalidArgumentError,
        "one channel",
        r"\(3,\)",
    ),
    "contrast of a vector": (
        lambda: image.adjust_contrast(V, 2.0),
        InvalidArgumentError,
        "height, width",
        "df.reshape",
    ),
    "a negative gamma": (lambda: image.adjust_gamma(IMAGE, -1), InvalidArgumentError, "not negative", "-1"),
    "a standardized vector": (
        lambda: image.per_image_standardization(V),
        InvalidArgumentError,
        "height, width",
        "shape",
    ),
    "a range of brightness": (
        lambda: image.random_brightness(IMAGE, -1),
        InvalidArgumentError,
        "0 or more",
        "not -1",
    ),
    "a range of hue": (lambda: image.random_hue(DOT, 0.9), InvalidArgumentError, "from 0 to 0.5", "not 0.9"),
    "a range of contrast": (
        lambda: image.random_contrast(IMAGE, 2, 1),
        InvalidArgumentError,
        "lower < upper",
        "from 2 to 1",
    ),
    "a part larger than the whole": (
        lambda: image.random_crop(V, [4]),
        InvalidArgumentError,
        r"sizes \(4,\)",
        r"shape \(3,\)",
    ),
    "images of other sizes compared": (
        lambda: image.psnr(IMAGE, DOT, 1.0),
        InvalidArgumentError,
        "equal sizes",
        "df.image.resize",
    ),
    "images smaller than a filter": (
        lambda: image.ssim(IMAGE, IMAGE, 1.0),
        InvalidArgumentError,
        "don't hold a filter of 11 x 11",
        "smaller filter_size",
    ),
    "the variation of a vector": (
        lambda: image.total_variation(V),
        InvalidArgumentError,
        "three or four axes",
        "shape",
    ),
    "the variation of unsigned numbers": (
        lambda: image.total_variation(df.cast(IMAGE, df.uint8)),
        DTypeError,
        "uint8 lose their sign",
        "df.cast",
    ),
    "the gradients of a vector": (
        lambda: image.image_gradients(V),
        InvalidArgumentError,
        "batch",
        "df.expand_dims",
    ),
    "the edges of a vector": (lambda: image.sobel_edges(V), InvalidArgumentError, "batch", "df.expand_dims"),
    "the edges of integers": (
        lambda: image.sobel_edges(df.cast(IMAGE, df.int32)),
        DTypeError,
        "floats, not int32",
        "convert_image_dtype",
    ),
    "patches of other sizes": (
        lambda: image.extract_patches(IMAGE, [2, 2], [1, 1, 1, 1], [1, 1, 1, 1], "SAME"),
        InvalidArgumentError,
        r"sizes are \[1, rows, columns, 1\]",
        r"not \[2, 2\]",
    ),
    "patches of another padding": (
        lambda: image.extract_patches(IMAGE, [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], "FULL"),
        InvalidArgumentError,
        "'VALID' or 'SAME'",
        "'FULL'",
    ),
    "boxes of three corners": (
        lambda: image.crop_and_resize(IMAGE, M, [0, 0], [1, 1]),
        InvalidArgumentError,
        r"boxes \[boxes, 4\]",
        "not ",
    ),
    "boxes cut to nothing": (
        lambda: image.crop_and_resize(IMAGE, df.ones([1, 4]), [0], [0, 1]),
        InvalidArgumentError,
        "of 1 or more",
        r"not \[0, 1\]",
    ),
    "drawn boxes of another rank": (
        lambda: image.draw_bounding_boxes(IMAGE, df.ones([1, 4]), None),
        InvalidArgumentError,
        r"boxes \[batch, boxes, 4\]",
        "not ",
    ),
    "drawn boxes without colours": (
        lambda: image.draw_bounding_boxes(df.ones([1, 4, 4, 3]), df.ones([1, 1, 4]), [[1.0]]),
        InvalidArgumentError,
        r"colors are \[colors, 3\]",
        "not ",
    ),
    "no colours": (
        lambda: image.draw_bounding_boxes(IMAGE, df.ones([1, 1, 4]), df.ones([0, 1])),
        InvalidArgumentError,
        r"colors are \[colors, 1\]",
        r"not \(0, 1\)",
    ),
    "suppressed boxes of ints": (
        lambda: image.non_max_suppression(df.ones([1, 4], df.int32), [1.0], 1),
        DTypeError,
        "boxes and scores in floats",
        "df.cast",
    ),
    "suppressed boxes of three corners": (
        lambda: image.non_max_suppression(M, [1.0, 1.0], 1),
        InvalidArgumentError,
        r"boxes \[boxes, 4\]",
        "not ",
    ),
    "suppressed boxes of several images": (
        lambda: image.non_max_suppression_padded(df.ones([1, 1, 4]), df.ones([1, 1]), 1),
        InvalidArgumentError,
        "as many places each",
        "pad_to_max_output_size=True",
    ),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("ops/image/*.py",)
