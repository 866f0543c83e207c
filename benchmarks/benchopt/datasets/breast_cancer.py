"""Breast cancer of scikit-learn: 569 rows, 30 columns, each of mean 0 and variance 1."""

import numpy as np
from benchopt import BaseDataset
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler


class Dataset(BaseDataset):
    name = "Breast cancer"
    requirements = ["scikit-learn"]

    def get_data(self):
        X, y = load_breast_cancer(return_X_y=True)
        return {"X": StandardScaler().fit_transform(X), "y": np.where(y == 1, 1.0, -1.0)}
