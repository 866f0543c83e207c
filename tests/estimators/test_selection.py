"""Feature elimination: selected features, bounds of every set, and selection within folds."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from typer.testing import CliRunner

from maxmargin import ALMA, IMA, MarginRFE, MaxMarginClassifier, Status, verify
from maxmargin.cli.app import app
from maxmargin.cli.select import select
from maxmargin.estimators import selection
from maxmargin.estimators.elimination import elimination_sizes, rank_features

RNG = np.random.default_rng(0)


def rows(n=80, d=12, useful=3, classes=2, noise=0.3, seed=0):
    """Return rows whose class depends on the first `useful` features only."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, :useful].sum(axis=1) + noise * rng.normal(size=n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))


def separable(n=60, d=30, useful=4):
    X, y = rows(n, d, useful, noise=0.0, seed=1)
    X[:, :useful] += 0.3 * np.where(y > 0, 1.0, -1.0)[:, None]
    return X, y


@parametrize_with_checks(
    [
        MarginRFE("auto", p=2),
        MarginRFE("auto", p=2, cv=2, n_features_to_select=1, step=1),
        MarginRFE(LogisticRegression(C=0.01, solver="newton-cholesky")),
    ]
)
def test_scikit_learn_checks_pass(estimator, check):
    """Every check, with no expected failure."""
    check(estimator)


