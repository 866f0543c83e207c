"""The estimators inside scikit-learn: searches, calibration, output containers, routed weights, callbacks."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from interop.scikit_learn_tests import Difference, compared, page
from interop.translations import LinearSVC
from maxmargin import (
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
WEIGHTED = [LINEAR, KERNEL, SELECTOR]
ALL = [*WEIGHTED, ONLINE]


def name(model) -> str:
    return type(model).__name__


all_models = pytest.mark.parametrize("model", ALL, ids=name)
weighted_models = pytest.mark.parametrize("model", WEIGHTED, ids=name)


def scaled(model) -> Pipeline:
    return Pipeline([("scale", StandardScaler()), ("model", clone(model))])


def folds(n: int, k: int = 3) -> list[tuple[np.ndarray, np.ndarray]]:
    rows = np.arange(n)
    return [(rows[rows % k != part], rows[rows % k == part]) for part in range(k)]


# searches and cross-validation


@all_models
def test_grid_search_scores_equal_manual_fits(model):
    grid = [0.01, 1.0]
    search = GridSearchCV(scaled(model), {"model__C": grid}, cv=folds(Y.size)).fit(X, Y)
    for C, found in zip(grid, search.cv_results_["mean_test_score"], strict=True):
        by_hand = [
            scaled(model).set_params(model__C=C).fit(X[train], Y[train]).score(X[test], Y[test])
            for train, test in folds(Y.size)
        ]
        assert found == np.mean(by_hand)
    separate = scaled(model).set_params(**search.best_params_).fit(X, Y)
    assert np.array_equal(search.predict(X), separate.predict(X))


@all_models
def test_halving_search_reduces_candidates(model):
    search = HalvingGridSearchCV(
        scaled(model), {"model__C": [0.01, 0.1, 1.0, 10.0]}, cv=3, factor=2, min_resources=30, random_state=0
    ).fit(X, Y)
    assert list(search.n_candidates_) == [4, 2, 1]
    assert search.score(X, Y) > 0.6


def test_max_iter_can_be_the_resource_of_a_halving_search():
    rules = {"algorithm": ["perceptron", "alma", "mpu", "dcd"]}
    slow = MaxMarginClassifier(loss="squared_hinge", random_state=0)
    search = HalvingGridSearchCV(
        slow, rules, resource="max_iter", min_resources=1, max_resources=4, factor=2, cv=3, random_state=0
    ).fit(X, Y)
    assert list(search.n_resources_) == [1, 2, 4]
    assert search.best_params_["max_iter"] == 4


@all_models
def test_cross_validate_returns_models_and_scores(model):
    found = cross_validate(
        scaled(model), X, Y, cv=folds(Y.size), return_estimator=True, return_train_score=True
    )
    for (train, test), fitted, score, own in zip(
        folds(Y.size), found["estimator"], found["test_score"], found["train_score"], strict=True
    ):
        assert score == accuracy_score(Y[test], fitted.predict(X[test]))
        assert own == accuracy_score(Y[train], fitted.predict(X[train]))


# probabilities


@all_models
def test_probabilities_need_calibration(model):
    assert not hasattr(clone(model).fit(X, Y), "predict_proba")
    calibrated = CalibratedClassifierCV(scaled(model), cv=3).fit(X, Y)
    found = calibrated.predict_proba(X)
    assert found.min() >= 0.0
    assert np.allclose(found.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert accuracy_score(Y, calibrated.classes_[found.argmax(axis=1)]) > 0.8


@all_models
def test_calibrated_logit_is_affine_in_the_decision_function(model):
    two = Y > 0
    fitted = clone(model).fit(X, two)
    found = (
        CalibratedClassifierCV(FrozenEstimator(fitted), method="sigmoid").fit(X, two).predict_proba(X)[:, 1]
    )
    inside = (found > 1e-9) & (found < 1.0 - 1e-9)
    logit, margin = np.log(found / (1.0 - found))[inside], fitted.decision_function(X)[inside]
    slope, intercept = np.polyfit(margin, logit, 1)
    assert slope > 0.0
    assert np.allclose(slope * margin + intercept, logit, rtol=1e-5, atol=1e-5)


# output


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_selector_output_keeps_column_names(kind):
    frames = pytest.importorskip(kind)
    names = ["a", "b", "c", "d"]
    table = frames.DataFrame(dict(zip(names, X.T, strict=True)))
    pipe = scaled(SELECTOR).set_output(transform=kind).fit(table, Y)
    if not hasattr(pipe["scale"], "feature_names_in_"):
        pytest.skip(f"this version of scikit-learn does not read the column names of {kind}")
    kept = [names[k] for k in np.flatnonzero(pipe["model"].support_)]
    out = pipe.transform(table)
    assert isinstance(out, frames.DataFrame)
    assert list(out.columns) == kept == list(pipe.get_feature_names_out())
    # means depend on the memory layout of the columns
    assert np.allclose(out.to_numpy(), scaled(SELECTOR).fit(X, Y).transform(X), rtol=1e-12, atol=1e-12)


# weights


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="module")
def copies() -> tuple[np.ndarray, np.ndarray]:
    """Weights 0 to 3, and indices of rows repeated as often."""
    weights = np.random.default_rng(0).integers(0, 4, Y.size)
    return weights.astype(float), np.repeat(np.arange(Y.size), weights)


def requesting_weights(model) -> Pipeline:
    """Return a pipeline whose steps request weights."""
    pipe = scaled(model)
    pipe["scale"].set_fit_request(sample_weight=True)
    pipe["model"].set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    return pipe


def scores(fitted) -> np.ndarray:
    return fitted.decision_function(X)


@weighted_models
def test_weight_k_equals_k_copies_in_a_pipeline(model, routing, copies):
    weights, rows = copies
    one = requesting_weights(model).fit(X, Y, sample_weight=weights)
    other = scaled(model).fit(X[rows], Y[rows])
    assert np.allclose(scores(one), scores(other), rtol=1e-5, atol=1e-5)
    assert not np.allclose(scores(one), scores(scaled(model).fit(X, Y)), rtol=1e-3, atol=1e-3)
    assert one.score(X, Y, sample_weight=weights) == pytest.approx(one.score(X[rows], Y[rows]), abs=1e-12)


@weighted_models
def test_weight_k_equals_k_copies_in_searches_and_cross_validation(model, routing, copies):
    weights, rows = copies
    place = [np.flatnonzero(np.isin(rows, part)) for _, part in folds(Y.size)]
    everything = np.arange(rows.size)
    copied = [(np.setdiff1d(everything, part), part) for part in place]
    options = {"param_grid": {"model__C": [0.02, 2.0]}}
    scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
    one = GridSearchCV(requesting_weights(model), cv=folds(Y.size), scoring=scorer, **options).fit(
        X, Y, sample_weight=weights
    )
    other = GridSearchCV(scaled(model), cv=copied, **options).fit(X[rows], Y[rows])
    for k in range(3):
        actual, reference = (found.cv_results_[f"split{k}_test_score"] for found in (one, other))
        assert np.allclose(actual, reference, rtol=0, atol=1e-12)
    assert one.best_params_ == other.best_params_
    assert np.allclose(scores(one), scores(other), rtol=1e-5, atol=1e-5)
    both = (
        cross_validate(
            requesting_weights(model),
            X,
            Y,
            cv=folds(Y.size),
            scoring=scorer,
            params={"sample_weight": weights},
        ),
        cross_validate(scaled(model), X[rows], Y[rows], cv=copied),
    )
    assert np.allclose(*(found["test_score"] for found in both), rtol=0, atol=1e-12)


@weighted_models
def test_unrequested_weights_are_refused_or_ignored(model, routing):
    with pytest.raises(ValueError, match="sample_weight"):
        scaled(model).fit(X, Y, sample_weight=np.ones(Y.size))
    ignoring = scaled(model)
    ignoring["scale"].set_fit_request(sample_weight=True)
    ignoring["model"].set_fit_request(sample_weight=False)
    weights = np.linspace(0.1, 9.0, Y.size)
    ignoring.fit(X, Y, sample_weight=weights)
    scale = StandardScaler().fit(X, sample_weight=weights)
    separate = clone(model).fit(scale.transform(X), Y)
    assert np.array_equal(scores(ignoring), separate.decision_function(scale.transform(X)))


@weighted_models
def test_calibration_passes_weights_to_the_classifier(model, routing, copies):
    weights, _ = copies
    requesting = clone(model).set_fit_request(sample_weight=True)
    options = {"cv": folds(Y.size), "ensemble": False}
    one = CalibratedClassifierCV(requesting, **options).fit(X, Y, sample_weight=weights)
    separate = clone(model).fit(X, Y, sample_weight=weights)
    assert np.array_equal(one.calibrated_classifiers_[0].estimator.predict(X), separate.predict(X))


def test_online_model_routes_classes_and_refuses_weights(routing):
    assert not hasattr(ONLINE, "set_fit_request")
    assert clone(ONLINE).set_partial_fit_request(
        classes=True
    ).get_metadata_routing().partial_fit.requests == {"classes": True}
    with pytest.raises(TypeError, match="sample_weight"):
        make_pipeline(clone(ONLINE)).fit(X, Y, sample_weight=np.ones(Y.size))


# threads


def test_fits_in_parallel_search_use_one_thread():
    """With as many jobs as processors each fit has one thread."""
    count = joblib.cpu_count()
    search = GridSearchCV(
        MaxMarginClassifier(n_jobs=-1, random_state=0),
        {"C": [0.1, 1.0]},
        cv=2,
        n_jobs=max(count, 2),
        scoring=lambda model, X, y: threads.jobs(model.n_jobs, 9),
        refit=False,
    ).fit(X, Y)
    assert set(search.cv_results_["mean_test_score"]) == {1.0}


def test_joblib_context_sets_the_default_number_of_threads(monkeypatch):
    monkeypatch.setattr(threads, "cpu_count", lambda: 3)
    assert threads.jobs(None, 9) == 1
    with joblib.parallel_config(n_jobs=2):
        assert threads.jobs(None, 9) == 2
        assert threads.jobs(1, 9) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads.jobs(3, 9) == 3
    inner = joblib.Parallel(n_jobs=2, backend="threading")(joblib.delayed(threads.jobs)(k) for k in (8, 8))
    assert inner == [1, 1]


# callbacks


class Recorder:
    """A callback that records all calls, and ends the fit where `stop` returns true."""

    def __init__(self, stop=lambda context: False) -> None:
        self.stop = stop
        self.setups, self.teardowns = [], []
        self.begun, self.ended, self.open, self.models = [], [], [], []

    def setup(self, estimator, context):
        self.setups.append(estimator)

    def teardown(self, estimator, context):
        self.teardowns.append(estimator)

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context)
        self.open.append(context)

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self.open.remove(context)
        self.ended.append(context)
        if context.task_name == "round":
            self.models.append((context.report, fitted_estimator, metadata))
        return self.stop(context)

    @property
    def rounds(self):
        return [context.report for context in self.ended if context.task_name == "round"]


class PropagatedRecorder(Recorder):
    max_propagation_depth = None


class FailingRecorder(Recorder):
    """Raises an error at the second round."""

    def on_fit_task_begin(self, estimator, context):
        super().on_fit_task_begin(estimator, context)
        if len(self.rounds) == 1:
            raise RuntimeError("that is enough")


def path(context) -> list[str]:
    """Return the names of the tasks from the root to this one."""
    return [] if context is None else [*path(context.parent), f"{context.estimator_name} {context.task_name}"]


def noisy_rows(n: int = 300, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    y = np.arange(n) % classes
    return rng.normal(size=(n, 4)) + rng.normal(size=(classes, 4))[y], y


MANY_ROUNDS = [
    MaxMarginClassifier(algorithm="mpu", loss="hinge", tol=1e-4, random_state=0),
    MaxMarginClassifier(algorithm="dcd", tol=1e-5, random_state=0),
    KernelMaxMarginClassifier(tol=1e-4),
]


@CALLBACKS
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        *MANY_ROUNDS,
        KernelMaxMarginClassifier(multi_class="ovo"),
        MaxMarginClassifier(n_jobs=2, random_state=0),
        KernelMaxMarginClassifier(multi_class="ovo", n_jobs=2),
    ],
    ids=repr,
)
def test_callbacks_receive_every_round(model, classes, monkeypatch):
    monkeypatch.setattr(threads, "cpu_count", lambda: 2)
    rows = noisy_rows(classes=classes)
    recorder, reports = Recorder(), []
    with_callbacks = clone(model).set_params(callback=reports.append).set_callbacks(recorder).fit(*rows)
    assert recorder.rounds == reports
    assert len(reports) == len(with_callbacks.history_)
    assert {id(report) for report in reports} == {id(report) for report in with_callbacks.history_}
    assert recorder.setups == recorder.teardowns == [with_callbacks]
    assert not recorder.open
    silent = clone(model).fit(*rows)
    assert silent.decision_function(rows[0]).tobytes() == with_callbacks.decision_function(rows[0]).tobytes()
    tree = {id(context): context for context in recorder.begun}.values()
    for context in tree:
        below = [one.task_id for one in tree if one.parent is context]
        assert context.max_subtasks is None or len(below) <= context.max_subtasks
        if context.sequential_subtasks:
            assert below == list(range(len(below)))


@CALLBACKS
@pytest.mark.parametrize("model", MANY_ROUNDS, ids=repr)
def test_tasks_are_the_decades_of_the_gap(model, rules_alone):
    """Within a task the gap is of one decade, and names state the first and last bounds."""
    recorder = Recorder()
    fitted = clone(model).set_callbacks(recorder).fit(*noisy_rows())
    root = recorder.begun[0]
    decades = round(-np.log10(model.tol))
    assert root.max_subtasks == decades + 1
    assert root.task_name == "fit"
    stages = [context for context in recorder.begun if context.parent is root]
    for context in stages:
        rounds = [one.report for one in recorder.ended if one.parent is context]
        assert all(report.gap > 10.0 ** -(context.task_id + 1) for report in rounds[:-1])
        assert all(report.gap <= 10.0**-context.task_id for report in rounds) or context.task_id == 0
    last = fitted.history_[-1]
    assert stages[-1].task_name == f"CERTIFIED {last.lower:.4g}..{last.upper:.4g}, gap {last.gap:.1g}"
    first = fitted.history_[0]
    known = f"{first.lower:.4g}..{first.upper:.4g}, gap {first.gap:.1g}, margin {first.margin:.2g}"
    assert stages[0].task_name == known


@CALLBACKS
def test_task_names_state_margin_and_time_left():
    rows = load_iris(return_X_y=True)[0], load_iris().target > 0
    recorder = Recorder()
    hard = MaxMarginClassifier(C=np.inf, algorithm="perceptron", max_time=500, random_state=0)
    hard.set_callbacks(recorder).fit(*rows)
    first = recorder.begun[1]
    report = hard.history_[0]
    assert first.task_name.startswith(
        f"margin {report.lower:.4g}..{report.upper:.4g}, gap {report.gap:.1g}, "
    )
    assert first.task_name.endswith("s left")
    assert 400 < float(first.task_name.split()[-3]) <= 500


@CALLBACKS
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_model_of_a_round_has_the_reported_objective(loss, rules_alone):
    rows, y = noisy_rows()
    recorder, weights = Recorder(), np.linspace(0.5, 1.5, y.size)
    model = MaxMarginClassifier(loss=loss, algorithm="dcd", tol=1e-6, random_state=0)
    model.set_callbacks(recorder).fit(rows, y, weights)
    assert len(recorder.models) > 2
    for report, fitted, metadata in recorder.models:
        assert metadata["sample_weight"] is weights
        losses = np.maximum(0.0, 1.0 - (2 * y - 1) * fitted.decision_function(rows))
        losses = losses if loss == "hinge" else losses**2
        objective = 0.5 * (fitted.coef_**2).sum() + weights @ losses
        assert objective == pytest.approx(report.upper, rel=1e-9)
        assert fitted.n_iter_ == report.round
        assert set(fitted.predict(rows)) <= {0, 1}


@CALLBACKS
def test_kernel_model_of_a_round_has_the_reported_objective():
    rows, y = noisy_rows(600)
    recorder = Recorder()
    KernelMaxMarginClassifier(tol=1e-6, gamma=0.3).set_callbacks(recorder).fit(rows, y)
    assert len(recorder.models) > 2
    for report, fitted, _ in recorder.models:
        K = rbf_kernel(fitted.support_vectors_, gamma=0.3)
        losses = np.maximum(0.0, 1.0 - (2 * y - 1) * fitted.decision_function(rows))
        objective = 0.5 * (fitted.dual_coef_ @ K @ fitted.dual_coef_.T).item() + losses.sum()
        assert objective == pytest.approx(report.upper, rel=1e-9)


@CALLBACKS
@pytest.mark.parametrize("kind", [MaxMarginClassifier, KernelMaxMarginClassifier])
def test_multiclass_round_models_exist_after_a_round_of_each_class(kind):
    recorder = Recorder()
    fitted = kind(random_state=0).set_callbacks(recorder).fit(X, Y)
    reported = set()
    for report, model, _ in recorder.models:
        reported.add(report.label)
        assert (model is not None) == (len(reported) == 3)
    last = recorder.models[-1][1]
    assert np.array_equal(last.predict(X), fitted.predict(X))
    assert [context.task_name for context in recorder.begun if context.parent is recorder.begun[0]] == [
        "class 0",
        "class 1",
        "class 2",
    ]


@CALLBACKS
@pytest.mark.parametrize("model", MANY_ROUNDS, ids=repr)
def test_callbacks_can_interrupt_the_fit(model, rules_alone, monkeypatch):
    monkeypatch.setattr("maxmargin.fit.exact.MAX_EIGEN_ROWS", 0)
    recorder = Recorder(stop=lambda context: context.task_name == "round" and context.report.round == 2)
    fitted = clone(model).set_params(tol=1e-9).set_callbacks(recorder).fit(*noisy_rows())
    assert fitted.status_ == "INTERRUPTED"
    assert len(recorder.rounds) == fitted.n_iter_ == 2
    assert fitted.certificate_.gap < np.inf
    assert recorder.ended[-1].task_name == "fit"


@CALLBACKS
@pytest.mark.parametrize("model", MANY_ROUNDS, ids=repr)
def test_failing_callback_leaves_the_estimator_unchanged_and_is_torn_down(model):
    failing = FailingRecorder()
    fitted = clone(model).set_callbacks(failing)
    before = dict(vars(fitted))
    with pytest.raises(RuntimeError, match="that is enough"):
        fitted.fit(*noisy_rows(classes=3))
    assert vars(fitted) == before
    assert failing.setups == failing.teardowns == [fitted]


@CALLBACKS
@all_models
def test_no_callback_context_is_created_without_callbacks(model, monkeypatch):
    from sklearn.callback import CallbackContext

    def never(*arguments, **options):
        raise AssertionError

    monkeypatch.setattr(CallbackContext, "_from_estimator", never)
    fitted = clone(model).fit(X, Y)
    assert not any("callback" in key for key in vars(fitted) if key != "callback")
    fitted.set_callbacks(Recorder()).set_callbacks().fit(X, Y)


@CALLBACKS
@all_models
def test_invalid_callbacks_are_refused(model):
    with pytest.raises(TypeError, match="callbacks must be instances"):
        clone(model).set_callbacks(print)


@CALLBACKS
@pytest.mark.parametrize("model", [LINEAR, KERNEL, ONLINE], ids=name)
def test_callbacks_are_propagated_through_pipelines_and_searches(model):
    recorder = PropagatedRecorder()
    search = GridSearchCV(scaled(model), {"model__C": [0.1, 1.0]}, cv=2).set_callbacks(recorder).fit(X, Y)
    assert recorder.setups == recorder.teardowns == [search]
    assert not recorder.open
    fits = [
        context
        for context in recorder.ended
        if context.estimator_name == name(model) and context.task_name == "fit"
    ]
    assert len(fits) == 2 * 2 + 1
    assert path(fits[0]) == [
        "GridSearchCV fit",
        "GridSearchCV search",
        "Pipeline fit",
        f"{name(model)} fit",
    ]
    best = search.best_estimator_["model"]
    if model is not ONLINE:
        last = recorder.rounds[-len(best.history_) :]
        assert sorted(last, key=str) == sorted(best.history_, key=str)
    assert not any("callback" in key for key in vars(best) if key != "callback")


def normalised(text: str) -> str:
    """Collapse whitespace and rejoin wrapped lines."""
    return " ".join(text.split())


@CALLBACKS
@pytest.mark.parametrize("model", [LINEAR, KERNEL], ids=name)
def test_progress_bar_shows_bounds_and_status(model, capsys, monkeypatch):
    from sklearn.callback import ProgressBar

    monkeypatch.setenv("COLUMNS", "80")
    fitted = clone(model).set_callbacks(ProgressBar()).fit(X, Y)
    shown = normalised(capsys.readouterr().out)
    for label in range(3):
        last = [report for report in fitted.history_ if report.label == label][-1]
        assert f"{name(model)} - class {label}" in shown
        assert f"CERTIFIED {last.lower:.4g}..{last.upper:.4g}, gap {last.gap:.1g}" in shown
    assert "0%" not in shown.replace("100%", "")


@CALLBACKS
def test_progress_bar_of_a_search_shows_its_fits(capsys, monkeypatch):
    from sklearn.callback import ProgressBar

    monkeypatch.setenv("COLUMNS", "200")
    two = Y > 0
    with joblib.parallel_config("threading"):
        GridSearchCV(LINEAR, {"C": [0.1, 1.0]}, cv=2, n_jobs=2).set_callbacks(ProgressBar()).fit(X, two)
    shown = normalised(capsys.readouterr().out)
    assert shown.count("candidate-split-evaluation | MaxMarginClassifier - fit") == 4
    assert shown.count("refit-with-best-params | MaxMarginClassifier - fit") == 1
    assert shown.count("CERTIFIED ") == 5


@CALLBACKS
def test_class_names_are_not_read_as_markup(capsys, monkeypatch):
    from sklearn.callback import ProgressBar

    monkeypatch.setenv("COLUMNS", "200")
    names = np.array(["[/red]", "[b]", "c"])[Y]
    fitted = clone(LINEAR).set_callbacks(ProgressBar()).fit(X, names)
    assert fitted.status_ == "CERTIFIED"
    assert "class (/red)" in normalised(capsys.readouterr().out)


@CALLBACKS
@pytest.mark.parametrize("model", [LINEAR, KERNEL, ONLINE], ids=name)
def test_scoring_monitor_records_the_score(model):
    from sklearn.callback import ScoringMonitor

    monitor = ScoringMonitor(scoring="accuracy")
    fitted = clone(model).set_callbacks(monitor).fit(X, Y)
    log = monitor.get_logs().data
    whole = [line["accuracy"] for line in log if line["task_name"] == "fit"]
    assert whole == [fitted.score(X, Y)]
    assert len(log) > 1


@CALLBACKS
def test_elimination_reports_feature_sets_and_fits():
    recorder = PropagatedRecorder()
    selector = clone(SELECTOR).set_params(n_features_to_select=1, step=1, cv=3).set_callbacks(recorder)
    selector.fit(X, Y)
    assert recorder.setups == recorder.teardowns == [selector]
    assert not recorder.open
    root = recorder.begun[0]
    assert root.max_subtasks == 5
    below = [context for context in recorder.ended if context.parent is root]
    assert below[0].task_name == "cross-validation"
    assert [context.source_task_name.split()[0] for context in below[1:]] == ["4", "3", "2", "1"]
    for before, context in zip(selector.path_, below[2:], strict=False):
        known = f"before: {before.lower:.4g}..{before.upper:.4g}"
        assert known in context.source_task_name
    assert recorder.rounds[-len(selector.estimator_.history_) :] == selector.estimator_.history_


@CALLBACKS
@pytest.mark.parametrize("inner", ["auto", LINEAR], ids=["named", "given"])
def test_callbacks_can_interrupt_an_elimination(inner):
    recorder = Recorder(stop=lambda context: context.task_name.startswith("3 features"))
    selector = MarginRFE(inner, p=2, n_features_to_select=1, step=1, random_state=0)
    selector.set_callbacks(recorder).fit(X, Y)
    assert [stage.n_features for stage in selector.path_] == [4, 3]
    assert selector.n_features_ == 3
    assert selector.reason_ == "it was interrupted at 3 features"


@CALLBACKS
def test_online_fit_reports_passes_and_bounds():
    records = []

    class BoundsRecorder(Recorder):
        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            records.append((context, estimator.bounds_, fitted_estimator))
            return context.task_id == 2

    fitted = clone(ONLINE).set_callbacks(BoundsRecorder()).fit(X, Y > 1)
    passes, root = records[:-1], records[-1][0]
    assert root.max_subtasks == fitted.max_iter
    assert fitted.n_iter_ == len(passes) == 3
    for (_, bounds, model), (after, *_) in pairwise(passes):
        assert f"margin <= {bounds.upper[0]:.4g}" in after.task_name
        assert np.array_equal(model.bounds_.upper, bounds.upper)
        assert model.n_seen_ < fitted.n_seen_
    again = clone(ONLINE).set_params(max_iter=1).fit(X, Y > 1)
    assert np.array_equal(passes[0][2].coef_, again.coef_)


@CALLBACKS
def test_cross_validated_fit_reports_folds_and_final_fit():
    recorder = PropagatedRecorder()
    fitted = MaxMarginClassifierCV([0.1, 1.0], cv=3, loss="hinge").set_callbacks(recorder).fit(X, Y)
    assert not recorder.open
    below = [context for context in recorder.ended if context.parent is recorder.begun[0]]
    assert [context.source_task_name or context.task_name for context in below] == [
        "paths of 3 folds", f"all rows with C = {fitted.C_:g}",
    ]  # fmt: skip
    assert recorder.rounds == fitted.history_


@CALLBACKS
def test_failed_cross_validated_fit_leaves_the_estimator_unchanged_and_tears_callbacks_down():
    recorder = PropagatedRecorder()
    search = MaxMarginClassifierCV([0.1, 1.0], cv=3, scoring=lambda model, X, y: np.nan)
    search.set_callbacks(recorder)
    before = dict(vars(search))
    with pytest.raises(ValueError, match="the score of fold 0 is nan"):
        search.fit(X, Y)
    assert vars(search) == before
    assert recorder.setups == recorder.teardowns == [search]


WITHOUT_CALLBACKS = """
import sys
import numpy as np
import sklearn.feature_extraction, sklearn.feature_selection, sklearn.linear_model, sklearn.model_selection
import sklearn.svm
sys.modules["sklearn.callback"] = None
import maxmargin
from maxmargin import *
X = np.array([[0.0], [1.0], [2.0], [3.0]])
for model in (MaxMarginClassifier(), KernelMaxMarginClassifier(), OnlineMarginClassifier(), MarginRFE("auto", p=2)):
    assert not hasattr(model, "set_callbacks")
    print(model.fit(X, [0, 0, 1, 1]).predict([[9.0]]))
