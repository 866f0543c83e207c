"""Parameters of all estimators: refused values, what accepted values mean, and equivalent problems."""

from __future__ import annotations

import numpy as np
import pytest
from clouds import clouds
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import maxmargin as mm

BOTH = (mm.MaxMarginClassifier, mm.KernelMaxMarginClassifier)
INF, NAN, HUGE = np.inf, np.nan, 10**400
SOLVED = (
    1e-10  # the exact stage ends at rounding: 60 eps = 1e-14, times a condition of the support of 1e4 at most
)
SHARED = {
    "C": (-1.0, 0, NAN, "1", HUGE),
    "loss": ("log",),
    "tol": (0, -1e-3, NAN, True, HUGE),
    "fit_intercept": ("no", 1),
    "intercept_scaling": ("x",),
    "class_weight": ("even", [1.0, 2.0], {0: "a"}, {2: 1.0}, {0: -1.0}, {0: INF}, {0: 0.0}, {0: 0, 1: 0}),
    "algorithm": ("smo", 3, mm.algorithms.MPU),
    "max_time": (0, -3.0, True),
    "callback": (3, lambda report: np.ones(2)),
    "n_jobs": ("all", 0, 1.5),
    "random_state": (-1,),
}
LINEAR = {
    "p": (0.5, "inf", NAN, None, "2"),
    "norm_power": (3,),
    "max_iter": (0, 2.5, True, -1),
    "warm_start": (1,),
    "verbose": ("a",),
}
KERNEL = {
    "kernel": ("gauss", 3, None, np.eye(60)),
    "gamma": ("wide", -1.0, NAN, None),
    "degree": (-1, 2.5),
    "coef0": (INF, HUGE),
    "cache_size": (0, "200"),
    "multi_class": ("crammer_singer",),
    "decision_function_shape": (None,),
    "break_ties": (1,),
    "max_iter": (0, -2, 2.5),
}
ONLINE = {
    "C": (-1.0,),
    "beta": ("fixed-margin",),  # of the algorithm
    "eta": ("cramma", mm.algorithms.FixedDirectionalMargin(beta=0.1)),
    "algorithm": ("mpu", "smo"),
    "radius": (-1.0,),
}
SELECTION = {
    "step": (1.5,),
    "n_features_to_select": (13,),
    "estimator__C": (INF, 1e-110),  # not separable; costs beyond the domain
    "coef_": (KNeighborsClassifier(),),
}
SEARCH = {"Cs": ([-1.0], []), "cv": ([],), "ps": ([],), "scoring": (lambda model, X, y: np.nan,)}
OF_PARAMETER = {"beta": "algorithm", "eta": "algorithm", "coef_": "estimator"}
WORDS = {
    "n_features_to_select": "above the 4 features",
    "estimator__C": r"\bC\b",
    "scoring": "fold 0 .counted from 0. scores nan",
}
FITTED = {
    mm.MaxMarginClassifier(random_state=0): SHARED | LINEAR,
    mm.KernelMaxMarginClassifier(kernel="poly"): SHARED | KERNEL,
    mm.OnlineMarginClassifier(random_state=0): ONLINE,
    mm.MarginRFE(mm.MaxMarginClassifier()): SELECTION,
    mm.MaxMarginClassifierCV([0.1, 1.0], cv=2, random_state=0): SEARCH,
}