class TestElimination:
    def test_informative_features_are_kept(self):
        X, y = rows()
        selector = MarginRFE("auto", p=2, n_features_to_select=3, random_state=0).fit(X, y)
        assert selector.support_.nonzero()[0].tolist() == [0, 1, 2]
        assert selector.n_features_ == 3
        assert set(selector.order_[:3]) == {0, 1, 2}
        assert sorted(selector.order_) == list(range(12))
        assert (selector.ranking_ == 1).sum() == 3
        assert selector.reason_ == "3 features were asked for"
        assert selector.transform(X).tolist() == X[:, :3].tolist()
        assert np.array_equal(selector.predict(X), selector.estimator_.predict(X[:, :3]))
        assert selector.score(X, y) == selector.estimator_.score(X[:, :3], y) > 0.85
        assert np.array_equal(selector.classes_, [0, 1])
        back = selector.inverse_transform(selector.transform(X))
        assert np.array_equal(back[:, :3], X[:, :3])
        assert not back[:, 3:].any()
        verify(selector.estimator_, selector.transform(X), y)

    @pytest.mark.parametrize("algorithm", [IMA(), ALMA(alpha=0.3)])
    @pytest.mark.parametrize("C", [1.0, np.inf])
    def test_warm_starts_take_fewer_updates(self, C, algorithm, monkeypatch):
        X, y = separable()
        total_updates = []
        for warm in (True, False):
            updates = []

            class CountingClassifier(MaxMarginClassifier):
                def fit(self, X, y, warm=warm, updates=updates, **more):
                    self.warm_start &= warm
                    super().fit(X, y, **more)
                    updates.append(self.history_[-1].steps)
                    return self

            monkeypatch.setattr(selection, "MaxMarginClassifier", CountingClassifier)
            options = {"p": 3.0, "C": C, "tol": 5e-2, "random_state": 0, "max_iter": 10**5}
            selector = MarginRFE(algorithm, n_features_to_select=20, step=1, **options).fit(X, y)
            assert selector.n_features_ == 20
            total_updates.append(sum(updates[1:]))
        assert total_updates[0] < 0.8 * total_updates[1]

    @pytest.mark.parametrize("classes", [2, 3])
    def test_ranking_equals_that_of_rfe_with_the_same_classifier(self, classes):
        X, y = rows(classes=classes)
        svc = LinearSVC(tol=1e-8, max_iter=10**6)
        actual = MarginRFE(svc, n_features_to_select=2, step=1).fit(X, y)
        reference = RFE(svc, n_features_to_select=2, step=1).fit(X, y)
        assert np.array_equal(actual.ranking_, reference.ranking_)
        assert np.array_equal(actual.support_, reference.support_)
        assert np.array_equal(actual.predict(X), reference.predict(X))
        assert all(np.isnan(stage.upper) and stage.status is None for stage in actual.path_)

    def test_named_algorithm_and_equal_estimator_give_equal_rankings(self):
        X, y = rows()
        given = MaxMarginClassifier(C=1.0, tol=1e-2, random_state=0)
        one = MarginRFE("dcd", p=2, n_features_to_select=2, step=2, random_state=0).fit(X, y)
        two = MarginRFE(given, n_features_to_select=2, step=2).fit(X, y)
        assert np.array_equal(one.ranking_, two.ranking_)
        assert not hasattr(given, "coef_")  # a clone was trained

    def test_elimination_sizes_follow_the_step(self):
        assert elimination_sizes(10, 1, 3) == [10, 7, 4, 1]
        assert elimination_sizes(10, 2, 3) == [10, 7, 4, 2]
        assert elimination_sizes(100, 10, 0.5) == [100, 50, 25, 13, 10]
        assert elimination_sizes(3, 1, 0.1) == [3, 2, 1]
        assert elimination_sizes(4, 4, 1) == [4]

    def test_rank_features_aggregates_classes_without_overflow(self):
        coef = np.array([[3.0, 0.0, 2.5, -1e-200], [0.0, 0.0, 2.5, 0.0]])
        assert rank_features(coef, "sum").tolist() == [2, 0, 3, 1]
        assert rank_features(coef, "max").tolist() == [0, 2, 3, 1]
        assert rank_features(coef * 1e200, "sum").tolist() == [2, 0, 3, 1]
        assert rank_features(np.zeros((1, 3)), "sum").tolist() == [0, 1, 2]

    def test_features_of_weight_zero_are_removed_first(self):
        X, y = rows()
        X[:, 5:] = 0.0
        selector = MarginRFE("auto", p=2, n_features_to_select=2, step=1).fit(X, y)
        assert [stage.n_features for stage in selector.path_] == [12, 5, 4, 3, 2]
        assert selector.ranking_[5:].tolist() == [5] * 7
        assert selector.path_[0].lower == pytest.approx(selector.path_[1].lower, rel=1e-9)
        kept = MarginRFE("auto", p=2, n_features_to_select=8, step=1).fit(X, y)
        assert kept.n_features_ == 8  # the requested number

    def test_sparse_and_float32_rows_are_supported(self):
        X, y = rows()
        X[np.abs(X) < 0.5] = 0.0
        dense = MarginRFE("auto", p=2, n_features_to_select=3, random_state=0).fit(X, y)
        sparse = MarginRFE("auto", p=2, n_features_to_select=3, random_state=0).fit(sp.csr_array(X), y)
        assert np.array_equal(dense.ranking_, sparse.ranking_)
        assert sp.issparse(sparse.transform(sp.csr_array(X)))
        assert np.array_equal(sparse.predict(sp.csr_array(X)), dense.predict(X))
        narrow = MarginRFE("auto", p=2, n_features_to_select=3).fit(X.astype(np.float32), y)
        assert narrow.transform(X.astype(np.float32)).dtype == np.float32

    def test_integer_weights_equal_copies(self):
        X, y = rows(40)
        weights = np.arange(40) % 3
        weighted = MarginRFE("auto", p=2, n_features_to_select=3).fit(X, y, sample_weight=weights)
        copies = MarginRFE("auto", p=2, n_features_to_select=3).fit(
            X.repeat(weights, axis=0), y.repeat(weights)
        )
        assert np.array_equal(weighted.ranking_, copies.ranking_)
        assert weighted.estimator_.coef_ == pytest.approx(copies.estimator_.coef_, rel=1e-6)

    @pytest.mark.parametrize(
        ("engine", "p"),
        [("ima", "log"), ("ima", np.inf), ("ima", 1.5), (ALMA(alpha=0.3), "log"), ("auto", np.inf)],
    )
    def test_algorithms_of_every_norm_keep_the_informative_features(self, engine, p):
        X, y = separable(useful=3)
        selector = MarginRFE(engine, p=p, C=np.inf, n_features_to_select=3, step=0.3, random_state=0).fit(
            X, y
        )
        assert selector.support_.nonzero()[0].tolist() == [0, 1, 2]
        assert all(0.0 < stage.lower <= stage.upper for stage in selector.path_)
        if engine == "ima":  # a margin raised by 2 % each time
            assert all(stage.lower > 0.9 * stage.upper for stage in selector.path_)
        elif engine == "auto":
            assert all(stage.status is Status.CERTIFIED for stage in selector.path_)

    def test_p_log_follows_the_number_of_features(self):
        X, y = rows(60, 40)
        selector = MarginRFE("auto", n_features_to_select=2, step=0.5).fit(X, y)
        for stage in selector.path_:
            assert stage.p == max(2.0, np.log(stage.n_features))


