"""Checkpoints and progress of partitioned fits: every method goes on where it was, and says where it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from maxmargin import MaxMarginClassifier, Status, verify
from maxmargin.data.partitions import ArrayPartitions
from maxmargin.estimators.partitioned import encode_labels, fit_partitions
from maxmargin.fit.deadline import Deadline
from maxmargin.fit.partitioned import driver

N = 4_000


def dense():
    """Return dense rows, and their scores without noise."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(N, 5))
    return X, X @ rng.normal(size=5), rng


def newton():
    X, scores, rng = dense()
    return X, scores + rng.normal(size=N) > 0.0, {"loss": "hinge", "memory": "120KB", "tol": 1e-6}


def loops():
    X = sp.random(400, 40, 0.1, "csr", rng=np.random.default_rng(1))
    rng = np.random.default_rng(2)
    scores = X @ rng.normal(size=(40, 3)) + 0.3 * rng.normal(size=(400, 3))
    return X, scores.argmax(axis=1), {"memory": "15KB", "tol": 1e-4, "C": 0.3}


def hard_margin():
    X, scores, _ = dense()
    used = np.abs(scores) > 0.1
    return X[used], (scores > 0.0)[used], {"C": np.inf, "memory": "20KB", "tol": 1e-6}


def inseparable():
    """Return three classes, the first of which is certified after the proofs for the others."""
    X, scores, rng = dense()
    y = np.digitize(scores, [-1.0, 1.0])
    used = np.abs(scores + 1.0) > 0.1
    y[(y == 2) & (rng.uniform(size=N) < 0.1)] = 1
    return X[used], y[used], {"C": np.inf, "memory": "30KB", "tol": 1e-6}


def one_norm():
    X, scores, rng = dense()
    used = np.abs(scores) > 0.2
    y = scores + 0.1 * rng.normal(size=N) > 0.0
    return X[used], y[used], {"p": 1, "C": 100.0, "loss": "hinge", "memory": "100KB", "tol": 1e-4}


CASES = {case.__name__: case for case in (newton, loops, hard_margin, inseparable, one_norm)}
STAGES = {"newton": "partitioned-newton", "loops": "cached-loops"}
each_case = pytest.mark.parametrize("name", CASES)


def fit(name, callback=None, **others):
    """Fit the model of a case; return it with its data."""
    X, y, parameters = CASES[name]()
    model = MaxMarginClassifier(**({"random_state": 0, "callback": callback} | parameters | others))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that end before they are certified
        return model.fit(X, y), X, y


def passes_of(reports, X):
    """Return the number of whole passes when the last report was made."""
    return reports[-1].presentations // X.shape[0]


def after_pass(name, count, action=lambda: True):
    """Return a callback that acts when so many passes of a case are complete."""
    rows = CASES[name]()[0].shape[0]
    return lambda report: report.presentations // rows >= count and action()