@pytest.mark.parametrize(
    ("model", "name", "values"),
    [(model, *item) for model, table in FITTED.items() for item in table.items()],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_invalid_values_are_refused_with_the_name_of_the_parameter(model, name, values):
    """The fitted model is unchanged."""
    X, y = clouds()
    if not hasattr(model, "n_features_in_"):
        model.fit(X, y)
    parameter = OF_PARAMETER.get(name, name)
    valid, before = model.get_params()[parameter], dict(vars(model))
    for value in values:
        with pytest.raises(ValueError, match=WORDS.get(name, rf"\b{name}\b")):
            model.set_params(**{parameter: value}).fit(X, y)
        model.set_params(**{parameter: valid})
        assert vars(model) == before


def test_class_weights_multiply_sample_weights():
    rng, classes = np.random.default_rng(0), 3
    X, y = clouds(60, 4, classes=classes)
    y = np.where(rng.random(60) < 0.4, 0, y)  # unequal classes
    s = rng.integers(1, 4, 60).astype(float)
    factors = s.sum() / (classes * np.bincount(y, weights=s))
    options = {"loss": "hinge", "tol": 1e-9, "random_state": 0}
    balanced = mm.MaxMarginClassifier(class_weight="balanced", **options).fit(X, y, s)
    assert balanced.class_weight_ == pytest.approx(factors, rel=1e-14, abs=0.0)  # sums of 60 whole numbers
    mm.verify(balanced, X, y, s)
    for C, given, weights in (
        (1.0, None, s * factors[y]),
        (1.0, dict(enumerate(factors)), s),
        (2.0, None, s * factors[y] / 2.0),  # C multiplies the weights
    ):
        other = mm.MaxMarginClassifier(C, class_weight=given, **options).fit(X, y, weights)
        assert other.coef_ == pytest.approx(balanced.coef_, rel=SOLVED, abs=1e-12)


def test_rows_and_classes_of_weight_zero():
    """Without sample weight a row is as if absent; a class weight of 0 keeps the class, whose errors cost nothing."""
    X, y = clouds(60, 4, classes=3)
    s = (y != 1) * np.linspace(0.5, 1.5, 60)
    alone = mm.MaxMarginClassifier(loss="hinge", tol=1e-8, random_state=0).fit(
        X[y != 1], y[y != 1], s[y != 1]
    )
    model = clone(alone).set_params(class_weight={0: 1.0, 1: 5.0, 2: 1.0}).fit(X, y, s)
    assert model.classes_.tolist() == [0, 2]
    assert model.coef_ == pytest.approx(alone.coef_, rel=SOLVED)
    mm.verify(model, X, y, s)
    model = clone(alone).set_params(class_weight={1: 0.0}).fit(X, y, s + (y == 1))
    assert model.coef_[2] == pytest.approx(alone.coef_[0], rel=SOLVED)
    assert not (model.predict(X) == 1).any()
    with pytest.raises(ValueError, match="class 1"):
        model.set_params(C=INF).fit(X, y)
    X, y = clouds(60, 4, gap=4.0)
    s = np.where(y == 1, s + (s == 0), 1.0)
    hard = mm.MaxMarginClassifier(INF, random_state=0)  # all positive weights are alike
    assert clone(hard).fit(X, y, s).coef_ == pytest.approx(hard.fit(X, y).coef_, rel=SOLVED)


def test_equal_seeds_give_equal_models():
    X, y = clouds(2100, 100, classes=3)  # too many for the exact method of small problems
    first, same, other = (
        mm.MaxMarginClassifier(algorithm="dcd", random_state=seed).fit(X, y) for seed in (3, 3, 4)
    )
    assert same.coef_.tolist() == first.coef_.tolist() != other.coef_.tolist()
    assert same.intercept_.tolist() == first.intercept_.tolist()
    for one, two in zip(first.certificate_, other.certificate_, strict=True):
        assert max(one.lower, two.lower) <= min(one.upper, two.upper)


def test_warm_starts_need_fewer_presentations():
    X, y = clouds(600, 4)
    model = mm.MaxMarginClassifier(algorithm="dcd", warm_start=True, random_state=0, tol=1e-4).fit(X, y)
    cold = model.history_[-1].presentations
    assert model.fit(X, y).history_[-1].presentations < 0.5 * cold
    changed = model.set_params(C=1.5).fit(X, y).certificate_
    truth = mm.MaxMarginClassifier(1.5, tol=1e-4, random_state=1).fit(X, y).certificate_
    assert max(changed.lower, truth.lower) <= min(changed.upper, truth.upper)
    assert model.fit(X[:60], y[:60]).certificate_.rows == 60  # other data: the dual weights are discarded
    mm.verify(model, X[:60], y[:60])


def test_defaults_equal_those_of_svc():
    expected, model = SVC().get_params(), mm.KernelMaxMarginClassifier().get_params()
    for name in expected.keys() & model.keys() - {"verbose"}:
        assert model[name] == expected[name], name


@pytest.mark.parametrize(
    ("model", "later"),
    [
        (mm.MaxMarginClassifier(), {"p": 1, "loss": "hinge", "C": 9.0, "fit_intercept": False}),
        (mm.KernelMaxMarginClassifier(kernel="linear"), {"multi_class": "ovo"}),
        (mm.KernelMaxMarginClassifier(kernel="linear"), {"kernel": "precomputed"}),
        (mm.KernelMaxMarginClassifier(), {"kernel": "linear", "gamma": 3.0, "C": 0.1}),
    ],
    ids=str,
)
def test_parameters_set_after_the_fit_do_not_change_the_model(model, later):
    X, y = load_iris(return_X_y=True)
    model = clone(model).fit(X, y)

    def seen():
        radii = model.certified_radius(X) if hasattr(model, "certified_radius") else None
        return model.decision_function(X), model.predict(X), getattr(model, "coef_", None), radii

    before, proved = seen(), str(mm.verify(model, X, y))
    model.set_params(**later)
    np.testing.assert_equal(seen(), before)
    assert str(mm.verify(model, X, y)) == proved