class TestBounds:
    def test_hard_margin_keeps_the_last_separable_set(self):
        X, y = separable()
        selector = MarginRFE("auto", p=2, C=np.inf, n_features_to_select=1, step=1, random_state=0)
        selector.fit(X, y)
        last = selector.path_[-1]
        assert selector.n_features_ == last.n_features > 1
        assert selector.reason_.startswith(f"no separator was found for {last.n_features - 1} features")
        assert selector.reason_.endswith(f"the {last.n_features} before are kept")
        assert selector.score(X, y) == 1.0
        assert verify(selector.estimator_, selector.transform(X), y).lower > 0.0

    def test_bounds_hold_and_are_monotone_along_the_path(self):
        X, y = separable()
        for C in (1.0, np.inf):
            selector = MarginRFE("auto", p=2, C=C, n_features_to_select=5, step=1).fit(X, y)
            path = selector.path_
            assert all(stage.hard == np.isinf(C) for stage in path)
            for stage in path:
                exact = MaxMarginClassifier(C, tol=1e-8).fit(X[:, stage.features], y).certificate_
                assert stage.lower <= exact.upper
                assert stage.upper >= exact.lower
                assert stage.status is Status.CERTIFIED
            if np.isinf(C):
                assert (np.diff([stage.upper for stage in path]) <= 0.0).all()
            else:
                assert (np.diff([stage.lower for stage in path]) >= 0.0).all()

    def test_upper_bounds_are_monotone_for_loose_certificates(self):
        X, y = separable(60, 20)
        selector = MarginRFE(
            MaxMarginClassifier(np.inf, algorithm="perceptron", tol=1e-3, max_iter=50, random_state=0),
            n_features_to_select=6,
            step=1,
        ).fit(X, y)
        assert (np.diff([stage.upper for stage in selector.path_]) <= 0.0).all()

    @pytest.mark.parametrize("C", [1.0, np.inf])
    def test_bounds_hold_with_decreasing_p(self, C):
        X, y = separable(40, 60)
        path = MarginRFE("auto", C=C, tol=1e-2, n_features_to_select=5, step=0.3).fit(X, y).path_
        assert path[0].p > path[-1].p == 2.0
        for stage in path:
            one = MaxMarginClassifier(C, p=stage.p, tol=1e-2).fit(X[:, stage.features], y).certificate_
            assert stage.lower <= one.upper
            assert stage.upper >= one.lower

    def test_multiclass_bounds_are_sums_and_monotone(self):
        X, y = rows(120, 8, 3, classes=3)
        selector = MarginRFE("auto", p=2, n_features_to_select=3, step=1).fit(X, y)
        parts = selector.estimator_.certificate_
        assert selector.path_[-1].lower == pytest.approx(sum(part.lower for part in parts))
        assert selector.support_[:3].all()
        assert (np.diff([stage.lower for stage in selector.path_]) >= 0.0).all()


class TestCrossValidation:
    def test_smallest_size_of_best_score_is_selected(self):
        X, y = rows(120, 15, 3)
        selector = MarginRFE("auto", p=2, cv=4, step=1, random_state=0).fit(X, y)
        results = selector.cv_results_
        assert results["n_features"].tolist() == list(range(15, 0, -1))
        folds = np.array([results[f"split{k}_test_score"] for k in range(4)])
        assert results["mean_test_score"] == pytest.approx(folds.mean(axis=0))
        assert results["std_test_score"] == pytest.approx(folds.std(axis=0))
        best = results["n_features"][results["mean_test_score"] == results["mean_test_score"].max()].min()
        assert selector.n_features_ == best
        assert "best score in cross-validation" in selector.reason_
        assert [stage.accuracy for stage in selector.path_] == results["mean_test_score"].tolist()
        assert selector.path_[-1].n_features == 1  # the complete path
        assert sorted(selector.order_) == list(range(15))
        assert selector.estimator_.n_features_in_ == best

    def test_features_are_selected_within_each_fold(self):
        """On pure noise, selection on all rows gives optimistic scores; selection within folds does not."""
        rng = np.random.default_rng(3)
        X, y = rng.normal(size=(60, 2000)), np.arange(60) % 2
        selector = MarginRFE("auto", p=2, cv=5, n_features_to_select=10, step=0.5, random_state=0).fit(X, y)
        assert np.abs(selector.cv_results_["mean_test_score"] - 0.5).max() < 0.2
        leaked = cross_val_score(MaxMarginClassifier(), selector.transform(X), y, cv=5).mean()
        assert leaked > 0.8

    def test_fold_scores_equal_those_of_an_elimination_on_the_training_part(self):
        X, y = rows(90, 10)
        cv = StratifiedKFold(3, shuffle=True, random_state=1)
        selector = MarginRFE("auto", p=2, cv=cv, n_features_to_select=2, step=4).fit(X, y)
        assert selector.n_features_ == 2
        for k, (train, test) in enumerate(cv.split(X, y)):
            separate = MarginRFE("auto", p=2, n_features_to_select=2, step=4).fit(X[train], y[train])
            found = selector.cv_results_[f"split{k}_test_score"]
            assert found[-1] == separate.score(X[test], y[test])

    def test_scores_do_not_depend_on_the_number_of_jobs(self):
        X, y = rows()
        one = MarginRFE("auto", p=2, cv=2, scoring="roc_auc", random_state=0).fit(X, y)
        two = clone(one).set_params(n_jobs=2).fit(X, y)
        assert np.array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])

    def test_sizes_not_reached_by_every_fold_have_no_score(self):
        X, y = separable()
        selector = MarginRFE("auto", p=2, C=np.inf, cv=3, step=1, random_state=0).fit(X, y)
        mean = selector.cv_results_["mean_test_score"]
        assert np.isnan(mean[-1])
        assert not np.isnan(mean[0])
        assert selector.path_[0].accuracy == mean[0]


