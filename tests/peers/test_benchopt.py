"""The benchmark for benchopt runs, and its solvers solve one problem."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("benchopt")
for package in ("liblinear", "rehline", "skglm"):
    pytest.importorskip(package)
pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "benchopt"


def test_all_solvers_come_to_one_optimum(tmp_path):
    copy = tmp_path / "benchmark"
    shutil.copytree(BENCHMARK, copy, ignore=shutil.ignore_patterns("outputs", "__cache__", "__pycache__"))
    command = [
        sys.executable,
        "-m",
        "benchopt",
        "run",
        str(copy),
        "-n",
        "12",
        "-r",
        "1",
        "-d",
        "Breast cancer",
    ]
    done = subprocess.run(
        [*command, "-o", "*[C=1.0]", "--no-plot"], capture_output=True, text=True, timeout=180, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (written,) = (copy / "outputs").glob("*.parquet")
    values = pandas.read_parquet(written).groupby("solver_name")["objective_value"].min()
    assert {name.partition("[")[0] for name in values.index} == {
        "maxmargin", "liblinear", "scikit-learn", "skglm", "ReHLine",
    }  # fmt: skip
    least = values["maxmargin[algorithm=auto]"]
    assert (values >= least * (1.0 - 1e-9)).all()
    assert (values <= least * 1.02).all()
