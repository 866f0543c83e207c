"""liblinear's dual coordinate descent (-s 3), through its own Python interface."""

import numpy as np
import scipy.sparse as sp
from benchopt import BaseSolver
from liblinear.liblinear import parameter, problem
from liblinear.liblinearutil import train


class Solver(BaseSolver):
    name = "liblinear"
    requirements = ["pip::liblinear-official"]

    def set_objective(self, X, y, C):
        self.C, self.problem, self.columns = C, problem(y, sp.csr_matrix(X)), X.shape[1]

    def run(self, tol):
        self.model = train(self.problem, parameter(f"-s 3 -B -1 -c {self.C!r} -e {min(tol, 1.0)!r} -q"))

    def get_result(self):
        w = np.ctypeslib.as_array(self.model.w, (self.columns,)).copy()
        return {"beta": w if self.model.get_labels()[0] == 1 else -w}
