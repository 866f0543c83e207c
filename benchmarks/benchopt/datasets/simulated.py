"""Two overlapping Gaussian classes; dense, or with few non-zero entries per row."""

import numpy as np
import scipy.sparse as sp
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "Simulated"

    parameters = {
        "n_samples, n_features, density": [(500, 20, 1.0), (5000, 500, 0.02)],
        "random_state": [0],
    }
    test_parameters = {"n_samples, n_features, density": [(60, 5, 1.0)]}

    def get_data(self):
        rng = np.random.default_rng(self.random_state)
        y = np.where(rng.random(self.n_samples) < 0.5, 1.0, -1.0)
        centre = rng.normal(size=self.n_features) / self.n_features**0.5
        X = rng.normal(size=(self.n_samples, self.n_features)) + y[:, None] * centre
        if self.density < 1.0:
            X = sp.csr_matrix(np.where(rng.random(X.shape) < self.density, X, 0.0))
        return {"X": X, "y": y}
