"""A file in svmlight format, plain, .gz or .bz2; with several classes the last one against the rest."""

from pathlib import Path

import numpy as np
from benchopt import BaseDataset
from sklearn.datasets import load_svmlight_file


class Dataset(BaseDataset):
    """Choose a file with -d "svmlight[path=/a/file]"."""

    name = "svmlight"
    requirements = ["scikit-learn"]

    parameters = {"path": [None]}

    def skip(self):
        if self.path is None:
            return True, 'no file is named: -d "svmlight[path=/a/file]"'
        if not Path(self.path).is_file():
            return True, f"there is no file {self.path}"
        return False, None

    def get_data(self):
        X, y = load_svmlight_file(str(self.path), dtype=np.float64)
        return {"X": X.tocsr(), "y": np.where(y == np.unique(y)[-1], 1.0, -1.0)}
