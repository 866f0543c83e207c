"""Messages of the commands: rows and columns are counted from 1, options are named as they are typed."""

import codecs
import json

import numpy as np
import pandas as pd
import pytest
from command import run

from maxmargin import MarginRFE
from maxmargin.io.model_file import load, save

ROW = "ow 8 (counted from 1) holds -1e+12 in column "


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    X[7, 3] = -1e12
    return X, (X[:, 0] + rng.normal(size=60) > 0).astype(int)


@pytest.fixture
def files(rows, tmp_path):
    X, y = rows
    pd.DataFrame(X, columns=list("abcde")).assign(label=y).to_csv(tmp_path / "t.csv", index=False)
    np.savez(tmp_path / "t.npz", X=X, y=y)
    return tmp_path


@pytest.mark.parametrize(("file", "column"), [("t.csv", "'d'"), ("t.npz", "4 (counted from 1)")])
def test_fit_check_separate_and_report_say_why_and_what_to_try(files, file, column):
    data, model, page = files / file, files / "m.safetensors", files / "r.html"
    options = ("--algorithm", "dcd", "--max-iter", 1, "--tol", 1e-12)
    fitted = run("fit", data, "-o", model, *options)
    assert fitted.exit_code == 3
    assert ROW + column in fitted.stdout
    assert "--tol=1e-12" in fitted.stdout
    assert ROW + column in json.loads(run("fit", data, "-o", model, *options, "--json").stdout)["message"]
    assert ROW + column in run("check", model, data).stdout
    undecided = run("separate", data, "--max-time", 1e-9)
    assert ROW + column in undecided.stdout
    assert "raise --max-time" in undecided.stdout
    assert ROW.replace("8 (counted from 1)", "7 (counted from 0)") in load(model).message_
    save(load(model).set_params(tol=0.5), model)  # the report is about the parameters of the fit
    run("report", model, data, "-o", page)
    assert all(words in page.read_text() for words in (ROW, "above tol=1e-12"))


@pytest.mark.parametrize("options", [(), ("--online",)])
def test_a_byte_order_mark_of_svmlight_text_is_skipped(options, tmp_path):
    (tmp_path / "t.svm").write_bytes(codecs.BOM_UTF8 + b"1 1:2 2:1\n-1 1:-1\n")
    assert run("fit", tmp_path / "t.svm", "-o", tmp_path / "m", *options).exit_code == 0


def test_interrupted_selections_end_as_shells_have_it(files, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(MarginRFE, "fit", interrupted)
    result = run("select", files / "t.csv")
    assert result.exit_code == 130
    assert result.stderr == "maxmargin: interrupted; every file is complete or was not written.\n"