class TestInScikitLearn:
    def test_selector_works_in_pipelines_and_grid_searches(self):
        X, y = rows(120, 40)
        pipeline = make_pipeline(
            StandardScaler(), MarginRFE("auto", p=2, random_state=0), KNeighborsClassifier()
        )
        grid = {"marginrfe__n_features_to_select": [1, 3, 30], "marginrfe__C": [0.1, 1.0]}
        search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
        assert search.best_params_["marginrfe__n_features_to_select"] == 3
        separate = GridSearchCV(
            MarginRFE(MaxMarginClassifier(), n_features_to_select=3), {"estimator__C": [0.1, 1.0]}, cv=3
        )
        assert separate.fit(X, y).best_score_ > 0.8

    def test_selected_feature_names_are_returned(self):
        pd = pytest.importorskip("pandas")
        X, y = rows()
        table = pd.DataFrame(X, columns=[f"gene {j}" for j in range(12)])
        selector = MarginRFE("auto", p=2, n_features_to_select=3).set_output(transform="pandas").fit(table, y)
        assert selector.get_feature_names_out().tolist() == ["gene 0", "gene 1", "gene 2"]
        assert selector.transform(table).columns.tolist() == ["gene 0", "gene 1", "gene 2"]
        assert selector.predict(table).shape == (80,)

    def test_methods_follow_the_classifier(self):
        X, y = rows()
        selector = MarginRFE(LogisticRegression(), n_features_to_select=2).fit(X, y)
        assert selector.predict_proba(X).shape == (80, 2)
        assert selector.decision_function(X).shape == (80,)
        assert not hasattr(MarginRFE("auto"), "predict_proba")
        assert not hasattr(MarginRFE(KNeighborsClassifier()), "decision_function")

    def test_radii_are_those_of_the_selected_features(self):
        X, y = rows()
        selector = MarginRFE("auto", p=3.0, n_features_to_select=3).fit(X, y)
        kept = X[:, selector.support_]
        assert np.array_equal(selector.certified_radius(X), selector.estimator_.certified_radius(kept))
        assert not hasattr(MarginRFE(LogisticRegression()).fit(X, y), "certified_radius")

    def test_algorithm_names_and_objects_are_accepted(self):
        X, y = separable()
        assert MarginRFE("ima").fit(X, y).estimator_.algorithm == IMA(increment=0.02, budget=6000)
        selector = MarginRFE(ALMA(alpha=0.5), C=np.inf, p=2, n_features_to_select=15, random_state=0)
        assert clone(selector).fit(X, y).estimator_.algorithm == ALMA(alpha=0.5)


