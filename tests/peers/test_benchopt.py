"""The benchmark for benchopt runs, and its solvers solve one problem."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

for package in ("benchopt", "liblinear", "rehline", "skglm", "pyarrow"):
    pytest.importorskip(package)
pandas = pytest.importorskip("pandas")

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "benchopt"
OPTIONS = ["-n", "12", "-r", "1", "-d", "Breast cancer", "-o", "*[C=1.0]", "--no-plot"]


def test_all_solvers_come_to_one_optimum(tmp_path):
    copy = tmp_path / "benchmark"
    shutil.copytree(BENCHMARK, copy, ignore=shutil.ignore_patterns("outputs", "__cache__", "__pycache__"))
    command = [sys.executable, "-m", "benchopt", "run", str(copy), *OPTIONS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (written,) = (copy / "outputs").glob("*.parquet")
    values = pandas.read_parquet(written).groupby("solver_name")["objective_value"].min()
    solvers = {name.partition("[")[0] for name in values.index}
    assert solvers == {"maxmargin", "liblinear", "scikit-learn", "skglm", "ReHLine"}
    least = values["maxmargin[algorithm=auto]"]
    assert (values >= least * (1.0 - 1e-9)).all()
    assert (values <= least * 1.02).all()
