"""Ends of fits of files while their rows are read for the first time."""

from __future__ import annotations

import signal

import numpy as np
import pytest

from maxmargin import MaxMarginClassifier, verify
from maxmargin.fit import deadline
from maxmargin.numerics.progress import LISTENERS
from maxmargin.numerics.stop_check import ReadingStoppedError

FORMATS = ("rows.svm", "rows.csv", "rows.parquet", "rows.arrow")


def written(path):
    """Write rows that are read in several blocks; return them with their labels."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(60_000, 4)), 4)
    y = np.where(X @ [1.0, -1.0, 2.0, 0.5] + 0.5 * rng.normal(size=60_000) > 0.0, 1, 0)
    if path.suffix in (".svm", ".csv"):
        form = "{4} 1:{0} 2:{1} 3:{2} 4:{3}\n" if path.suffix == ".svm" else "{0},{1},{2},{3},{4}\n"
        text = "".join(form.format(*row, label) for row, label in zip(X.tolist(), y.tolist(), strict=True))
        path.write_text(text if path.suffix == ".svm" else f"a,b,c,d,label\n{text}")
        return X, y
    pa = pytest.importorskip("pyarrow", reason="pip install 'maxmargin[arrow]'")
    table = pa.table({**dict(zip("abcd", X.T, strict=True)), "label": y})
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    else:
        pytest.importorskip("pyarrow.feather").write_feather(table, path)
    return X, y


def fitted(folder, **parameters):
    """Return a classifier that has been fitted to two rows, with other parameters then."""
    model = MaxMarginClassifier(memory="500KB", cache_dir=folder, tol=0.1, random_state=0)
    return model.fit(np.eye(2), [0, 1]).set_params(**parameters)


@pytest.mark.parametrize("name", FORMATS)
def test_a_callback_ends_the_reading(tmp_path, monkeypatch, name):
    X, y = written(tmp_path / name)
    monkeypatch.setattr(deadline, "POLL_SECONDS", 0.0)
    reports = []
    model = fitted(tmp_path, callback=lambda report: reports.append(report) or len(reports) == 2)
    before = dict(vars(model))
    with pytest.raises(ReadingStoppedError, match=f"{name}: max_time, or the callback.*there is no model"):
        model.fit(tmp_path / name)
    assert vars(model) == before
    assert list(tmp_path.iterdir()) == [tmp_path / name]
    assert [(report.round, report.stage, report.upper) for report in reports] == [
        (0, "first reading", np.inf)
    ] * 2
    reports.clear()
    model.set_params(callback=reports.append).fit(tmp_path / name)
    assert reports[0].stage == "first reading"
    assert reports[-1].round > 0
    assert np.all(np.diff([report.seconds for report in reports]) >= 0.0)  # those of the whole fit
    assert verify(model, X, y).gap <= 0.1


@pytest.mark.parametrize("memory", ["500KB", "1GB"])
def test_the_time_limit_ends_the_reading(tmp_path, memory):
    X, y = written(tmp_path / "rows.csv")
    model = fitted(tmp_path, memory=memory, max_time=1e-9)
    before = dict(vars(model))
    with pytest.raises(ReadingStoppedError):
        model.fit(tmp_path / "rows.csv")
    assert vars(model) == before
    assert list(tmp_path.iterdir()) == [tmp_path / "rows.csv"]
    model.set_params(max_time=None).fit(tmp_path / "rows.csv")
    model.set_params(max_time=1e-9).fit(tmp_path / "rows.csv")  # its rows have been read
    assert model.status_ == "MAX_TIME"
    assert verify(model, X, y).upper >= model.certificate_.lower


@pytest.mark.parametrize("name", FORMATS)
def test_ctrl_c_ends_the_reading(tmp_path, name):
    written(tmp_path / name)
    model = fitted(tmp_path)
    before = dict(vars(model))

    def interrupt(step):
        if step.name == "writing the cache":
            signal.raise_signal(signal.SIGINT)

    LISTENERS.append(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(tmp_path / name)
    finally:
        LISTENERS.remove(interrupt)
    assert vars(model) == before
    assert list(tmp_path.iterdir()) == [tmp_path / name]


def test_a_callback_ends_the_reading_of_arrow_data(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow", reason="pip install 'maxmargin[arrow]'")
    monkeypatch.setattr(deadline, "POLL_SECONDS", 0.0)
    model = fitted(tmp_path, callback=lambda report: report.round == 0)
    with pytest.raises(ReadingStoppedError):
        model.fit(pa.table({"a": np.arange(9.0), "label": np.arange(9) % 2}))
    assert not list(tmp_path.iterdir())