class TestRefusals:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"step": 0}, "step must be a whole number of features, at least 1, or a share"),
            ({"step": 1.5}, "step must be"),
            ({"step": True}, "step must be"),
            ({"n_features_to_select": 0}, "n_features_to_select must be a whole number"),
            ({"n_features_to_select": 1.5}, "n_features_to_select must be"),
            ({"n_features_to_select": "all"}, "n_features_to_select must be .*; got 'all'"),
            ({"n_features_to_select": 13}, "13 features cannot be kept of 12: ask for 12 at most"),
            ({"aggregate": "mean"}, 'aggregate must be "sum" or "max"'),
            ({"p": 0.5}, 'p must be a number from 1 to inf, or "log"'),
            ({"p": "ln"}, 'p must be a number from 1 to inf, or "log"'),
            ({"estimator": 3}, "estimator must be an algorithm or its name, or a classifier"),
            ({"estimator": "svm"}, "algorithm must be 'auto', one of"),
            ({"estimator": KNeighborsClassifier()}, "KNeighborsClassifier has no coef_"),
            ({"C": -1.0}, "C must be a positive number"),
        ],
    )
    def test_invalid_parameters_are_refused(self, parameters, message):
        X, y = rows()
        selector = MarginRFE("auto", p=2).fit(X, y)
        before = dict(vars(selector))
        with pytest.raises(ValueError, match=message):
            selector.set_params(**parameters).fit(X, y)
        after = vars(selector)
        assert all(after[name] is before[name] for name in before if name.endswith("_"))

    def test_inseparable_rows_are_refused_for_the_hard_margin(self):
        X, y = rows(noise=3.0)
        selector = MarginRFE("auto", p=2, C=np.inf)
        with pytest.raises(ValueError, match=r"no separator was found for 12 features .*give a finite C"):
            selector.fit(X, y)
        assert not hasattr(selector, "n_features_in_")
        assert not hasattr(selector, "support_")

    def test_zero_weights_are_refused(self):
        X, y = rows()
        selector = MarginRFE(p=3.0)
        with pytest.raises(ValueError, match=r"all weights of 12 features are 0 .*StandardScaler"):
            selector.fit(X * 1e100, y)
        assert not hasattr(selector, "support_")

    def test_group_splitters_are_refused(self):
        X, y = rows()
        groups, splitter = np.arange(80) % 4, GroupKFold(4)
        with pytest.raises(ValueError, match="fit has no groups to give to GroupKFold: give its splits"):
            MarginRFE("auto", p=2, cv=splitter).fit(X, y)
        splits = list(splitter.split(X, y, groups))
        assert MarginRFE("auto", p=2, cv=splits).fit(X, y).cv_results_["split3_test_score"].size

    def test_sample_weights_are_refused_for_classifiers_without_support(self):
        X, y = rows()
        with pytest.raises(ValueError, match="KNeighborsClassifier takes no sample weights"):
            MarginRFE(KNeighborsClassifier()).fit(X, y, sample_weight=np.ones(80))

    def test_unfitted_selectors_raise_not_fitted_error(self):
        with pytest.raises(NotFittedError):
            MarginRFE("auto").predict([[0.0]])
        with pytest.raises(NotFittedError):
            MarginRFE("auto").transform([[0.0]])
        assert not hasattr(MarginRFE("auto"), "classes_")

    def test_interrupt_keeps_the_current_set(self, capsys):
        X, y = rows()

        class InterruptedClassifier(MaxMarginClassifier):
            def fit(self, X, y, sample_weight=None):
                super().fit(X, y, sample_weight)
                self.status_ = Status.INTERRUPTED if X.shape[1] < 10 else self.status_
                return self

        selector = MarginRFE(InterruptedClassifier(), n_features_to_select=2, step=1, verbose=1).fit(X, y)
        assert selector.n_features_ == 9
        assert selector.reason_ == "it was interrupted at 9 features"
        assert capsys.readouterr().err.count("features") == 4
        with pytest.raises(KeyboardInterrupt):
            MarginRFE(InterruptedClassifier(), cv=2, n_features_to_select=2, step=1).fit(X, y)


