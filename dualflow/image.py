"""Images: ``df.image``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
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
    from dualflow.ops.image.adjustment import adjust_brightness as adjust_brightness
    from dualflow.ops.image.adjustment import adjust_contrast as adjust_contrast
    from dualflow.ops.image.adjustment import adjust_gamma as adjust_gamma
    from dualflow.ops.image.adjustment import per_image_standardization as per_image_standardization
    from dualflow.ops.image.augmentation import random_brightness as random_brightness
    from dualflow.ops.image.augmentation import random_contrast as random_contrast
    from dualflow.ops.image.augmentation import random_crop as random_crop
    from dualflow.ops.image.augmentation import random_flip_left_right as random_flip_left_right
    from dualflow.ops.image.augmentation import random_flip_up_down as random_flip_up_down
    from dualflow.ops.image.augmentation import random_hue as random_hue
    from dualflow.ops.image.augmentation import random_saturation as random_saturation
    from dualflow.ops.image.augmentation import stateless_random_brightness as stateless_random_brightness
    from dualflow.ops.image.augmentation import stateless_random_contrast as stateless_random_contrast
    from dualflow.ops.image.augmentation import stateless_random_crop as stateless_random_crop
    from dualflow.ops.image.augmentation import (
        stateless_random_flip_left_right as stateless_random_flip_left_right,
    )
    from dualflow.ops.image.augmentation import stateless_random_flip_up_down as stateless_random_flip_up_down
    from dualflow.ops.image.augmentation import stateless_random_hue as stateless_random_hue
    from dualflow.ops.image.augmentation import stateless_random_saturation as stateless_random_saturation
    from dualflow.ops.image.boxes import draw_bounding_boxes as draw_bounding_boxes
    from dualflow.ops.image.boxes import non_max_suppression as non_max_suppression
    from dualflow.ops.image.boxes import non_max_suppression_overlaps as non_max_suppression_overlaps
    from dualflow.ops.image.boxes import non_max_suppression_padded as non_max_suppression_padded
    from dualflow.ops.image.boxes import non_max_suppression_with_scores as non_max_suppression_with_scores
    from dualflow.ops.image.class_boxes import combined_non_max_suppression as combined_non_max_suppression
    from dualflow.ops.image.colours import adjust_hue as adjust_hue
    from dualflow.ops.image.colours import adjust_saturation as adjust_saturation
    from dualflow.ops.image.colours import grayscale_to_rgb as grayscale_to_rgb
    from dualflow.ops.image.colours import hsv_to_rgb as hsv_to_rgb
    from dualflow.ops.image.colours import rgb_to_grayscale as rgb_to_grayscale
    from dualflow.ops.image.colours import rgb_to_hsv as rgb_to_hsv
    from dualflow.ops.image.colours import rgb_to_yiq as rgb_to_yiq
    from dualflow.ops.image.colours import rgb_to_yuv as rgb_to_yuv
    from dualflow.ops.image.colours import yiq_to_rgb as yiq_to_rgb
    from dualflow.ops.image.colours import yuv_to_rgb as yuv_to_rgb
    from dualflow.ops.image.dtypes import convert_image_dtype as convert_image_dtype
    from dualflow.ops.image.geometry import central_crop as central_crop
    from dualflow.ops.image.geometry import crop_to_bounding_box as crop_to_bounding_box
    from dualflow.ops.image.geometry import flip_left_right as flip_left_right
    from dualflow.ops.image.geometry import flip_up_down as flip_up_down
    from dualflow.ops.image.geometry import pad_to_bounding_box as pad_to_bounding_box
    from dualflow.ops.image.geometry import resize_with_crop_or_pad as resize_with_crop_or_pad
    from dualflow.ops.image.geometry import rot90 as rot90
    from dualflow.ops.image.geometry import transpose as transpose
    from dualflow.ops.image.measures import image_gradients as image_gradients
    from dualflow.ops.image.measures import psnr as psnr
    from dualflow.ops.image.measures import sobel_edges as sobel_edges
    from dualflow.ops.image.measures import ssim as ssim
    from dualflow.ops.image.measures import ssim_multiscale as ssim_multiscale
    from dualflow.ops.image.measures import total_variation as total_variation
    from dualflow.ops.image.patches import crop_and_resize as crop_and_resize
    from dualflow.ops.image.patches import extract_patches as extract_patches
    from dualflow.ops.image.resizing import ResizeMethod as ResizeMethod
    from dualflow.ops.image.resizing import resize as resize
    from dualflow.ops.image.resizing import resize_with_pad as resize_with_pad

_publish(
    globals(),
    lazy={
        "dualflow.ops.files.image_writing": "encode_jpeg encode_png",
        "dualflow.ops.files.images": (
            "decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png "
            "extract_jpeg_shape is_jpeg"
        ),
        "dualflow.ops.image.adjustment": (
            "adjust_brightness adjust_contrast adjust_gamma per_image_standardization"
        ),
        "dualflow.ops.image.augmentation": (
            "random_brightness random_contrast random_crop random_flip_left_right random_flip_up_down "
            "random_hue random_saturation stateless_random_brightness stateless_random_contrast "
            "stateless_random_crop stateless_random_flip_left_right stateless_random_flip_up_down "
            "stateless_random_hue stateless_random_saturation"
        ),
        "dualflow.ops.image.boxes": (
            "draw_bounding_boxes non_max_suppression non_max_suppression_overlaps "
            "non_max_suppression_padded non_max_suppression_with_scores"
        ),
        "dualflow.ops.image.class_boxes": "combined_non_max_suppression",
        "dualflow.ops.image.colours": (
            "adjust_hue adjust_saturation grayscale_to_rgb hsv_to_rgb rgb_to_grayscale rgb_to_hsv "
            "rgb_to_yiq rgb_to_yuv yiq_to_rgb yuv_to_rgb"
        ),
        "dualflow.ops.image.dtypes": "convert_image_dtype",
        "dualflow.ops.image.measures": (
            "image_gradients psnr sobel_edges ssim ssim_multiscale total_variation"
        ),
        "dualflow.ops.image.patches": "crop_and_resize extract_patches",
        "dualflow.ops.image.geometry": (
            "central_crop crop_to_bounding_box flip_left_right flip_up_down pad_to_bounding_box "
            "resize_with_crop_or_pad rot90 transpose"
        ),
        "dualflow.ops.image.resizing": "ResizeMethod resize resize_with_pad",
    },
)
