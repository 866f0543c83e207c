"""The estimators inside scikit-learn: its checks, searches with routed weights, and callbacks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import sklearn
from recorder import PropagatedRecorder, Recorder
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from maxmargin import (
    MPU,
    KernelMaxMarginClassifier,
    MarginRFE,
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    OnlineMarginClassifier,
)
from maxmargin.numerics import threads

HAS_CALLBACKS = parse_version(sklearn.__version__) >= parse_version("1.9")
CALLBACKS = pytest.mark.skipif(not HAS_CALLBACKS, reason="sklearn.callback is new in scikit-learn 1.9")

X, Y = load_iris(return_X_y=True)
LINEAR = MaxMarginClassifier(tol=1e-6, random_state=0)
KERNEL = KernelMaxMarginClassifier(tol=1e-6)
ONLINE = OnlineMarginClassifier(random_state=0)
SELECTOR = MarginRFE("auto", p=2, n_features_to_select=2, random_state=0)


def name(model) -> str:
    return type(model).__name__


@parametrize_with_checks(
    [
        MaxMarginClassifier(),
        KernelMaxMarginClassifier(),
        OnlineMarginClassifier(),
        MaxMarginClassifierCV(Cs=[0.1, 1.0], cv=3),
        MarginRFE("auto", p=2, step=0.5),
    ]
)
def test_scikit_learn_checks_pass(estimator, check):
    """Every check, with no expected failure; of OnlineMarginClassifier without those of sample weights."""
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        MaxMarginClassifier(loss="hinge", algorithm=MPU(schedule="two-level"), n_jobs=2),
        MaxMarginClassifier(loss="hinge", intercept="augmented", class_weight="balanced"),
        MaxMarginClassifier(C=100.0, tol=1e-6, warm_start=True),
        MaxMarginClassifier(algorithm="perceptron", max_iter=20),
        KernelMaxMarginClassifier(multi_class="ovo", n_jobs=2),
        KernelMaxMarginClassifier(kernel="poly", loss="squared_hinge", intercept="augmented"),
        OnlineMarginClassifier("pumma", C=1.0),
        MarginRFE("auto", p=2, cv=2, step=1),
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
    copies, grid = np.repeat(row, weights), {"model__C": [0.02, 2.0]}
    folds, copied = (
        [(np.flatnonzero(of % 3 != k), np.flatnonzero(of % 3 == k)) for k in range(3)] for of in (row, copies)
    )
    requesting = scaled(model)
    requesting["scale"].set_fit_request(sample_weight=True)
    requesting["model"].set_fit_request(sample_weight=True)
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


# callbacks


def noisy_rows(n: int = 300, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    y = np.arange(n) % classes
    return rng.normal(size=(n, 4)) + rng.normal(size=(classes, 4))[y], y


DESCENT = MaxMarginClassifier(algorithm="dcd", tol=1e-5, random_state=0)
DECOMPOSITION = KernelMaxMarginClassifier(tol=1e-4, gamma=0.3)


@CALLBACKS
@pytest.mark.parametrize(
    "model", [DESCENT, MaxMarginClassifier(n_jobs=2), KernelMaxMarginClassifier(multi_class="ovo", n_jobs=2)]
)
def test_callbacks_receive_every_round(model, monkeypatch):
    monkeypatch.setattr(threads, "cpu_count", lambda: 2)
    rows = noisy_rows(150, classes=3)
    recorder, calls = Recorder(), []
    fitted = clone(model).set_params(callback=calls.append).set_callbacks(recorder).fit(*rows)
    # within a round that takes long there are calls with a copy of the last report, and of round 0 before the first
    kept = {id(report) for report in fitted.history_}
    reports = [report for report in calls if id(report) in kept]
    rounds = {(report.label, report.round) for report in reports}
    assert all(report.round == 0 or (report.label, report.round) in rounds for report in calls)
    assert recorder.below_root()
    assert [context.report for context in recorder.rounds] == reports
    assert {id(report) for report in reports} == kept
    if not model.n_jobs:
        complete = [recorder.models[context][0] is not None for context in recorder.rounds]
        assert complete == [len({one.label for one in reports[: k + 1]}) == 3 for k in range(len(reports))]
    silent = clone(model).fit(*rows)
    assert silent.decision_function(rows[0]).tobytes() == fitted.decision_function(rows[0]).tobytes()


@CALLBACKS
@pytest.mark.parametrize("model", [DESCENT, DECOMPOSITION], ids=name)
def test_model_of_a_round_has_the_reported_objective(model, rules_alone):
    """Rounds are below tasks for the decades of the gap; a callback may end the fit after a round."""
    rows, y = noisy_rows(600)
    recorder = Recorder(stop=lambda context: context.task_name == "round" and context.report.round == 3)
    weights = np.linspace(0.5, 1.5, y.size)
    stopped = clone(model).set_params(tol=1e-9).set_callbacks(recorder).fit(rows, y, weights)
    assert (stopped.status_, stopped.n_iter_, len(recorder.rounds)) == ("INTERRUPTED", 3, 3)
    assert recorder.begun[0].max_subtasks == 10
    for context in recorder.rounds:
        report, (fitted, metadata), decade = context.report, recorder.models[context], context.parent.task_id
        assert decade == 0 or report.gap <= 10.0**-decade
        assert metadata["sample_weight"] is weights
        losses = np.maximum(0.0, 1.0 - (2 * y - 1) * fitted.decision_function(rows))
        if model is DESCENT:
            square, losses = (fitted.coef_**2).sum(), losses**2
        else:
            K = rbf_kernel(fitted.support_vectors_, gamma=0.3)
            square = (fitted.dual_coef_ @ K @ fitted.dual_coef_.T).item()
        assert 0.5 * square + weights @ losses == pytest.approx(report.upper, rel=1e-12, abs=0.0)  # 600 eps
        assert fitted.n_iter_ == report.round
        assert set(fitted.predict(rows)) <= {0, 1}


def fail(*arguments):
    raise RuntimeError("that is enough")


@CALLBACKS
@pytest.mark.parametrize(
    "model", [DESCENT, KERNEL, SELECTOR, MaxMarginClassifierCV([0.1], cv=3, scoring=fail)], ids=name
)
def test_failing_callback_or_scorer_leaves_the_estimator_unchanged(model):
    recorder = PropagatedRecorder(stop=lambda context: context.task_name == "round" and fail())
    fitted = clone(model).set_callbacks(recorder)
    before = dict(vars(fitted))
    with pytest.raises(RuntimeError, match="that is enough"):
        fitted.fit(*noisy_rows(classes=3))
    assert vars(fitted) == before
    assert recorder.setups == recorder.teardowns == [fitted]


@CALLBACKS
@pytest.mark.parametrize("model", [LINEAR, KERNEL], ids=name)
def test_progress_bar_shows_bounds_status_and_class_names(model, capsys, monkeypatch):
    """Square brackets of class names are no markup."""
    from sklearn.callback import ProgressBar

    monkeypatch.setenv("COLUMNS", "200")
    labels = np.array(["[/red]", "[b]", "c"])[Y]
    fitted = clone(model).set_callbacks(ProgressBar()).fit(X, labels)
    shown = " ".join(capsys.readouterr().out.split())
    for label, printed in (("[/red]", "(/red)"), ("[b]", "(b)"), ("c", "c")):
        last = [report for report in fitted.history_ if report.label == label][-1]
        assert f"{name(model)} - class {printed}" in shown
        assert f"CERTIFIED {last.lower:.4g}..{last.upper:.4g}, gap {last.gap:.1g}" in shown
    assert "0%" not in shown.replace("100%", "")


@CALLBACKS
def test_elimination_reports_feature_sets_and_fits_and_can_be_interrupted():
    recorder = PropagatedRecorder()
    selector = (
        clone(SELECTOR).set_params(n_features_to_select=1, step=1, cv=3).set_callbacks(recorder).fit(X, Y)
    )
    first, *sets = recorder.below_root()
    assert recorder.begun[0].max_subtasks == 5
    assert first.task_name == "cross-validation"
    assert [context.source_task_name.split()[0] for context in sets] == ["4", "3", "2", "1"]
    for before, context in zip(selector.path_, sets[1:], strict=False):
        assert f"before: {before.lower:.4g}..{before.upper:.4g}" in context.source_task_name
    history = selector.estimator_.history_
    assert [context.report for context in recorder.rounds][-len(history) :] == history
    recorder = Recorder(stop=lambda context: context.task_name.startswith("3 features"))
    selector.set_params(cv=None).set_callbacks(recorder).fit(X, Y)
    assert [stage.n_features for stage in selector.path_] == [4, 3]


@CALLBACKS
def test_online_fit_reports_passes_and_bounds():
    recorder = Recorder(stop=lambda context: context.task_id == 2)
    fitted = clone(ONLINE).set_callbacks(recorder).fit(X, Y > 1)
    passes = [(context, recorder.models[context][0]) for context in recorder.below_root()]
    assert recorder.begun[0].max_subtasks == fitted.max_iter
    assert fitted.n_iter_ == len(passes) == 3
    for (_, model), (after, _) in pairwise(passes):
        assert f"margin <= {model.bounds_.upper[0]:.4g}" in after.task_name
        assert model.n_seen_ < fitted.n_seen_
    again = clone(ONLINE).set_params(max_iter=1).fit(X, Y > 1)
    assert np.array_equal(passes[0][1].coef_, again.coef_)


@CALLBACKS
def test_cross_validated_fit_reports_folds_and_final_fit():
    recorder = PropagatedRecorder()
    fitted = MaxMarginClassifierCV([0.1, 1.0], cv=3).set_callbacks(recorder).fit(X, Y)
    names = [context.source_task_name or context.task_name for context in recorder.below_root()]
    assert names == ["paths of 3 folds", f"all rows with C = {fitted.C_:g}"]
    assert [context.report for context in recorder.rounds] == fitted.history_