def run(*arguments, code=0):
    """Run `maxmargin select`; return its result."""
    result = CliRunner().invoke(app, ["select", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result


class TestCommand:
    @pytest.fixture
    def data(self, tmp_path):
        path = tmp_path / "train.svm"
        dump_svmlight_file(*rows(), str(path), zero_based=False)
        return path

    @pytest.fixture
    def table(self, tmp_path):
        X, y = rows()
        path = tmp_path / "train.csv"
        lines = [
            ",".join([*map(repr, row.tolist()), "yes" if label else "no"])
            for row, label in zip(X, y, strict=True)
        ]
        path.write_text("\n".join([",".join([f"gene{j}" for j in range(12)] + ["answer"]), *lines]) + "\n")
        return path

    def test_command_prints_ranking_and_accuracy(self, data, table):
        lines = run(data, "--algorithm", "auto", "--p", 2, "--seed", 0, "--keep", 3).stdout.splitlines()
        assert lines[0] == "3 of 12 features are kept: 3 features were asked for"
        assert lines[2].split()[:4] == ["features", "accuracy", "+-", "p"]
        assert [line.split()[0] for line in lines[3:13]] == [str(f) for f in range(12, 2, -1)]
        assert {line.split()[1] for line in lines[-12:-9]} == {
            "1",
            "2",
            "3",
        }  # numbered from 1 as in the file
        lines = run(table, "--algorithm", "auto", "--p", 2, "--seed", 0, "--top", 3).stdout.splitlines()
        assert {line.split()[1] for line in lines[-3:]} == {"gene0", "gene1", "gene2"}

    def test_command_writes_json_and_picture(self, table, tmp_path):
        pytest.importorskip("matplotlib")
        path = tmp_path / "a.svg"
        result = run(table, "--algorithm", "auto", "--p", "inf", "--json", "--picture", path, "--standardize")
        facts = json.loads(result.stdout)
        assert facts["picture"] == str(path)
        assert path.read_text().startswith("<?xml")
        assert sorted(facts["ranking"]) == sorted(f"gene{j}" for j in range(12))
        assert facts["bounded"] == "objective"
        assert facts["sizes"][0]["features"] == 12
        assert facts["sizes"][0]["p"] == "inf"
        assert facts["sizes"][-1]["features"] == 1
        assert all(0.0 <= size["accuracy"] <= 1.0 for size in facts["sizes"])
        assert all(size["lower"] <= size["upper"] for size in facts["sizes"])
        assert result.stderr == ""

    def test_command_output_equals_the_selector(self, table):
        X, y = rows()
        selector = MarginRFE("auto", p=2, cv=4, step=2, random_state=0).fit(X, y)
        options = ("--algorithm", "auto", "--p", 2, "--folds", 4, "--step", 2, "--seed", 0, "--json")
        facts = json.loads(run(table, *options).stdout)
        assert facts["ranking"] == [f"gene{j}" for j in selector.order_]
        assert facts["kept"] == selector.n_features_
        assert facts["reason"] == selector.reason_
        assert [size["accuracy"] for size in facts["sizes"]] == [stage.accuracy for stage in selector.path_]

    def test_defaults_equal_those_of_the_selector(self):
        parameters = MarginRFE().get_params()
        parameters["algorithm"], parameters["seed"] = parameters["estimator"], parameters["random_state"]
        for name, parameter in inspect.signature(select).parameters.items():
            if name in parameters:
                assert parameter.default == parameters[name], name

    def test_quiet_prints_nothing_and_early_stops_exit_with_3(self, data):
        assert run(data, "--algorithm", "auto", "--p", 2, "--quiet").output == ""
        options = ("--algorithm", "perceptron", "--p", 2, "--max-iter", 1, "--tol", 1e-9, "--keep", 10)
        assert "MAX_ITER" in run(data, *options, code=3).stdout

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (("--p", "0.5"), "p must be a number from 1 to inf"),
            (("--folds", "1"), "--folds must be at least 2"),
            (
                ("--folds", "50"),
                "class 0 has 40 of the rows, and each of 50 folds needs one: use --folds 40",
            ),
            (("--keep", "13"), "13 features cannot be kept of 12"),
            (("--step", "0"), "step must be a whole number of features"),
            (("--top", "-1"), "--top must be a whole number"),
            (("--algorithm", "svm"), "algorithm must be 'auto', one of"),
            (("--picture", "a.bmp"), "a picture is a .png, .pdf or .svg"),
            (("--label", "x"), "--label names a column"),
        ],
    )
    def test_invalid_input_gives_a_one_line_error(self, data, options, message, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        result = run(data, *(() if "--algorithm" in options else ("--algorithm", "auto")), *options, code=2)
        assert result.stderr.startswith("maxmargin: ")
        assert result.stderr.count("\n") == 1
        assert message in result.stderr

    def test_invalid_norms_are_refused(self, data):
        assert "--p must be a number from 1 to inf, or log; got 'ln'." in _error_text(
            run(data, "--p", "ln", code=2)
        )


def _error_text(result):
    """Return standard error without the frame of typer."""
    return " ".join(result.stderr.replace("│", " ").split())
