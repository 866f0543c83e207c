"""Input that cannot be used is refused in one line, before any file is written."""

import os
from pathlib import Path

from command import X, Y, refused, run
from sklearn.datasets import dump_svmlight_file

from maxmargin import load

FILES = {
    "wide": "1 1:1\n1 2:1 5:1\n",
    "one": "1 1:1 4:1\n1 1:2 4:1\n",
    "three": "1 1:1 4:1\n2 1:2 4:1\n3 1:3 4:1\n",
    "halves": "0.5 1:1 4:1\n1.5 1:2 4:1\n",
    "large": f"{2**53} 1:1 4:1\n{2**53 + 1} 1:2 4:1\n",
    "others": "1 1:1 4:1\n0 1:2 4:1\n",
}
REFUSED = {
    "fit data -o out --C -1": "C must be a positive number",
    "fit data -o out --n-features 2": "whole number from 0 to 2",
    "fit data -o out --gamma 0.1": "--gamma applies only with --kernel",
    "fit data -o out --kernel rbf --p 3": "--p cannot be combined with --kernel",
    "fit data -o out --kernel precomputed": "--kernel precomputed needs",
    "fit data -o out --kernel foo": "'foo'",
    "fit data -o out --kernel rbf --gamma foo": "'foo'",
    "fit data -o out --p foo": "'foo'",
    "fit data -o out --tol inf": "tol must be positive and finite",
    "fit data -o out --max-time 0": "max_time must be a positive number",
    "fit data -o out --class-weight foo": "'foo'",
    "fit data -o out --memory much": "'much'",
    "fit data -o out --algorithm nix": "'nix'",
    "fit data -o out --label y": "have no names; leave out --label",
    "fit halves -o out": "fractions",
    "fit large -o out": "fractions",
    "fit table.csv -o out --n-features 9": "--n-features",
    "fit table.csv -o out --label b2": "column 'b2'",
    "fit table.csv -o out --columns a,e": "'e', which is not a column",
    "fit table.csv -o out --delimiter ab": "delimiter",
    "fit data -o nowhere/out": "there is no such folder",
    "fit data -o folder": "this is a folder",
    "fit none -o out": "there is no such file",
    "fit folder -o out": "folder",
    "fit data -o data": "is read from",
    "fit --online table.csv -o out --n-features 4": "reads svmlight text",
    "fit --online data -o out": "--n-features",
    "fit --online data -o out --n-features 2": "line 1: '3:",
    "fit --online data -o out --n-features 4 --p 3": "--p does not apply with --online",
    "fit --online one -o out --n-features 4": "one class",
    "fit --online halves -o out --n-features 4": "fractions",
    "fit --online data -o out --n-features 4 --algorithm mpu": "'mpu' cannot learn from a stream",
    "predict model wide": "line 2: '5:1' is no entry",
    "predict data data": "this is not a model file",
    "predict model model": "model, line 1: ",
    "predict model data -o model": "is read from",
    "check model data --label y": "have no names; leave out --label",
    "check model other": "made for other data",
    "check model others": "label 1 (counted from 0) is 0",
    "report model data -o data": "is read from",
    "separate one": "two classes",
    "separate three": "two classes",
    "separate data --tol 0": "tol must be positive",
    "separate data --kernel rbf --p 3": "p must be 2",
    "separate data --kernel precomputed": "use maxmargin.separate in Python",
    "compare data --algorithms dcd,nix": "'nix'",
    "compare data --csv data": "is read from",
    "export model -o out": "--to must be one of onnx, liblinear, libsvm",
    "export model -o out --to libsvm": "to_liblinear",
    "export model -o out --to liblinear --labels a,b": "--labels takes whole numbers",
}


def test_invalid_input_is_refused_in_one_line(data, table, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data.rename("data"), table.rename("table.csv"), model.rename("model"), Path("folder").mkdir()
    for name, text in FILES.items():
        Path(name).write_text(text)
    dump_svmlight_file(X, -Y, "other", zero_based=False)
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()}
    for words, message in REFUSED.items():
        assert message in refused(words), words
        assert {path: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()} == before, words
    for words in (
        "fit data",
        "fit data -o m --C much",
        "fit data -o m --seed much",
        "unheard-of",
    ):  # argparse's own
        assert run(words).exit_code == 2
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe")
        assert "pipe" in refused("fit pipe -o out")


def test_the_rows_before_a_bad_line_are_kept(tmp_path):
    path, model = tmp_path / "rows.svm", tmp_path / "m"
    path.write_text("1 1:0.5 2:1.25 3:0.75\n-1 1:-0.5 2:1.75\n" * 120_000 + "1 3:x\n")
    done = run("fit", path, "-o", model, "--online", "--n-features", 4)
    seen = load(model).n_seen_
    assert (done.exit_code, 0 < seen <= 240_000) == (3, True)
    assert "line 240001" in done.stderr
    assert f"{seen} rows" in done.stderr
