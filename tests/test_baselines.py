"""Pictures equal their baselines: `make baselines` draws the baselines anew, after a check of the changes."""

from __future__ import annotations

import baselines
import matplotlib
import pytest
from matplotlib.testing import compare

# Root of the mean squared difference, of 255. The few colours of a baseline are up to 0.6 off; a colour that is
# a little other makes 2.1, a dashed line that is missing 3.5, support vectors without their rings 7. One pale line of
# many makes less than 1: the tests of each display count them.
TOLERANCE = 1.0


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    """Return the file of a picture; each is drawn once."""
    folder = tmp_path_factory.mktemp("pictures")

    def find(name):
        path = folder / f"{name}.png"
        if not path.exists():
            baselines.drawn(name, path)
        return path

    return find


@pytest.mark.parametrize("name", list(baselines.PICTURES))
def test_looks_as_before(name, picture, tmp_path):
    baseline = baselines.FOLDER / f"{name}.png"
    here = ".".join(matplotlib.__version__.split(".")[:2])
    if baselines.version_of(baseline) != here:
        # letters of another width move everything: versions 3.9 and 3.11 differ by 24 to 41
        pytest.skip(
            f"the baselines were drawn by matplotlib {baselines.version_of(baseline)}, and this is {here}"
        )
    expected = tmp_path / f"{name}-expected.png"
    expected.write_bytes(baseline.read_bytes())  # what differs is written beside it
    assert compare.compare_images(str(expected), str(picture(name)), tol=TOLERANCE) is None


def test_a_baseline_for_every_picture():
    assert {path.stem for path in baselines.FOLDER.glob("*.png")} == set(baselines.PICTURES)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("margins", lambda ax: ax.lines[-1].remove()),  # the dashed line
        ("robustness", lambda ax: ax.lines[1].remove()),  # the dotted one
        ("bounds", lambda ax: ax.lines[1].set_color("#1d4ed8")),  # from one blue to another
        ("surface", lambda ax: ax.collections[-1].remove()),  # crosses of a few rows
    ],
)
def test_small_changes_are_noticed(name, change, picture, tmp_path):
    before, after = picture(name), tmp_path / "after.png"
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        figure = baselines.PICTURES[name]()
        change(figure.axes[0])
        figure.savefig(after, dpi=baselines.DPI)
    found = compare.compare_images(str(before), str(after), tol=TOLERANCE)
    assert found is not None
    assert "RMS" in found
