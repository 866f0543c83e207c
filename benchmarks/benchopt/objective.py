"""The linear support vector machine without intercept: 1/2 |beta|^2 + C sum max(0, 1 - y_i beta.x_i)."""

import numpy as np
from benchopt import BaseObjective
from benchopt.stopping_criterion import SufficientProgressCriterion


class Objective(BaseObjective):
    name = "Linear SVM without intercept"
    url = "https://github.com/benchopt/benchmark_linear_svm_binary_classif_no_intercept"
    min_benchopt_version = "1.6"
    sampling_strategy = "tolerance"
    # solvers that work in rounds return the same solution for several tolerances
    stopping_criterion = SufficientProgressCriterion(strategy="tolerance", patience=10)
    requirements = ["numpy", "scipy"]

    parameters = {"C": [1.0, 0.01, 100.0]}

    def set_data(self, X, y):
        """X: dense or CSR, float64; y: -1.0 and 1.0."""
        self.X, self.y = X, y

    def get_objective(self):
        return {"X": self.X, "y": self.y, "C": self.C}

    def evaluate_result(self, beta):
        losses = np.maximum(0.0, 1.0 - self.y * (self.X @ beta))
        return {"value": 0.5 * beta @ beta + self.C * losses.sum(), "errors": float((losses > 1.0).mean())}

    def get_one_result(self):
        return {"beta": np.zeros(self.X.shape[1])}
