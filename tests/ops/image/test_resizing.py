"""Images of other sizes: TensorFlow's values for every method, and what resizing must keep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df

image = df.image
PICTURE = (np.arange(12.0).reshape(1, 3, 4, 1) ** 2 / 121).astype(np.float32)
METHODS = ["bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic"]

# TensorFlow 2.21's 2 x 5 pixels of PICTURE, by method and antialias
RESIZED = {
    ("bilinear", False): """0.0330578 0.0504132 0.0785124 0.1165289 0.1570248
        0.4297521 0.516529 0.6239669 0.7413223 0.8512397""",
    ("bilinear", True): """0.0495868 0.0727273 0.107438 0.1520661 0.1983471
        0.3801653 0.4611571 0.5619835 0.6727273 0.7768596""",
    ("nearest", False): """0.0 0.0082645 0.0330578 0.0330578 0.0743802
        0.5289256 0.6694215 0.8264463 0.8264463 1.0""",
    ("bicubic", False): """0.0155732 0.0277849 0.0516529 0.0889233 0.1263482
        0.4509561 0.5392493 0.6568286 0.7878104 0.9013171""",
    ("bicubic", True): """0.0291078 0.0478041 0.0796698 0.1249457 0.1688523
        0.3902278 0.4720221 0.5816397 0.7046676 0.8116722""",
    ("area", False): """0.0440771 0.0668044 0.0977961 0.1370523 0.184573
        0.3966942 0.4855372 0.5826447 0.6880165 0.8016528""",
    ("lanczos3", False): """-0.0004557 0.0091493 0.0280401 0.0677234 0.1009511
        0.4587452 0.5437297 0.6657025 0.8084679 0.917075""",
    ("lanczos3", True): """0.0163991 0.0324837 0.0602355 0.1087796 0.1484869
        0.3966546 0.4751594 0.5882715 0.722176 0.8243034""",
    ("lanczos5", False): """-0.0166687 -0.0061334 0.0056571 0.0439096 0.0763301
        0.4649328 0.5638841 0.6786782 0.8199345 0.9407711""",
    ("lanczos5", True): """0.0098105 0.0291663 0.0512325 0.0997608 0.1410017
        0.3953223 0.4854532 0.5899717 0.7209522 0.8329682""",
    ("gaussian", False): """0.0377288 0.0549189 0.0828955 0.1208405 0.1583706
        0.4324446 0.5117579 0.6145744 0.7273595 0.8270127""",
    ("gaussian", True): """0.0742412 0.0993812 0.1369351 0.1844575 0.2299375
        0.3679329 0.4392962 0.5325356 0.6357433 0.7274465""",
    ("mitchellcubic", False): """0.0258092 0.0402597 0.066927 0.1059113 0.1428933
        0.4392176 0.5208184 0.6332006 0.7578998 0.8620319""",
    ("mitchellcubic", True): """0.0497473 0.0711134 0.1066082 0.15442 0.1983175
        0.3780047 0.45269 0.5562447 0.6721164 0.7693331""",
}


@pytest.mark.parametrize(("method", "antialias"), RESIZED)
def test_values_are_tensorflows(mode, method, antialias):
    result = mode(lambda x: image.resize(x, [2, 5], method, antialias=antialias))(PICTURE)
    expected = np.array(RESIZED[method, antialias].split(), float)
    assert result.dtype is df.float32
    np.testing.assert_allclose(result.numpy().ravel(), expected, atol=1e-6)


SIZES = st.tuples(st.integers(1, 12), st.integers(1, 12))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(METHODS), SIZES, SIZES, st.booleans())
def test_an_even_image_stays_as_it_is(method, old, new, antialias):
    """The weights of each pixel add to 1."""
    result = image.resize(df.ones([1, *old, 2]) * 0.75, new, method, antialias=antialias)
    assert result.shape.as_list() == [1, *new, 2]
    np.testing.assert_allclose(result, 0.75, atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(METHODS), SIZES, SIZES, st.booleans())
def test_height_and_width_are_resized_alike(method, old, new, antialias):
    x = np.random.default_rng(old[0]).uniform(size=(1, *old, 1)).astype(np.float32)
    result = image.resize(x, new, method, antialias=antialias)
    turned = image.resize(x.swapaxes(1, 2), new[::-1], method, antialias=antialias)
    np.testing.assert_allclose(result, turned.numpy().swapaxes(1, 2), atol=1e-5)


def test_halving_by_area_is_the_mean_of_four():
    x = np.random.default_rng(0).uniform(size=(2, 6, 8, 3)).astype(np.float32)
    expected = x.reshape(2, 3, 2, 4, 2, 3).mean((2, 4))
    np.testing.assert_allclose(image.resize(x, [3, 4], "area"), expected, atol=1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float16", "float64"])
def test_dtypes(dtype):
    x = np.arange(24).reshape(1, 2, 4, 3).astype(dtype)
    assert image.resize(x, [4, 4]).dtype is df.float32
    nearest = image.resize(x, [4, 8], "nearest")
    assert nearest.dtype == dtype
    np.testing.assert_array_equal(nearest, x.repeat(2, 1).repeat(2, 2))


def test_one_image_without_a_batch(mode):
    result = mode(lambda x: image.resize(x, [2, 5]))(PICTURE[0])
    np.testing.assert_array_equal(result, image.resize(PICTURE, [2, 5])[0])


def test_the_largest_size_of_the_same_ratio():
    assert image.resize(df.ones([10, 20, 1]), [8, 8], preserve_aspect_ratio=True).shape.as_list() == [4, 8, 1]
    padded = image.resize_with_pad(df.ones([10, 20, 1]), 8, 8)
    np.testing.assert_allclose(padded[..., 0], np.repeat([0, 1, 0], [2, 4, 2])[:, None] * np.ones(8))


@pytest.mark.parametrize(
    ("method", "antialias", "new"), [("bilinear", False, (7, 3)), ("lanczos5", True, (2, 2))]
)
def test_gradients_are_the_transposed_weights(mode, method, antialias, new):
    """Of few pixels, which are picked, and of many, which are a matrix product."""
    x = df.random.stateless_uniform([1, 40, 5, 2], (1, 2))
    g = df.random.stateless_uniform([1, *new, 2], (3, 4))

    def resized(x):
        return image.resize(x, new, method, antialias=antialias)

    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = resized(x)
        return tape.gradient(y, x, output_gradients=g)

    y = df.random.stateless_uniform([1, 40, 5, 2], (5, 6))
    np.testing.assert_allclose(np.sum(mode(gradient)(x) * y), np.sum(resized(y) * g), rtol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_resizing_is_machine_code_for_dynamic_batches(method):
    resized = df.function(
        lambda x: image.resize(x, [9, 4], method, antialias=True),
        input_signature=[df.TensorSpec([None, 60, 5, 3])],
    )
    for batch in (1, 3):
        x = df.random.stateless_uniform([batch, 60, 5, 3], (1, batch))
        np.testing.assert_allclose(resized(x), image.resize(x, [9, 4], method, antialias=True), atol=1e-5)
    assert {part.kind for part in resized.get_concrete_function().parts} == {"native"}


FITTED = {
    "nearest, in proportion": lambda x: image.resize(x, [9, 12], "nearest", preserve_aspect_ratio=True),
    "bicubic, in proportion": lambda x: image.resize(x, [9, 12], "bicubic", preserve_aspect_ratio=True),
    "bilinear, padded": lambda x: image.resize_with_pad(x, 9, 12),
    "lanczos3, padded": lambda x: image.resize_with_pad(x, 9, 12, "lanczos3", antialias=True),
    "the centre": lambda x: image.central_crop(x, 0.3),
}


@pytest.mark.llvm  # Numba has no programs for sizes that the program computes
@pytest.mark.parametrize("name", FITTED)
def test_one_program_fits_images_of_any_size(name):
    def fitted_and_slopes(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            fitted = FITTED[name](x)
        return fitted, tape.gradient(fitted, x, output_gradients=df.sin(fitted))

    compiled = df.function(fitted_and_slopes, input_signature=[df.TensorSpec([None, None, None, 2])])
    for batch, height, width in ((2, 3, 4), (3, 9, 12), (2, 31, 33), (4, 13, 7), (2, 33, 64), (5, 2, 6)):
        images = df.random.stateless_uniform([batch, height, width, 2], [height, width])
        for result, expected in zip(compiled(images), fitted_and_slopes(images), strict=True):
            np.testing.assert_allclose(result, expected, rtol=2e-5, atol=2e-6)
    (trace,) = compiled.concrete_functions
    assert len(trace._specialisations) == 1


@pytest.mark.llvm
@pytest.mark.parametrize("name", ["bicubic, in proportion", "bilinear, padded"])
def test_images_that_are_too_narrow_are_refused_by_the_program_for_all_sizes(name):
    compiled = df.function(FITTED[name], input_signature=[df.TensorSpec([None, None, None, 2])])
    compiled(df.ones([3, 4, 5, 2]))
    with pytest.raises(df.errors.InvalidArgumentError, match="1 or more; the images are too narrow"):
        compiled(df.ones([3, 2, 400, 2]))
