"""Images; see :mod:`keras.ops.image`."""

from keras_dualflow.src.ops.image.colours import hsv_to_rgb as hsv_to_rgb
from keras_dualflow.src.ops.image.colours import rgb_to_grayscale as rgb_to_grayscale
from keras_dualflow.src.ops.image.colours import rgb_to_hsv as rgb_to_hsv
from keras_dualflow.src.ops.image.filters import gaussian_blur as gaussian_blur
from keras_dualflow.src.ops.image.filters import sobel_edges as sobel_edges
from keras_dualflow.src.ops.image.resizing import resize as resize
from keras_dualflow.src.ops.image.resizing import scale_and_translate as scale_and_translate
from keras_dualflow.src.ops.image.warping import affine_transform as affine_transform
from keras_dualflow.src.ops.image.warping import compute_homography_matrix as compute_homography_matrix
from keras_dualflow.src.ops.image.warping import elastic_transform as elastic_transform
from keras_dualflow.src.ops.image.warping import map_coordinates as map_coordinates
from keras_dualflow.src.ops.image.warping import perspective_transform as perspective_transform
