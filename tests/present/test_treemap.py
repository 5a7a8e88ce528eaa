"""Treemaps: areas are sizes, boxes fill the picture and do not overlap."""

from __future__ import annotations

import numpy as np
import pytest

from dither.present.pages.publication import layout, treemap


@pytest.mark.parametrize("seed", range(5))
def test_boxes_of_a_treemap_have_their_areas_and_do_not_overlap(seed):
    generator = np.random.default_rng(seed)
    sizes = np.sort(generator.gamma(0.5, 1, 40) + 1e-3)[::-1]
    boxes = np.array(layout(sizes.tolist(), (0.0, 0.0, 7.0, 3.0)))
    np.testing.assert_allclose(boxes[:, 2] * boxes[:, 3], 21 * sizes / sizes.sum(), rtol=1e-9)
    assert boxes[:, 0].min() >= 0
    assert (boxes[:, :2] + boxes[:, 2:] <= np.array([7, 3]) + 1e-9).all()
    left, top, right, bottom = boxes[:, 0], boxes[:, 1], boxes[:, 0] + boxes[:, 2], boxes[:, 1] + boxes[:, 3]
    width = np.minimum.outer(right, right) - np.maximum.outer(left, left)
    height = np.minimum.outer(bottom, bottom) - np.maximum.outer(top, top)
    overlap = np.maximum(width, 0) * np.maximum(height, 0)
    np.fill_diagonal(overlap, 0)
    assert overlap.max() < 1e-9


def test_places_without_people_are_not_drawn():
    assert treemap(["a", "b"], [0.0, 4.0], [0.1, 0.2], "places").count("<rect") == 1 + 5
