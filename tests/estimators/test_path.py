"""Paths over C and p, and selection of C and p by cross-validation."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import MaxMarginClassifier, MaxMarginClassifierCV, Status, load, margin_path, save, verify
from maxmargin.estimators.path import MarginPath

CS = np.logspace(-3, 3, 7)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


def separable():
    """Rows with a large margin, few of which are near it."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(3000) % 2 == 0, 1, -1)
    X = rng.normal(size=(3000, 4))
    X[:, 0] = y * (1.0 + 10.0 * rng.random(3000))
    return X, y


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_every_point_is_certified_and_its_bounds_enclose_the_optimum(cancer, loss, fit_intercept, sparse):
    X, y = cancer
    data = sp.csr_array(X) if sparse else X
    path = margin_path(data, y, CS, loss=loss, fit_intercept=fit_intercept, tol=1e-4, random_state=0)
    assert len(path) == 7
    np.testing.assert_array_equal(path.Cs, CS)
    for C, model in zip(CS, path, strict=True):
        assert type(model) is MaxMarginClassifier
        assert model.status_ is Status.CERTIFIED
        assert model.get_params()["C"] == C
        assert verify(model, data, y).gap <= 1e-4
        separate = (
            MaxMarginClassifier(C, loss=loss, fit_intercept=fit_intercept, tol=1e-9).fit(data, y).certificate_
        )
        assert model.certificate_.lower <= separate.upper
        assert model.certificate_.upper >= separate.lower
    assert path.coefs_.shape == (7, 30)
    assert path.intercepts_.shape == (7,)
    assert (np.diff(path.upper_) > -1e-4 * path.upper_[1:]).all()  # the objective grows with C
    assert (path.gaps_ <= 1e-4).all()


