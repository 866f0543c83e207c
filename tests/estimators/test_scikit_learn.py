"""The estimators inside scikit-learn: its checks, and searches with routed weights."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import (
    KernelMaxMarginClassifier,
    MarginRFE,
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    OnlineMarginClassifier,
)
from maxmargin.algorithms import MPU

X, Y = load_iris(return_X_y=True)
LINEAR = MaxMarginClassifier(tol=1e-6, random_state=0)
KERNEL = KernelMaxMarginClassifier(tol=1e-6)
ONLINE = OnlineMarginClassifier(random_state=0)
SELECTOR = MarginRFE(MaxMarginClassifier(random_state=0), n_features_to_select=2)


def name(model) -> str:
    return type(model).__name__


@parametrize_with_checks(
    [
        MaxMarginClassifier(),
        KernelMaxMarginClassifier(),
        OnlineMarginClassifier(),
        MaxMarginClassifierCV(Cs=[0.1, 1.0], cv=3),
        MarginRFE(MaxMarginClassifier(), step=0.5),
    ]
)
def test_scikit_learn_checks_pass(estimator, check):
    """Every check, with no expected failure; of OnlineMarginClassifier without those of sample weights."""
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        MaxMarginClassifier(loss="hinge", algorithm=MPU(schedule="two-level"), n_jobs=2),
        MaxMarginClassifier(loss="hinge", intercept_scaling=1.0, class_weight="balanced"),
        MaxMarginClassifier(C=100.0, tol=1e-6, warm_start=True),
        MaxMarginClassifier(algorithm="perceptron", max_iter=20),
        KernelMaxMarginClassifier(multi_class="ovo", n_jobs=2),
        KernelMaxMarginClassifier(kernel="poly", loss="squared_hinge", intercept_scaling=1.0),
        OnlineMarginClassifier("pumma", C=1.0),
        MarginRFE(MaxMarginClassifier(), step=1),
    ]
)
def test_scikit_learn_checks_pass_with_other_parameters(estimator, check):
    check(estimator)


# searches with routed weights


def scaled(model) -> Pipeline:
    return Pipeline([("scale", StandardScaler()), ("model", clone(model))])


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("model", [LINEAR, KERNEL, SELECTOR], ids=name)
def test_weight_k_equals_k_copies_in_pipelines_and_searches(model, routing):
    weights, row = np.random.default_rng(0).integers(0, 4, Y.size), np.arange(Y.size)
    copies, inner = np.repeat(row, weights), "model__estimator" if model is SELECTOR else "model"
    grid = {f"{inner}__C": [0.02, 2.0]}
    folds, copied = (
        [(np.flatnonzero(of % 3 != k), np.flatnonzero(of % 3 == k)) for k in range(3)] for of in (row, copies)
    )
    requesting = scaled(model)
    requesting["scale"].set_fit_request(sample_weight=True)
    requesting.get_params()[inner].set_fit_request(sample_weight=True)
    scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
    one = GridSearchCV(requesting, grid, cv=folds, scoring=scorer).fit(
        X, Y, sample_weight=weights.astype(float)
    )
    other = GridSearchCV(scaled(model), grid, cv=copied).fit(X[copies], Y[copies])
    assert one.best_params_ == other.best_params_
    scores = [found.cv_results_["mean_test_score"] for found in (one, other)]
    assert scores[0] == pytest.approx(
        scores[1], rel=0.0, abs=1e-14
    )  # sums of a few dozen numbers of at most 1
    # of order sqrt(tol) at most, as both are within tol of one objective
    assert np.allclose(one.decision_function(X), other.decision_function(X), rtol=1e-5, atol=1e-5)


def test_online_model_routes_classes_and_refuses_weights(routing):
    assert not hasattr(ONLINE, "set_fit_request")
    requests = clone(ONLINE).set_partial_fit_request(classes=True).get_metadata_routing()
    assert requests.partial_fit.requests == {"classes": True}
    with pytest.raises(TypeError, match="sample_weight"):
        make_pipeline(clone(ONLINE)).fit(X, Y, sample_weight=np.ones(Y.size))


@pytest.mark.parametrize("model", [LINEAR, MaxMarginClassifier(n_jobs=2), KERNEL], ids=str)
def test_callback_receives_every_round_and_does_not_change_the_model(model):
    calls = []
    fitted = clone(model).set_params(callback=calls.append).fit(X, Y)
    assert {id(report) for report in calls} == {id(report) for report in fitted.history_}
    assert np.array_equal(clone(model).fit(X, Y).decision_function(X), fitted.decision_function(X))


def fail(*arguments):
    raise RuntimeError("that is enough")


@pytest.mark.parametrize(
    "model",
    [
        MaxMarginClassifier(callback=fail),
        KernelMaxMarginClassifier(callback=fail),
        MarginRFE(MaxMarginClassifier(callback=fail)),
        MaxMarginClassifierCV([0.1], cv=3, scoring=fail),
    ],
    ids=lambda model: type(model).__name__,
)
def test_failing_callback_or_scorer_leaves_the_estimator_unchanged(model):
    before = dict(vars(model))
    with pytest.raises(RuntimeError, match="that is enough"):
        model.fit(X, Y)
    assert vars(model) == before
