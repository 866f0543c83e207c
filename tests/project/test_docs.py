"""Documentation pages: code blocks run, and names, links and imports of examples exist."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
import typer
from sklearn.datasets import load_iris

import maxmargin
from maxmargin import plots
from maxmargin.algorithms import ALGORITHMS, KERNEL_ALGORITHMS
from maxmargin.algorithms.programs import Program
from maxmargin.cli.app import app

matplotlib.use("Agg")
ROOT = Path(__file__).resolve().parents[2]
DOCS, EXAMPLES = ROOT / "docs", ROOT / "examples"
RUN_PAGES = (
    "tutorials/first_model",
    "howto/coming_from",
    "explanation/choice",
    "explanation/certificates",
    "howto/adding_an_algorithm",
)
GENERATED = {"_build", "algorithm", "api", "gallery"}  # folders of generated pages


@pytest.mark.slow
def test_algorithms_page_runs_and_names_all_algorithms(capsys):
    page = (DOCS / "reference/algorithms.md").read_text()
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(block, scope)
    printed = capsys.readouterr().out
    assert printed.startswith("CERTIFIED CERTIFIED CONVERGED")
    rows = re.findall(r"^\| `([\w-]+)` \| `(\w+)` \|", page, re.M)
    assert dict(rows) == {name: cls.__name__ for name, cls in ALGORITHMS.items()}


def test_kernel_machines_page_runs_and_names_all_kernel_algorithms(capsys):
    page = (DOCS / "tutorials/kernel.md").read_text()
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(block, scope)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("CERTIFIED True [")
    assert "its least eigenvalue is -1: no inner product" in printed[1]
    assert printed[2] == "INSEPARABLE ['1/4', '1/4', '1/4', '1/4']"
    assert printed[3:] == ["CERTIFIED True", "True pumma"]
    listed = page[page.index("These are available:") : page.index("the same losses as with linear data")]
    assert {"decomposition", *re.findall(r"`([\w-]+)`", listed)} == KERNEL_ALGORITHMS.keys()


def test_report_page_runs_and_names_every_section_and_display(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "howto/report.md").read_text()
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


def test_readme_kernel_example_runs():
    page = (DOCS.parent / "README.md").read_text()
    section = page[page.index("## Kernels") :]
    X, y = load_iris(return_X_y=True)
    scope = {"X": X, "y": y}
    exec(re.findall(r"```python\n(.*?)```", section, re.S)[0], scope)
    assert scope["clf"].status_ == "CERTIFIED"


def test_readme_shows_the_printed_verdict(capsys):
    page = (DOCS.parent / "README.md").read_text()
    section = page[page.index("## Separable or not") :]
    block = re.findall(r"```python\n(.*?)```", section, re.S)[0]
    exec(block, {})
    printed = capsys.readouterr().out.splitlines()
    shown = [line.removeprefix("# ") for line in block.splitlines() if line.startswith("#")]
    assert len(shown) == 3
    for line, output in zip(shown, printed, strict=True):
        # times vary between runs
        assert re.sub(r", \S+ s$", "", line) == re.sub(r", \S+ s$", "", output)


@pytest.mark.parametrize("name", ["howto/path", "howto/support_report"])
def test_page_code_runs_and_prints(name, capsys):
    page = (DOCS / f"{name}.md").read_text()
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(block, scope)
    assert capsys.readouterr().out


def test_export_page_runs(capsys):
    pytest.importorskip("skl2onnx", reason="pip install 'maxmargin[onnx]'")
    page = (DOCS / "howto/export.md").read_text()
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(block, scope)
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == ["ImportedLinearClassifier True", "False L2R_L2LOSS_SVC"]


def test_data_page_runs(capsys):
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    page = (DOCS / "howto/data.md").read_text()
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


@pytest.fixture
def agg_backend():
    """Use the agg backend; close all figures afterwards."""
    plt = pytest.importorskip("matplotlib.pyplot")
    before = plt.get_backend()
    plt.switch_backend("agg")
    yield
    plt.close("all")
    plt.switch_backend(before)


@pytest.mark.slow  # also run by `make docs`
@pytest.mark.parametrize("page", RUN_PAGES)
def test_page_code_prints_the_expected_words(page, agg_backend, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    scope = {"__name__": "__main__"}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.S):
        exec(compile(block, f"<{page}>", "exec"), scope)
    printed = capsys.readouterr().out
    expected = {
        "tutorials/first_model": [
            "CERTIFIED",
            "this certificate was made for other data",
            "INTERRUPTED 0.0",
            "True True",
        ],
        "howto/coming_from": ["largest difference of a coefficient", "True True", "every bound holds"],
        "explanation/choice": [
            "free: the same predictions after adding 10 to every feature? True",
            "augmented: the same",
        ],
        "explanation/certificates": ["True True True", "[Fraction(0, 1), Fraction(0, 1), Fraction(0, 1)] 0"],
        "howto/adding_an_algorithm": ["dynamic-margin(epsilon=0.5)  CONVERGED", "the same counts: True"],
    }
    assert all(words in printed for words in expected[page]), printed


PAGES = sorted(page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in GENERATED)


def exists(name, page):
    """Return whether a link or an entry of a table of contents names a page, a generated page or another file."""
    path = (DOCS / name[1:]) if name.startswith("/") else (page.parent / name)
    path = path.resolve()
    if path.is_relative_to(DOCS) and path.relative_to(DOCS).parts[0] in GENERATED:
        return True
    return path.exists() or path.with_name(f"{path.name}.md").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_and_tables_of_contents_name_existing_pages(page):
    text = page.read_text(encoding="utf-8")
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    for name in [*links, *entries(text)]:
        assert not name or name.startswith("http") or exists(name, page), name
    for name in re.findall(r"gallery/(plot_\w+)", text):
        assert (EXAMPLES / f"{name}.py").exists(), name
    for name in re.findall(r"algorithm/([\w-]+)\)", text):
        assert name in {"index", *ALGORITHMS}, name


def entries(text):
    """Return the entries of the tables of contents of a page."""
    tables = re.findall(r"```\{toctree\}\n(.*?)```", text, re.S)
    lines = [line for table in tables for line in table.splitlines() if line.strip()]
    return [re.sub(r".*<(.*)>", r"\1", line) for line in lines if not line.startswith(":")]


def test_every_page_stands_in_one_table_of_contents():
    listed = sorted(
        (page.parent / f"{name}.md").resolve()
        for page in PAGES
        for name in entries(page.read_text(encoding="utf-8"))
        if not name.startswith("/") and name.split("/")[0] not in GENERATED
    )
    assert listed == sorted(page for page in PAGES if page != DOCS / "index.md")


def options(command):
    """Command-line options of a command."""
    group = typer.main.get_command(app)
    return {
        word for option in group.commands[command].params for word in (*option.opts, *option.secondary_opts)
    }


def test_coming_from_page_names_existing_options_and_parameters():
    text = (DOCS / "howto/coming_from.md").read_text(encoding="utf-8")
    flags = set(re.findall(r"(--[A-Za-z][\w-]*)", text[text.index("## liblinear's train") :]))
    assert {"--tol", "--loss", "--no-intercept", "--norm-power"} <= flags <= options("fit")
    here = inspect.signature(maxmargin.MaxMarginClassifier).parameters
    rows = re.findall(
        r"^\| (.*?) \| (.*?) \|", text[text.index("## LinearSVC") : text.index("| attribute of")], re.M
    )
    maxmargin_cells = " ".join(cell for _, cell in rows[2:])
    named = {*re.findall(r"(\w+)=", maxmargin_cells), *re.findall(r"`(\w+)`", maxmargin_cells)}
    assert {"p", "norm_power", "loss", "tol", "C", "intercept", "max_time"} <= named <= here.keys()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_docstrings_of_algorithms_have_the_required_sections(name):
    text = inspect.getdoc(ALGORITHMS[name])
    assert re.search(r"^Guarantee[^:]*:", text, re.M)
    assert "References\n----------" in text
    if issubclass(ALGORITHMS[name], Program):
        assert re.search(r"^Iteration:", text, re.M)
    else:
        assert re.search(r"^Iteration:", text, re.M) or ("Condition:" in text and "Update:" in text)


EXAMPLE_FILES = sorted(EXAMPLES.glob("plot_*.py"))


def test_there_are_at_least_12_examples():
    assert len(EXAMPLE_FILES) >= 12


@pytest.mark.parametrize("path", EXAMPLE_FILES, ids=lambda path: path.stem)
def test_examples_import_existing_names(path, monkeypatch):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    compile(tree, str(path), "exec")
    title, line = ast.get_docstring(tree).split("\n")[:2]
    assert line == "=" * len(title), "the underline is not as long as the title"
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in ("maxmargin", "sklearn"):
            home = importlib.import_module(node.module)
            assert all(hasattr(home, alias.name) for alias in node.names)
    data_sets = re.findall(r"real_data\.load\(\"([\w-]+)\"\)", path.read_text(encoding="utf-8"))
    if data_sets:
        monkeypatch.syspath_prepend(str(EXAMPLES))
        data = importlib.import_module("real_data")
        assert set(data_sets) <= {*data.SVMLIGHT, *data.MNIST, "skin"}


def test_missing_example_data_raise_an_error_with_the_remedy(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delitem(sys.modules, "real_data", raising=False)
    data = importlib.import_module("real_data")
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    for name in ("adult", "mnist", "skin"):
        with pytest.raises(data.MissingDataError, match="Set MAXMARGIN_DATA to the folder of the data sets"):
            data.load(name)
