"""maxmargin export and import: round trips preserve predictions."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command import X, Y, refused, run
from sklearn.datasets import dump_svmlight_file
from typer.main import get_command

from maxmargin import from_json, from_liblinear, load
from maxmargin.cli.app import app

THREE = np.digitize(X[:, 0], [-0.5, 0.5])


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "train.svm"
    dump_svmlight_file(X, Y, str(path), zero_based=False)
    return path


@pytest.fixture
def model(data, tmp_path):
    path = tmp_path / "model.safetensors"
    assert run("fit", data, "-o", path, "--seed", 0).exit_code == 0
    return path


@pytest.fixture
def string_class_model(tmp_path):
    """A model of a table with column names and three string classes."""
    lines = [f"{','.join(map(str, row))},class {k}" for row, k in zip(X, THREE, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,d,answer", *lines]) + "\n")
    assert run("fit", tmp_path / "t.csv", "-o", tmp_path / "t.safetensors", "--seed", 0).exit_code == 0
    return tmp_path / "t.safetensors"


@pytest.mark.parametrize("command", ["export", "import"])
def test_every_option_has_help_text(command):
    parameters = get_command(app).commands[command].params
    assert [option.name for option in parameters if not option.help] == []


@pytest.mark.parametrize("kind", ["liblinear", "json"])
def test_exported_and_imported_models_give_equal_scores(model, data, tmp_path, kind):
    assert run("export", model, "--to", kind, "-o", tmp_path / "out").exit_code == 0
    assert run("import", tmp_path / "out", "-o", tmp_path / "back").exit_code == 0
    first, second = (run("predict", path, data, "--scores").stdout for path in (model, tmp_path / "back"))
    assert first == second
    assert "holds no proof of how good it is" in refused("check", tmp_path / "back", data)


def test_kernel_models_survive_export_to_libsvm_and_import(data, tmp_path):
    fitted = tmp_path / "k.safetensors"
    assert run("fit", data, "-o", fitted, "--kernel", "rbf").exit_code == 0
    assert run("export", fitted, "--to", "libsvm", "-o", tmp_path / "k.model").exit_code == 0
    assert run("import", tmp_path / "k.model", "-o", tmp_path / "back", "--n-features", 4).exit_code == 0
    assert run("predict", fitted, data).stdout == run("predict", tmp_path / "back", data).stdout
    assert "more than n_features=2" in refused(
        "import", tmp_path / "k.model", "-o", tmp_path / "other", "--n-features", 2
    )
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("options", [(), ("--single",)])
def test_onnx_export_agrees_with_the_model(model, tmp_path, options):
    runtime = pytest.importorskip("onnxruntime")
    assert run("export", model, "-o", tmp_path / "m.onnx", *options).exit_code == 0
    session = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    dtype = np.float32 if options else np.float64
    labels, scores = session.run(None, {"X": X.astype(dtype)})
    fitted = load(model)
    assert np.array_equal(labels, fitted.predict(X))
    assert scores.dtype == dtype
    assert np.allclose(scores, fitted.decision_function(X), atol=1e-5 if options else 1e-13)


def test_feature_names_are_exported_and_imported(string_class_model, tmp_path):
    assert run("export", string_class_model, "-o", tmp_path / "t.json").exit_code == 0
    record = json.loads((tmp_path / "t.json").read_text())
    assert record["features"] == ["a", "b", "c", "d"]
    assert list(record["decisions"][0]["coef"]) == ["a", "b", "c", "d"]
    assert from_json(tmp_path / "t.json").feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert run("import", tmp_path / "t.json", "-o", tmp_path / "back").exit_code == 0
    # columns are matched by name
    reordered = "\n".join(["d,c,b,a", *(",".join(map(str, row[::-1])) for row in X)]) + "\n"
    (tmp_path / "reordered.csv").write_text(reordered)
    found = run("predict", tmp_path / "back", tmp_path / "reordered.csv").stdout.splitlines()
    assert found == load(string_class_model).predict(_named_frame(string_class_model)).tolist()


def _named_frame(path):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(X, columns=load(path).feature_names_in_)


def test_string_classes_need_the_labels_option(string_class_model, tmp_path):
    out = tmp_path / "t.model"
    assert "--labels 0,1,..." in refused("export", string_class_model, "--to", "liblinear", "-o", out)
    assert "whole numbers, as in 0,1,2" in refused(
        "export", string_class_model, "--to", "liblinear", "-o", out, "--labels", "a,b,c"
    )
    assert not out.exists()
    assert (
        run("export", string_class_model, "--to", "liblinear", "-o", out, "--labels", "7,8,9").exit_code == 0
    )
    assert from_liblinear(out).classes_.tolist() == [7, 8, 9]


def test_invalid_arguments_are_refused(model, data, tmp_path):
    out = tmp_path / "out"
    for arguments, message in (
        (("export", model, "-o", out), "--to must be one of onnx, liblinear, libsvm, json; none is named"),
        (("export", model, "-o", out, "--to", "pmml"), "got pmml"),
        (("export", model, "-o", out, "--to", "libsvm"), "to_liblinear"),
        (("export", model, "-o", out, "--to", "json", "--labels", "1,2"), "leave it out"),
        (("export", model, "-o", out, "--to", "json", "--single"), "--single is only for onnx"),
        (("export", tmp_path / "none", "-o", out, "--to", "json"), "there is no such file"),
        (("export", data, "-o", out, "--to", "json"), "not a model file"),
        (("export", model, "-o", model, "--to", "json"), "read from"),
        (("import", model, "-o", out), "needs no import"),
        (("import", data, "-o", out), "neither a model of liblinear"),
        (("import", data, "-o", out, "--from", "liblinear"), "does not begin with 'solver_type'"),
        (("import", data, "-o", out, "--from", "onnx"), "--from must be liblinear, libsvm or json"),
        (("import", data, "-o", out, "--from", "json", "--n-features", 3), "--n-features is only for libsvm"),
        (("import", tmp_path / "none", "-o", out), "there is no such file"),
    ):
        assert message in refused(*arguments)
        assert not out.exists()
