"""LinearSVC of skglm: working sets and Anderson's extrapolation on the dual."""

import warnings

from benchopt import BaseSolver
from skglm import LinearSVC
from sklearn.exceptions import ConvergenceWarning


class Solver(BaseSolver):
    name = "skglm"
    requirements = ["pip::skglm"]

    def set_objective(self, X, y, C):
        self.X, self.y = X, y
        # it solves the problem without an intercept, whatever `fit_intercept` is
        self.model = LinearSVC(C=C, fit_intercept=False, max_iter=1000)

    def warm_up(self):
        self.run_once(1.0)

    def run(self, tol):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.tol = min(tol, 1.0)
            self.model.fit(self.X, self.y)

    def get_result(self):
        return {"beta": self.model.coef_.ravel()}
