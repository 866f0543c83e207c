"""What the pages say is run."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
from sklearn.datasets import load_iris

from maxmargin import plots
from maxmargin.kernel_solve import KERNEL_ALGORITHMS
from maxmargin.rules import RULES

matplotlib.use("Agg")
DOCS = Path(__file__).resolve().parents[1] / "docs"


def test_the_page_of_algorithms_runs_and_names_them_all(capsys):
    page = (DOCS / "algorithms.md").read_text()
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(block, scope)
    printed = capsys.readouterr().out
    assert printed.startswith("CERTIFIED CERTIFIED CONVERGED")
    rows = re.findall(r"^\| `([\w-]+)` \| `(\w+)` \|", page, re.M)
    assert dict(rows) == {name: cls.__name__ for name, cls in RULES.items()}


def test_the_page_of_kernel_machines_runs_and_names_their_algorithms(capsys):
    page = (DOCS / "kernel_machines.md").read_text()
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(block, scope)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("CERTIFIED True [")
    assert "its least eigenvalue is -1: no inner product" in printed[1]
    assert printed[2] == "INSEPARABLE ['1/4', '1/4', '1/4', '1/4']"
    assert printed[3:] == ["CERTIFIED True", "True pumma"]
    listed = page[page.index("ask for them: ") : page.index("with the losses that they take")]
    assert {"decomposition", *re.findall(r"`([\w-]+)`", listed)} == KERNEL_ALGORITHMS.keys()


def test_the_page_on_reports_runs_and_names_every_display(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "report.md").read_text()
    scope = {}
    try:
        for block in re.findall(r"```python\n(.*?)```", page, re.S):
            exec(block, scope)
    finally:
        plt.close("all")
    assert capsys.readouterr().out.splitlines() == ["HOLDS", "[-1.  0.  1.]"]
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    sections = re.findall(r'<h2 id="([\w-]+)">', report)
    assert ["verdict", *sections] == [
        name.replace(" ", "-") for name in re.findall(r"^\| ([\w ]+) \|", page, re.M)[1:]
    ]
    assert set(re.findall(r"`(\w+Display)`", page)) == set(plots.__all__)


def test_the_first_page_on_kernels_runs():
    page = (DOCS.parent / "README.md").read_text()
    section = page[page.index("## Kernels") :]
    X, y = load_iris(return_X_y=True)
    scope = {"X": X, "y": y}
    exec(re.findall(r"```python\n(.*?)```", section, re.S)[0], scope)
    assert scope["clf"].status_ == "CERTIFIED"


@pytest.mark.parametrize("name", ["path", "explanations"])
def test_the_code_of_a_page_runs(name, capsys):
    page = (DOCS / f"{name}.md").read_text()
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(block, scope)
    assert capsys.readouterr().out


def test_the_page_on_other_programs_runs(capsys):
    pytest.importorskip("skl2onnx", reason="pip install 'maxmargin[onnx]'")
    page = (DOCS / "export.md").read_text()
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(block, scope)
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == ["ImportedLinearClassifier True", "False L2R_L2LOSS_SVC"]


def test_the_page_on_data_runs(capsys):
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    page = (DOCS / "data.md").read_text()
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(block, scope)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "CERTIFIED True"
    table = [line.split()[0] for line in printed[1:7]]
    assert table[0] == "age"
    assert set(table) == {"age", "income", "town_Lima", "town_Oslo", "town_Rome", "town_unknown"}
    assert printed[-4:] == ["True", "True", "True", "CERTIFIED"]
    assert scope["clf"].feature_names_in_.tolist() == scope["model"][:-1].get_feature_names_out().tolist()
