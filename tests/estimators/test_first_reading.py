"""Ends of fits of files and streams while their rows are read for the first time."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest

from maxmargin import MaxMarginClassifier, ReadingStoppedError, verify

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(20_000, 4)), 4)
Y = np.where(X @ [1.0, -1.0, 2.0, 0.5] + 0.5 * RNG.normal(size=20_000) > 0.0, 1, 0)


def fitted(folder, **parameters):
    """Return a classifier that has been fitted to two rows, with other parameters then."""
    model = MaxMarginClassifier(memory="500KB", cache_dir=folder, tol=0.1, random_state=0)
    return model.fit(np.eye(2), [0, 1]).set_params(**parameters)


def stream(between=lambda: time.sleep(0.3)):
    """Return a stream of batches of rows with labels; `between` is called before each."""
    pa = pytest.importorskip("pyarrow")
    table = pa.table({**dict(zip("abcd", X.T, strict=True)), "label": Y})

    def batches():
        for batch in table.to_batches(5_000):
            between()
            yield batch

    return pa.RecordBatchReader.from_batches(table.schema, batches())


@pytest.mark.parametrize("memory", ["500KB", "1GB"])
def test_the_time_limit_ends_the_reading(tmp_path, memory):
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.column_stack([X, Y]), "%.9g", ",", header="a,b,c,d,label", comments="")
    model = fitted(tmp_path, memory=memory, max_time=1e-9)
    before = dict(vars(model))
    with pytest.raises(ReadingStoppedError, match=r"rows\.csv: max_time ended.*there is no model"):
        model.fit(path)
    assert vars(model) == before
    assert list(tmp_path.iterdir()) == [path]
    model.set_params(max_time=None).fit(path)
    model.set_params(max_time=1e-9).fit(path)  # its rows have been read
    assert model.status_ == "MAX_TIME"
    assert verify(model, X, Y).upper >= model.certificate_.lower


def test_ctrl_c_ends_the_reading(tmp_path):
    model = fitted(tmp_path)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(stream(lambda: signal.raise_signal(signal.SIGINT)))
    assert vars(model) == before
    assert not list(tmp_path.iterdir())
