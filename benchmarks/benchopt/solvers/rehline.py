"""plqERM_Ridge of ReHLine."""

import warnings

from benchopt import BaseSolver
from rehline import plqERM_Ridge
from sklearn.exceptions import ConvergenceWarning


class Solver(BaseSolver):
    name = "ReHLine"
    requirements = ["pip::rehline"]

    def set_objective(self, X, y, C):
        self.X, self.y = X, y
        self.model = plqERM_Ridge({"name": "svm"}, C=C, max_iter=10_000_000, coordinate_seed=0)

    def run(self, tol):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.tol = min(tol, 1.0)
            self.model.fit(self.X, self.y)

    def get_result(self):
        return {"beta": self.model.coef_.ravel()}