"""


def test_estimators_work_without_sklearn_callback():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_CALLBACKS], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["[1]"] * 4


# comparison with the tests of scikit-learn

FAILED = {"outcome": "failed", "said": "TypeError: no such thing as dual"}
PASSED = {"outcome": "passed"}


def test_unlisted_or_differing_failures_are_reported():
    found = {"m::a[1]": FAILED, "m::a[2]": FAILED, "m::b": PASSED, "m::c[x-1]": FAILED}
    listed = [Difference("why", ["m::a", "m::c[*-1]"], "dual$")]
    assert compared(found, listed) == []
    assert listed[0].met == ["m::a[1]", "m::a[2]", "m::c[x-1]"]
    assert "| 3 | why |" in page(found, listed)
    assert "not on the list" in compared(found, [Difference("why", ["m::a"], "dual")])[0]
    wrong = compared(found, [Difference("why", ["m::a", "m::c"], "Value")])
    assert "for another reason" in wrong[0]
    twice = [Difference("why", ["m::a", "m::c"]), Difference("so", ["m::c"])]
    assert "m::c[x-1] is on the list twice" in compared(found, twice)


def test_listed_tests_that_pass_or_do_not_exist_are_reported():
    found = {"m::a[1]": FAILED, "m::a[2]": PASSED}
    assert "m::a[2] passes, and is on the list: why" in compared(found, [Difference("why", ["m::a"])])
    wrong = compared(found, [Difference("why", ["m::a[1]", "m::old"])])
    assert wrong == ["m::old is on the list, and no such test failed: why"]


def test_l1_and_l2_penalties_equal_those_of_linear_svc():
    from sklearn.svm import LinearSVC as SklearnLinearSVC

    table = StandardScaler().fit_transform(X)
    for penalty in ("l1", "l2"):
        reference = SklearnLinearSVC(penalty=penalty, dual=False, tol=1e-10, max_iter=100_000).fit(
            table, Y > 0
        )
        actual = LinearSVC(penalty=penalty, tol=1e-10).fit(table, Y > 0)
        assert np.allclose(actual.coef_, reference.coef_, rtol=0, atol=1e-4)
        assert np.allclose(actual.intercept_, reference.intercept_, rtol=0, atol=1e-4)
