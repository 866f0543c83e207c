"""MaxMarginClassifier: `tol` is the certified relative gap."""

from benchopt import BaseSolver

from maxmargin import MaxMarginClassifier


class Solver(BaseSolver):
    name = "maxmargin"
    requirements = ["pip::maxmargin"]

    parameters = {"algorithm": ["auto", "mpu", "dcd"]}

    def set_objective(self, X, y, C):
        self.X, self.y = X, y
        self.model = MaxMarginClassifier(
            C, loss="hinge", fit_intercept=False, algorithm=self.algorithm, random_state=0
        )

    def warm_up(self):
        """Compile the code, or load it from the cache on disk."""
        self.run_once(1.0)

    def run(self, tol):
        # benchopt begins with a huge tolerance; a gap below rounding cannot be proved
        self.model.set_params(tol=min(max(tol, 1e-12), 1.0)).fit(self.X, self.y)

    def get_result(self):
        return {"beta": self.model.coef_[0] * (1.0 if self.model.classes_[1] > 0 else -1.0)}