def test_warm_starts_take_fewer_steps_than_separate_fits(cancer):
    """Rescaled dual weights of one C are nearly optimal for the next."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 20))
    y = np.sign(X[:, 0] + rng.normal(size=4000))
    path = margin_path(X, y, np.logspace(0, 3, 8), loss="hinge", algorithm="dcd", random_state=0)
    separate = [
        MaxMarginClassifier(C, loss="hinge", algorithm="dcd", random_state=0).fit(X, y).history_[-1].steps
        for C in path.Cs
    ]
    warm = [model.history_[-1].steps for model in path]
    assert sum(warm[1:]) < 0.25 * sum(separate[1:])


class TestRestarts:
    """Points that a warm start leaves uncertified are fitted again from a cold start."""

    @pytest.mark.parametrize("Cs", [[np.inf], [1.0, np.inf], [1e4, np.inf]])
    @pytest.mark.parametrize("raw", [True, False])
    def test_hard_margin_equals_that_of_a_separate_fit(self, cancer, Cs, raw):
        X, y = load_breast_cancer(return_X_y=True) if raw else cancer
        path = margin_path(X, y, Cs, max_time=60, random_state=0)
        separate = MaxMarginClassifier(np.inf, random_state=0).fit(X, y)
        assert path.statuses_ == (Status.CERTIFIED,) * len(Cs)
        np.testing.assert_array_equal(path[-1].coef_, separate.coef_)
        assert verify(path[-1], X, y).gap < 1e-6
        assert path[-1].get_params()["max_time"] == 60

    def test_uncertified_points_end_with_the_exact_step(self, cancer):
        settings = {"loss": "hinge", "algorithm": "dcd", "max_iter": 5, "random_state": 0}
        path = margin_path(*cancer, [100.0, 1000.0], **settings)
        assert path.statuses_ == (Status.CERTIFIED,) * 2
        for model in path:
            assert type(model) is MaxMarginClassifier
            assert model.history_[-1].stage == "exact"
            assert model.get_params()["max_iter"] == 5

    def test_better_of_warm_and_cold_start_is_kept(self):
        """With rows too many for the exact step, a warm start has a smaller gap than a cold one."""
        rng = np.random.default_rng(1)
        X = rng.normal(size=(6000, 200))
        y = np.sign(X[:, 0] + rng.normal(size=6000))
        settings = {"loss": "hinge", "algorithm": "dcd", "max_iter": 2, "tol": 1e-9, "random_state": 0}
        path = margin_path(X, y, [1.0, 1.5, 2.0], **settings)
        separate = MaxMarginClassifier(2.0, **settings).fit(X, y)
        assert path.statuses_[2] is separate.status_ is Status.MAX_ITER
        assert path.gaps_[2] < 0.5 * separate.certificate_.gap

    def test_interrupt_ends_the_path_with_the_current_point(self, cancer):
        """The callback interrupts the restarted fit; the path holds that point only."""
        stages = []

        def stop(report):
            stages.append(report.round)
            return stages.count(1) == 2

        settings = {"loss": "hinge", "algorithm": "dcd", "max_iter": 5, "random_state": 0}
        path = margin_path(*cancer, [100.0, 1000.0], callback=stop, **settings)
        assert path.statuses_ == (Status.INTERRUPTED,)
        assert stages[-2:] == [5, 1]


class TestOrder:
    def test_points_keep_the_given_order(self, cancer):
        path = margin_path(*cancer, [10.0, 0.1, 1.0], [2, np.inf], random_state=0)
        assert list(path.Cs) == [10.0, 0.1, 1.0] * 2
        assert list(path.ps) == [2.0] * 3 + [np.inf] * 3
        assert [model.certificate_.problem.C for model in path] == list(path.Cs)

    def test_last_point_may_be_the_hard_margin(self):
        X, y = separable()
        path = margin_path(X, y, [1.0, np.inf])
        assert path[1].certificate_.problem.hard
        assert path.lower_[1] <= path.upper_[1]

    def test_integer_Cs_gives_a_logarithmic_grid(self, cancer):
        np.testing.assert_allclose(margin_path(*cancer, 3, tol=0.1).Cs, [1e-4, 1.0, 1e4])
        assert margin_path(*cancer, 1).Cs == [1.0]

    def test_multiclass_path_has_coefficients_per_class(self):
        X, y = load_iris(return_X_y=True)
        path = margin_path(X, y, CS, loss="hinge")
        assert path.coefs_.shape == (7, 3, 4)
        assert path.intercepts_.shape == (7, 3)
        np.testing.assert_allclose(path.lower_[3], sum(part.lower for part in path[3].certificate_))
        assert "CERTIFIED" in str(path)

    def test_equal_seeds_give_equal_paths(self, cancer):
        one, two = (margin_path(*cancer, CS, loss="hinge", random_state=3) for _ in range(2))
        np.testing.assert_array_equal(one.coefs_, two.coefs_)


class TestScreening:
    def test_screened_rows_do_not_change_the_optimum(self):
        X, y = separable()
        costs = np.logspace(1, 3, 7)
        path = margin_path(X, y, costs, loss="hinge", screen=True, tol=1e-6, random_state=0)
        assert path.rows_left_out.max() > 0.25 * y.size
        for model in path:
            verify(model, X, y)
            exact = MaxMarginClassifier(model.C, loss="hinge", tol=1e-9).fit(X, y).certificate_
            assert exact.lower <= model.certificate_.upper <= exact.upper * (1 + 1e-6)

    def test_features_are_screened_at_p_inf(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 400))
        X[:, 0] *= 3
        y = np.sign(X[:, 0] + 0.5 * rng.normal(size=60))
        path = margin_path(X, y, np.logspace(-3, -2.5, 6), [np.inf], screen=True, tol=1e-5)
        assert path.features_left_out.max() > 100
        for model in path:
            assert verify(model, X, y).gap <= 1e-5

    @pytest.mark.parametrize(("loss", "p"), [("hinge", np.inf), ("squared_hinge", 1.5)])
    def test_nothing_is_screened_without_a_theorem(self, cancer, loss, p):
        X, y = cancer
        path = margin_path(X[:100], y[:100], [1.0, 1.01], [p], loss=loss, screen=True)
        assert not path.rows_left_out.any()
        assert not path.features_left_out.any()

    def test_screening_holds_with_sample_weights(self):
        X, y = separable()
        s = np.where(np.arange(y.size) % 5 == 0, 0.0, 2.0)
        path = margin_path(X, y, np.logspace(1, 3, 5), loss="hinge", sample_weight=s, screen=True, tol=1e-6)
        assert path.rows_left_out.any()
        for model in path:
            verify(model, X, y, s)


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"Cs": []}, "Cs must be positive numbers, at least one"),
            ({"Cs": [1.0, -1.0]}, "Cs must be positive numbers"),
            ({"Cs": [np.nan]}, "Cs must be positive numbers"),
            ({"Cs": "abc"}, "Cs must be positive numbers"),
            ({"Cs": {1.0, 2.0}}, "Cs must be positive numbers"),
            ({"Cs": True}, "Cs must be positive numbers"),
            ({"Cs": 0}, "Cs must be a number of costs, at least 1"),
            ({"ps": []}, "ps must hold at least one norm"),
            ({"ps": [0.5]}, "p must be a number from 1 to inf"),
            ({"los": "hinge"}, "margin_path does not know 'los'"),
            ({"C": 1.0}, "margin_path does not know 'C'"),
        ],
    )
    def test_invalid_arguments_are_refused(self, cancer, change, message):
        with pytest.raises(ValueError, match=message):
            margin_path(*cancer, **change)


@parametrize_with_checks([MaxMarginClassifierCV(Cs=[0.1, 1.0], cv=3)])
def test_scikit_learn_checks_pass(estimator, check):
    """Every check, with no expected failure."""
    check(estimator)


class TestCrossValidation:
    def test_scores_equal_those_of_a_grid_search(self, cancer):
        X, y = cancer
        folds = StratifiedKFold(4, shuffle=True, random_state=0)
        clf = MaxMarginClassifierCV(CS, cv=folds, loss="hinge", tol=1e-6, random_state=0).fit(X, y)
        grid = GridSearchCV(
            MaxMarginClassifier(loss="hinge", tol=1e-6, random_state=0), {"C": CS}, cv=folds
        ).fit(X, y)
        assert clf.scores_.shape == clf.gaps_.shape == (4, 1, 7)
        assert (clf.gaps_ <= 1e-6).all()
        expected = np.array([grid.cv_results_[f"split{k}_test_score"] for k in range(4)])
        assert (
            np.abs(clf.scores_[:, 0] - expected).max() <= 1.5 / 142
        )  # one row on the boundary to within the gap
        assert clf.best_score_ == clf.scores_.mean(axis=0).max()
        assert clf.Cs_[clf.scores_.mean(axis=0)[0].argmax()] == clf.C_
        verify(clf, X, y)
        np.testing.assert_allclose(
            clf.coef_, MaxMarginClassifier(clf.C_, loss="hinge").fit(X, y).coef_, rtol=1e-6
        )

    def test_cross_validation_selects_the_norm(self):
        X = np.random.default_rng(0).normal(size=(120, 200))
        y = np.sign(X[:, 0] + X[:, 1])
        clf = MaxMarginClassifierCV([0.01, 0.1], ps=[2, np.inf], cv=4, random_state=0).fit(X, y)
        assert clf.scores_.shape == (4, 2, 2)
        assert clf.p_ == np.inf  # two features of 200 suffice
        assert np.count_nonzero(np.abs(clf.coef_) > 1e-2 * np.abs(clf.coef_).max()) < 50

    def test_results_do_not_depend_on_the_number_of_threads(self, cancer):
        X, y = cancer
        one = MaxMarginClassifierCV(CS, cv=3, random_state=0).fit(X, y)
        two = MaxMarginClassifierCV(CS, cv=3, random_state=0, n_jobs=2).fit(X, y)
        np.testing.assert_array_equal(one.scores_, two.scores_)
        np.testing.assert_array_equal(one.coef_, two.coef_)

    def test_scorer_and_sample_weights_are_supported(self, cancer):
        X, y = cancer
        s = np.where(y == 1, 1.0, 3.0)
        clf = MaxMarginClassifierCV(CS, cv=3, scoring="roc_auc", random_state=0).fit(X, y, s)
        assert clf.best_score_ > 0.99
        verify(clf, X, y, s)

    def test_groups_are_passed_to_the_splitter(self, cancer):
        X, y = cancer
        groups = np.arange(y.size) // 10
        clf = MaxMarginClassifierCV([0.1, 1.0], cv=GroupKFold(3)).fit(X, y, groups=groups)
        splits = list(GroupKFold(3).split(X, y, groups))
        given = MaxMarginClassifierCV([0.1, 1.0], cv=splits).fit(X, y)
        np.testing.assert_array_equal(clf.scores_, given.scores_)

    def test_interrupted_choice_raises_and_sets_no_coefficients(self, cancer):
        X, y = cancer
        clf = MaxMarginClassifierCV([0.1, 1.0], cv=3, callback=lambda report: True)
        with pytest.raises(KeyboardInterrupt, match="the choice of C was interrupted"):
            clf.fit(X, y)
        assert not hasattr(clf, "coef_")

    @pytest.mark.parametrize("name", ["C", "p", "warm_start"])
    def test_selected_values_are_not_parameters(self, name):
        clf = MaxMarginClassifierCV([0.1, 1.0])
        assert not hasattr(clf, name)
        assert name not in clf.get_params()
        with pytest.raises(TypeError, match=name):
            MaxMarginClassifierCV(**{name: 1.0})

    def test_invalid_scores_are_refused(self, cancer):
        X, y = cancer
        clf = MaxMarginClassifierCV([0.1, 1.0], cv=3, scoring=lambda model, X, y: np.nan)
        with pytest.raises(ValueError, match=r"the score of fold 0 is nan at C = 0\.1"):
            clf.fit(X, y)
        with pytest.raises(TypeError, match="scoring must take sample_weight"):
            clf.fit(X, y, np.ones(y.size))
        with pytest.raises(ValueError, match="cv has no splits"):
            clf.set_params(cv=[]).fit(X, y)
        clf = MaxMarginClassifierCV([0.1, 1.0], cv=3, ps=["log", 2]).fit(X, y)
        assert clf.ps_.tolist() == ["log", 2]

    def test_failed_fit_leaves_the_estimator_unchanged(self, cancer):
        X, y = cancer
        clf = MaxMarginClassifierCV(CS, cv=3, random_state=0).fit(X, y)
        before = dict(vars(clf))
        clf.Cs = [-1.0]
        with pytest.raises(ValueError, match="Cs must be positive"):
            clf.fit(X, y)
        assert vars(clf) == before | {"Cs": [-1.0]}

    def test_saved_model_is_the_selected_one(self, cancer, tmp_path):
        X, y = cancer
        clf = MaxMarginClassifierCV([0.1, 1.0], cv=3).fit(X, y)
        save(clf, tmp_path / "model.safetensors")
        again = load(tmp_path / "model.safetensors")
        np.testing.assert_array_equal(again.decision_function(X), clf.decision_function(X))
        assert isinstance(again, MaxMarginClassifier)
        assert again.C == clf.C_
        verify(again, X, y)


def test_path_is_a_sequence_of_models(cancer):
    path = margin_path(*cancer, [0.1, 1.0])
    assert isinstance(path, MarginPath)
    assert [model.C for model in path] == [path[0].C, path[1].C] == [0.1, 1.0]
    assert (path.seconds > 0.0).all()
    assert path.statuses_ == (Status.CERTIFIED, Status.CERTIFIED)
