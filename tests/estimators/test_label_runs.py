"""Warnings of long label runs: none in random order, one in sorted rows, the same however the stream is divided."""

from __future__ import annotations

import pickle
import warnings
from math import comb

import numpy as np
import pytest

import maxmargin as mm
from maxmargin import OnlineMarginClassifier
from maxmargin.estimators.label_runs import LabelRuns
from maxmargin.io.sealed_file import pack, plain, unpack

WORDS = "Labels come in long runs: .* shuffle the rows"


def warned(labels, classes, sizes=(10**6,)):
    """Return the numbers of rows after which there was a warning, with batches of these sizes in turn."""
    runs, found, k, turn = LabelRuns(classes), [], 0, 0
    while k < len(labels):
        size = sizes[turn % len(sizes)]
        if runs.add(labels[k : k + size]):
            found.append(min(k + size, len(labels)))
        k, turn = k + size, turn + 1
    return found


def with_changes(rows, ones, changes):
    """Return labels 0 and 1 with this number of changes, in runs of about equal length; the first is 0."""
    n_runs = changes // 2 + 1, (changes + 1) // 2
    lengths = [
        [part.size for part in np.array_split(np.zeros(n), k)]
        for n, k in zip((rows - ones, ones), n_runs, strict=True)
    ]
    return np.concatenate([np.full(lengths[k % 2][k // 2], k % 2) for k in range(changes + 1)])


def with_run(rows, ones, length):
    """Return labels 0 and 1 that begin with a run of 1, with the other rows of 1 in equal distances."""
    labels = np.zeros(rows - length, int)
    labels[np.linspace(1, labels.size - 1, ones - length).astype(int)] = 1
    return np.append(np.ones(length, int), labels)


def chance(rows, ones, changes):
    """Return the probability of at most this many changes in random order."""
    zeros, ways = rows - ones, 0
    for k in range(1, changes + 1):
        half, odd = divmod(k + 1, 2)  # runs of each class, one more of either if odd
        ways += sum(
            comb(zeros - 1, half + a - 1) * comb(ones - 1, half + b - 1) if half else 0
            for a, b in ([(1, 0), (0, 1)] if odd else [(0, 0), (0, 0)])
        )
    return ways / comb(rows, ones)


def test_few_changes_are_reported_that_random_order_has_with_a_probability_below_5e_13():
    for rows in (200, 500):
        for ones in (*range(8, 20), 40, rows // 2):
            reported = [k for k in range(1, 2 * ones) if warned(with_changes(rows, ones, k), 2)]
            assert reported == list(range(1, len(reported) + 1))
            assert chance(rows, ones, len(reported)) < 5e-13
    assert len(warned(with_changes(200, 100, 19), 2)) == 1  # a random order has 100 in the mean
    assert warned(with_changes(200, 100, 20), 2) == []
    assert warned(with_changes(198, 99, 10), 2) == []


@pytest.mark.parametrize(("rows", "ones"), [(1000, 500), (1000, 250), (4000, 3000)])
def test_runs_are_reported_that_random_order_has_with_a_small_probability(rows, ones):
    """At most 1e-6 / n^2 after n rows. The bound is n times the probability at one place, for either class."""
    longest = next(k for k in range(2, ones) if warned(with_run(rows, ones, k), 2))
    at_one_place = comb(rows - longest, ones - longest) / comb(rows, ones)
    assert 2 * rows * at_one_place < 1e-6 / rows**2
    assert 2 * rows * (ones / rows) ** (longest - 1) > 1e-6 / rows**2
    shares = np.unique(with_run(rows, ones, longest), return_counts=True)[1] / rows
    changes = np.count_nonzero(np.diff(with_run(rows, ones, longest)))
    assert changes > rows * (1 - shares @ shares) / 5  # not for their number


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_streams_in_random_order_do_not_warn(classes):
    """300 streams, each looked at after each of its batches; the rarest class has a share of 1 % to 50 %."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        rare = np.full(classes - 1, 10.0 ** rng.uniform(-2.0, -0.3) / (classes - 1))
        labels = rng.choice(classes, 2000, p=[*rare, 1.0 - rare.sum()])
        assert warned(labels, classes, (1, 7, 50)) == []


@pytest.mark.parametrize("size", [1, 30, 1000])
def test_sorted_rows_warn_once_and_saved_streams_continue(size, tmp_path):
    X, y = np.random.default_rng(0).normal(size=(400, 2)), np.repeat([0, 1, 2], [150, 150, 100])

    def presented(model, first, last):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for k in range(first, last, size):
                rows = slice(k, min(k + size, last))
                model.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
        assert {warning.category for warning in found} <= {UserWarning}
        assert {warning.filename for warning in found} <= {__file__}
        return [str(warning.message) for warning in found]

    model = OnlineMarginClassifier()
    assert presented(model, 0, 160) == []
    mm.save(model, tmp_path / "m")
    copies = [model, pickle.loads(pickle.dumps(model)), mm.load(tmp_path / "m")]
    found = [presented(copy, 160, 400) for copy in copies]
    (whole,) = found[0]
    assert found == [[whole]] * 3
    assert whole.startswith("Labels come in long runs: up to 150 rows in succession have the same")
    mm.save(model, tmp_path / "m")
    assert presented(mm.load(tmp_path / "m"), 0, 400) == []  # it has warned


def test_fit_begins_anew_and_does_not_warn():
    X, y = np.random.default_rng(0).normal(size=(400, 2)), np.repeat([0, 1], 200)
    model = OnlineMarginClassifier(shuffle=False)
    with pytest.warns(UserWarning, match=WORDS):
        model.partial_fit(X, y, classes=[0, 1])
    model.fit(X, y).partial_fit(X[::100], y[::100])


def test_files_of_early_versions_have_no_label_changes(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(300, 2)), np.repeat([0, 1], 150)
    mm.save(OnlineMarginClassifier().partial_fit(X[:160], y[:160], classes=[0, 1]), tmp_path / "m")
    record, arrays = unpack("m", (tmp_path / "m").read_bytes())
    del arrays["label_runs"]
    (tmp_path / "m").write_bytes(b"".join(pack(arrays, plain(record))))
    model = mm.load(tmp_path / "m")
    assert model.n_seen_ == 160
    model.partial_fit(X[160:], y[160:])  # no warning: 140 rows of one label
