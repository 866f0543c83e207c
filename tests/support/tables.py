"""Files of rows with their labels."""

from __future__ import annotations

import numpy as np
import pytest


def stored(path, X, y):
    """Write rows and labels to a Parquet file; return what `fit` and `verify` take for them."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {f"x{j}": column for j, column in enumerate(np.asarray(X).T)}
    pq.write_table(pa.table({**columns, "labels": y}), path)
    return path, "labels"
