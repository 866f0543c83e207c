"""Ways to see what the library reads from a file: scores of a model whose weights are the unit vectors, and fits."""

from __future__ import annotations

import numpy as np
import pytest
from command import run

import maxmargin as mm


@pytest.fixture
def numbers_of(tmp_path):
    """A function of a file and its number of columns, above two, that returns the numbers as the command reads them."""

    def numbers(path, width, *options):
        path_of_model = tmp_path / f"unit-{width}"
        model = mm.MaxMarginClassifier(max_iter=1, fit_intercept=False).fit(np.eye(width), range(width))
        model.coef_ = np.eye(width)
        mm.save(model, path_of_model)
        result = run("predict", path_of_model, path, "--scores", *options)
        assert result.exit_code == 0, result.stderr
        return np.array([list(map(float, line.split("\t")[1:])) for line in result.stdout.splitlines()])

    return numbers


@pytest.fixture
def fitted(tmp_path):
    """A function that fits a model to files, and requires that the rows of the fit are X and y, in this order."""

    def fit(source, X, y, label=None):
        model = mm.MaxMarginClassifier(cache_dir=tmp_path / "caches", random_state=0)
        model.fit(source, label)
        other = mm.MaxMarginClassifier(random_state=0).fit(X, y)
        assert model.classes_.tolist() == other.classes_.tolist()
        assert model.classes_.dtype.kind == other.classes_.dtype.kind
        np.testing.assert_array_equal(model.coef_, other.coef_)
        np.testing.assert_array_equal(model.intercept_, other.intercept_)
        mm.verify(model, X, y)  # a checksum of the rows
        return model

    return fit
