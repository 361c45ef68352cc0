"""Images in the page."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest

from doxa.report.pixels import png_data_url

PIL = pytest.importorskip("PIL.Image")


def decoded(address: str) -> np.ndarray:
    head, _, content = address.partition(",")
    assert head == "data:image/png;base64"
    return np.asarray(PIL.open(io.BytesIO(base64.b64decode(content))))


@pytest.mark.parametrize("shape", [(2, 3), (8, 8), (2, 3, 3), (300, 301)])
def test_a_reader_of_png_sees_the_same_pixels(shape):
    image = np.random.default_rng(0).random(shape)
    assert np.array_equal(decoded(png_data_url(image.tolist())), np.round(255 * image).astype(np.uint8))


def test_what_is_out_of_range_or_unknown_is_clipped():
    assert decoded(png_data_url([[-1.0, 2.0, None]])).tolist() == [[0, 255, 0]]
