"""maxmargin export and import: round trips preserve predictions."""

from __future__ import annotations

import numpy as np
import pytest
from command import X, refused, run

from maxmargin import from_liblinear, load


@pytest.mark.parametrize(
    ("kind", "fit", "importing"),
    [("liblinear", (), ()), ("libsvm", ("--kernel", "rbf"), ("--n-features", 4))],
)
def test_exported_and_imported_models_predict_alike(data, tmp_path, kind, fit, importing):
    model, out, back = tmp_path / "m", tmp_path / "out", tmp_path / "back"
    assert run("fit", data, "-o", model, *fit).exit_code == 0
    assert run("export", model, "--to", kind, "-o", out).exit_code == 0
    assert run("import", out, "-o", back, *importing).exit_code == 0
    scores = []
    for path in (model, back):
        rows = [line.split("\t") for line in run("predict", path, data, "--scores").stdout.splitlines()]
        scores.append(np.array(rows, dtype=float))
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-12, atol=1e-12)  # texts hold all digits
    assert "holds no proof of how good it is" in refused("check", back, data)


def test_onnx_export_agrees_with_the_model(model, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    scores = load(model).decision_function(X)
    assert run("export", model, "-o", tmp_path / "m.onnx").exit_code == 0
    session = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    assert np.allclose(session.run(None, {"X": X})[1], scores, 0.0, 1e-13)


def test_names_of_features_and_classes_are_exported(table_model, table, tmp_path):
    out = tmp_path / "t.model"
    words = ("export", table_model, "--to", "liblinear", "-o", out)
    assert "--labels 0,1,..." in refused(*words)
    assert run(*words, "--labels", "7,8").exit_code == 0
    assert from_liblinear(out).classes_.tolist() == [7, 8]
