"""Pictures equal their baselines; `make baselines` redraws the baselines."""

from __future__ import annotations

import baselines
import matplotlib
import pytest
from matplotlib.testing import compare

# Root mean squared difference, of 255. The reduced palette of a baseline causes up to 0.6, a slightly different
# colour 2.1, a missing dashed line 3.5, support vectors without rings 7. One pale line of many causes less than 1;
# such lines are counted by the tests of each display.
TOLERANCE = 1.0


@pytest.mark.parametrize("name", list(baselines.PICTURES))
def test_pictures_equal_their_baselines(name, tmp_path):
    baseline = baselines.FOLDER / f"{name}.png"
    version = ".".join(matplotlib.__version__.split(".")[:2])
    if baselines.version_of(baseline) != version:
        # text of another width moves all elements: versions 3.9 and 3.11 differ by 24 to 41
        pytest.skip(
            f"the baselines were drawn by matplotlib {baselines.version_of(baseline)}, and this is {version}"
        )
    expected = tmp_path / f"{name}-expected.png"
    expected.write_bytes(baseline.read_bytes())  # the difference image is written to this folder
    found = tmp_path / f"{name}.png"
    baselines.draw(name, found)
    assert compare.compare_images(str(expected), str(found), tol=TOLERANCE) is None


def test_every_picture_has_a_baseline():
    assert {path.stem for path in baselines.FOLDER.glob("*.png")} == set(baselines.PICTURES)
