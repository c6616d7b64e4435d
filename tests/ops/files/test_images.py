"""Images in formats of files. What Pillow reads is what it wrote; values are those of TensorFlow 2.21."""

import io

import numpy as np
import pytest
from PIL import Image

import dualflow as df

PICTURE = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3) * 4


def written(array, kind, **options):
    file = io.BytesIO()
    Image.fromarray(array).save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("level", [-1, 0, 9])
def test_png_loses_nothing(channels, level):
    picture = np.random.default_rng(0).integers(0, 256, (3, 7, channels)).astype(np.uint8)
    png = df.io.encode_png(picture, compression=level)
    np.testing.assert_array_equal(df.io.decode_png(png), picture)
    np.testing.assert_array_equal(
        np.array(Image.open(io.BytesIO(png.numpy()))).reshape(picture.shape), picture
    )


def test_png_of_16_bits_in_grey():
    grey = (np.arange(12).reshape(3, 4, 1) * 1000).astype(np.uint16)
    png = df.io.encode_png(grey)
    np.testing.assert_array_equal(df.io.decode_png(png, dtype=df.uint16), grey)
    np.testing.assert_array_equal(df.io.decode_png(png), grey >> 8)
    np.testing.assert_array_equal(df.io.decode_png(png, channels=3), np.repeat(grey >> 8, 3, -1))


def test_png_of_16_bits_in_colour_is_read_in_8(mode):
    png = df.io.encode_png(PICTURE.astype(np.uint16) * 256)
    np.testing.assert_array_equal(mode(df.io.decode_png)(png), PICTURE)


def test_several_images_are_several_files():
    files = df.io.encode_png(np.stack([PICTURE, PICTURE[::-1]]))
    assert files.shape == (2,)
    np.testing.assert_array_equal(df.io.decode_png(files[1]), PICTURE[::-1])


def test_channels_are_converted():
    png = df.io.encode_png(PICTURE)
    assert df.io.decode_png(png, channels=1)[0, :4, 0].numpy().tolist() == [3, 15, 27, 39]
    assert df.io.decode_png(png, channels=4)[0, 1].numpy().tolist() == [12, 16, 20, 255]
    palette = written(np.array(Image.fromarray(PICTURE)), "PNG")
    assert df.io.decode_png(palette).shape == (4, 5, 3)
    two = Image.fromarray(PICTURE).convert("P")
    file = io.BytesIO()
    two.save(file, "PNG")
    assert df.io.decode_png(file.getvalue()).shape == (4, 5, 3)


def test_elements_fill_the_range_of_their_dtype(mode):
    png = df.io.encode_png(PICTURE)
    floats = mode(lambda x: df.io.decode_image(x, dtype=df.float32, expand_animations=False))(png)
    np.testing.assert_allclose(floats, PICTURE / np.float32(255), rtol=1e-6)
    np.testing.assert_array_equal(df.io.decode_image(png, dtype=df.uint16), PICTURE.astype(np.uint16) * 257)
    grey = df.io.encode_png(np.full((1, 1, 1), 65535, np.uint16))
    assert df.io.decode_image(grey, dtype=df.float32).numpy().item() == 1.0


@pytest.mark.parametrize("kind", ["PNG", "BMP", "GIF", "WEBP"])
def test_formats_without_loss_are_read(kind):
    grey = np.repeat(PICTURE[..., :1], 3, -1)
    options = {"lossless": True} if kind == "WEBP" else {}
    contents = written(grey, kind, **options)
    np.testing.assert_array_equal(df.io.decode_png(contents, channels=3), grey)
    np.testing.assert_array_equal(df.image.decode_image(contents, 3, expand_animations=False), grey)


def test_jpeg_is_near(mode):
    picture = np.broadcast_to(np.arange(0, 160, 10, dtype=np.uint8)[:, None, None], (16, 24, 3))
    jpeg = df.io.encode_jpeg(picture, quality=100, chroma_downsampling=False)
    result = mode(df.io.decode_jpeg)(jpeg)
    assert result.shape == (16, 24, 3)
    assert np.abs(result.numpy().astype(int) - picture).max() <= 3
    assert df.io.decode_jpeg(jpeg, channels=1).shape == (16, 24, 1)
    assert df.io.decode_jpeg(jpeg, ratio=2).shape == (8, 12, 3)
    assert df.io.extract_jpeg_shape(jpeg).numpy().tolist() == [16, 24, 3]
    assert df.io.is_jpeg([jpeg, b"", b"x"]).numpy().tolist() == [True, False, False]


def test_a_jpeg_is_made_as_requested():
    rough = df.io.encode_jpeg(PICTURE, quality=10)
    fine = df.io.encode_jpeg(PICTURE, quality=100)
    assert df.strings.length(rough).numpy() < df.strings.length(fine).numpy()
    image = Image.open(
        io.BytesIO(
            df.io.encode_jpeg(
                PICTURE[..., :1],
                "grayscale",
                progressive=True,
                density_unit="cm",
                x_density=100,
                y_density=50,
                xmp_metadata="<x/>",
            ).numpy()
        )
    )
    assert (image.mode, image.info["progressive"], image.info["dpi"]) == ("L", 1, (254, 127))
    assert b"<x/>" in image.info["xmp"]


def test_a_window_of_an_image(mode):
    png = df.io.encode_png(PICTURE)
    result = mode(lambda x, w: df.io.decode_and_crop_jpeg(x, w))(png, df.constant([1, 2, 3, 2]))
    np.testing.assert_array_equal(result, PICTURE[1:4, 2:4])


def test_the_frames_of_an_animation():
    frames = [Image.fromarray(np.full((2, 3, 3), v, np.uint8)) for v in (0, 100, 200)]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    contents = file.getvalue()
    result = df.io.decode_gif(contents)
    assert result.shape == (3, 2, 3, 3)
    assert result[:, 0, 0, 0].numpy().tolist() == [0, 100, 200]
    assert df.io.decode_image(contents).shape == (3, 2, 3, 3)
    assert df.io.decode_image(contents, expand_animations=False).shape == (2, 3, 3)
    assert df.function(df.io.decode_gif)(df.constant(contents)).shape == (3, 2, 3, 3)


def test_decode_gif_reads_an_image_of_another_format_as_one_frame(mode):
    contents = df.io.encode_png(df.constant([[[7], [9]]], df.uint8))
    frames = mode(df.io.decode_gif)(contents)
    assert frames.numpy().tolist() == [[[[7, 7, 7], [9, 9, 9]]]]


def test_an_image_beyond_pillows_limit_is_refused(monkeypatch):
    monkeypatch.setattr("PIL.Image.MAX_IMAGE_PIXELS", 100)
    with pytest.raises(df.errors.InvalidArgumentError, match=r"limit of.*MAX_IMAGE_PIXELS to None"):
        df.io.decode_image(df.io.encode_png(df.zeros([30, 30, 3], df.uint8)))
