"""scikit-learn's checks of estimators, for the linear and the kernel classifier."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import MPU, KernelMaxMarginClassifier, MaxMarginClassifier


@parametrize_with_checks([MaxMarginClassifier(), KernelMaxMarginClassifier()])
def test_scikit_learn_checks_pass(estimator, check):
    check(estimator)


def expected_failures(estimator):
    """Return the checks that pass matrices with eigenvalues of -2 and less as kernels, which are refused."""
    names = "check_estimators_dtypes", "check_positive_only_tag_during_fit"
    return dict.fromkeys(names, "no kernel") if getattr(estimator, "kernel", "") == "precomputed" else {}


@pytest.mark.slow
@parametrize_with_checks(
    [
        MaxMarginClassifier(loss="hinge", algorithm=MPU(schedule="two-level"), n_jobs=2),
        MaxMarginClassifier(loss="hinge", intercept="augmented", class_weight="balanced"),
        MaxMarginClassifier(C=100.0, tol=1e-6, warm_start=True),
        MaxMarginClassifier(algorithm="perceptron", max_iter=20),
        KernelMaxMarginClassifier(multi_class="ovo", n_jobs=2),
        KernelMaxMarginClassifier(kernel="precomputed"),
        KernelMaxMarginClassifier(kernel="poly", loss="squared_hinge", intercept="augmented"),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks_pass_with_other_parameters(estimator, check):
    check(estimator)