def same(one, other):
    """Return whether two models are equal, bit by bit."""
    assert one.status_ == other.status_
    assert one.n_iter_ == other.n_iter_
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)
    for a, b in zip(one.certificate_.certificates, other.certificate_.certificates, strict=True):
        assert (a.lower, a.upper) == (b.lower, b.upper)
        np.testing.assert_array_equal(a.dual, b.dual)
    return True


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize(("name", "passes"), [("newton", 2), ("loops", 12), ("hard_margin", 2)])
def test_a_killed_fit_ends_with_the_model_of_one_that_was_not(name, passes, tmp_path):
    """After 12 passes of cached loops one class is certified, and the next one is being solved."""
    straight, X, y = fit(name)
    path, reports = tmp_path / "state", []
    killed = subprocess.run([sys.executable, __file__, name, path, str(passes)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [one.name for one in tmp_path.iterdir()] == ["state"]
    model, *_ = fit(name, reports.append, checkpoint=path)
    assert same(model, straight)
    assert reports[0].presentations >= (passes - 1) * X.shape[0]  # other passes are not made again
    assert model.history_[0].stage == STAGES.get(name, "row-generation")
    assert verify(model, X, y).gap <= model.tol
    assert not path.exists()


@each_case
def test_the_pass_before_a_stop_is_not_made_again(name, tmp_path):
    path = tmp_path / "state"
    straight, X, _ = fit(name)
    stopped, *_ = fit(name, after_pass(name, 1), checkpoint=path)
    assert stopped.status_ in ("INTERRUPTED", "INSEPARABLE")  # the latter where one class is so
    reports = []
    model, *_ = fit(name, reports.append, checkpoint=path)
    assert min(report.presentations for report in reports) >= X.shape[0]
    assert model.status_ == straight.status_
    if len(model.certificate_.certificates) == 1:  # else the stop ends the steps of the other problems
        assert same(model, straight)


@each_case
def test_passes_before_a_checkpoint_count(name, tmp_path):
    path = tmp_path / "state"
    limited, *_ = fit(name, max_iter=1, checkpoint=path)
    reports = []
    again, *_ = fit(name, reports.append, max_iter=1, checkpoint=path)
    assert not reports
    assert same(again, limited)


@each_case
def test_a_checkpoint_of_another_fit_is_refused(name, tmp_path):
    path = tmp_path / "state"
    X, y, parameters = CASES[name]()
    model = MaxMarginClassifier(**parameters, checkpoint=path, random_state=0)
    model.set_params(callback=after_pass(name, 1)).fit(X, y)
    before = path.read_bytes()
    model.set_params(callback=None)
    rows = y.size
    for other, data, labels, words in (
        ({"intercept": "augmented"}, X, y, "another fit: intercept is free there, augmented here"),
        ({"p": 3}, X, y, "another fit: p is .* there, 3.0 here"),
        ({}, X[:-1], y[:-1], f"another fit: rows is {rows} there, {rows - 1} here"),
        ({}, X[::-1].copy(), y, "other data"),
        ({}, X, np.roll(y, 1), "other data: sizes agree"),
    ):
        with pytest.raises(ValueError, match=words):
            MaxMarginClassifier(**(model.get_params() | other)).fit(data, labels)
    assert path.read_bytes() == before
    path.write_bytes(before[:-100])
    with pytest.raises(ValueError, match="not a complete checkpoint"):
        model.fit(X, y)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        model.set_params(checkpoint=tmp_path / "none" / "state").fit(X, y)


@each_case
def test_other_labels_are_noticed_also_where_no_further_pass_is_needed(name, tmp_path):
    path = tmp_path / "checkpoint"
    stopped, X, y = fit(name, after_pass(name, 1), checkpoint=path)
    again, others = clone(stopped).set_params(callback=None, tol=1e300), np.roll(y, 1)
    kept = path.read_bytes()
    with pytest.raises(ValueError, match="checkpoint of other data"):
        again.fit(X, others)
    assert path.read_bytes() == kept
    assert not hasattr(again, "coef_")


def test_a_proof_that_there_is_no_separator_deletes_the_checkpoint(tmp_path):
    path = tmp_path / "checkpoint"
    X, y, parameters = hard_margin()
    y = y.copy()
    y[:5] = ~y[:5]
    model = MaxMarginClassifier(**parameters, random_state=0, checkpoint=path).fit(X, y)
    assert model.status_ is Status.INSEPARABLE
    assert not path.exists()


def test_a_checkpoint_of_another_method_is_refused(tmp_path):
    path = tmp_path / "state"
    fit("newton", after_pass("newton", 1), checkpoint=path)
    with pytest.raises(ValueError, match="method is partitioned-newton there, cached-loops here"):
        fit("newton", checkpoint=path, memory="10KB")


def test_every_class_that_ran_out_of_time_goes_on(tmp_path):
    """The classes of cached loops divide `max_time`: each goes on from its own last pass."""
    path = tmp_path / "state"
    first, *_ = fit("loops", max_iter=2, checkpoint=path)
    assert {report.label for report in first.history_} == {0, 1, 2}
    assert first.status_ == "MAX_ITER"
    model, X, y = fit("loops", checkpoint=path)
    straight, *_ = fit("loops")
    assert same(model, straight)
    assert verify(model, X, y).gap <= model.tol
    assert not path.exists()


def test_rows_that_fit_in_memory_have_no_checkpoint(tmp_path):
    X, y, _ = newton()
    for memory in (None, "1GB"):
        model = MaxMarginClassifier(memory=memory, checkpoint=tmp_path / "state")
        with pytest.warns(UserWarning, match="checkpoint is not used: the rows are solved in memory"):
            model.fit(X, y)
    assert not list(tmp_path.iterdir())


@each_case
def test_progress_within_a_pass_is_reported_and_can_stop_it(name, monkeypatch):
    monkeypatch.setattr(driver, "PROGRESS_SECONDS", 0.0)
    X, y, parameters = CASES[name]()
    classes = np.unique(y)
    codes = encode_labels(y, None, classes)[0]
    rows, reports = y.size, []
    partitions = ArrayPartitions(X, codes, block_bytes=4_000)

    def within_the_second_pass(report):
        reports.append(report)
        return report.presentations > rows + rows // 3

    model = MaxMarginClassifier(**parameters, random_state=0, callback=within_the_second_pass)
    fit_partitions(
        model, model._problem(), partitions, classes, np.ones(classes.size), Deadline(model.max_time)
    )
    visits = [report.presentations for report in reports]
    assert visits == sorted(visits)
    assert len(set(visits)) >= 4
    assert visits[-1] % rows
    assert model.status_ in ("INTERRUPTED", "INSEPARABLE")
    assert max(report.round for report in model.history_) == 1
    assert all(proved.upper < np.inf for proved in verify(model, X, y).certificates)
    assert all(report.reason == reports[0].reason for report in reports)
    assert reports[0].reason.startswith("rows in partitions: ")


if __name__ == "__main__":
    case, place, count = sys.argv[1:]
    fit(case, after_pass(case, int(count), lambda: os.kill(os.getpid(), signal.SIGKILL)), checkpoint=place)
