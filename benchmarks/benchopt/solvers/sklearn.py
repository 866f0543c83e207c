"""LinearSVC of scikit-learn."""

import warnings

from benchopt import BaseSolver
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC


class Solver(BaseSolver):
    name = "scikit-learn"
    requirements = ["scikit-learn"]

    def set_objective(self, X, y, C):
        self.X, self.y = X, y
        self.model = LinearSVC(
            C=C, loss="hinge", dual=True, fit_intercept=False, max_iter=10_000_000, random_state=0
        )

    def run(self, tol):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.set_params(tol=min(tol, 1.0)).fit(self.X, self.y)

    def get_result(self):
        return {"beta": self.model.coef_[0]}
