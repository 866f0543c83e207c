"""Documentation pages: code blocks run, and names, links and imports of examples exist."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import signal
from pathlib import Path

import pytest
from command import run

import maxmargin
from maxmargin import Status, plots
from maxmargin.algorithms import ALGORITHMS, KERNEL_ALGORITHMS

ROOT = Path(__file__).resolve().parents[2]
DOCS, EXAMPLES = ROOT / "docs", ROOT / "examples"
GENERATED = {"_build", "algorithm", "api", "gallery"}  # folders of generated pages


@pytest.fixture
def agg_backend():
    """Draw without a display; close all figures afterwards."""
    plt = pytest.importorskip("matplotlib.pyplot")
    before = plt.get_backend()
    plt.switch_backend("agg")
    yield
    plt.close("all")
    plt.switch_backend(before)


def blocks(page):
    """Return the Python blocks of a page."""
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


def test_reference_names_all_algorithms_and_all_kernel_algorithms():
    page = (DOCS / "reference/algorithms.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| `(\w+)` \|", page, re.M)
    assert dict(rows) == {name: cls.__name__ for name, cls in ALGORITHMS.items()}
    page = (DOCS / "reference/kernels.md").read_text(encoding="utf-8")
    listed = page[page.index("These are available:") : page.index("the same losses as with linear data")]
    assert {"decomposition", *re.findall(r"`([\w-]+)`", listed)} == KERNEL_ALGORITHMS.keys()


def test_pages_name_every_status_and_display():
    page = (DOCS / "reference/statuses.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([A-Z_]+)` \|", page, re.M) == [status.value for status in Status]
    page = (DOCS / "howto/plots.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(\w+Display)`", page)) == set(plots.__all__)


def test_readme_shows_what_its_example_prints(capsys):
    """All but the last digits of bounds, which depend on the processor."""
    page = (DOCS.parent / "README.md").read_text()
    block, shown = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", page, re.S).groups()
    exec(block, {})
    status, problem, bounds, _, score = capsys.readouterr().out.splitlines()
    expected = shown.splitlines()
    assert [status, problem, score[:6]] == [expected[0], expected[1], expected[4][:6]]
    assert bounds[:10] == expected[2][:10]


PAGES = sorted(page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in GENERATED)
RUN_PAGES = [page for page in PAGES if blocks(page) and page.name not in ("report.md", "spark.md")]
PACKAGES = ("pandas", "polars", "skl2onnx")  # of single pages
WORDS = {  # that a page prints, where more than an exception is to be noticed
    "tutorials/first_model": ["CERTIFIED", "this certificate was made for other data", "True True"],
    "tutorials/kernel": ["its least eigenvalue is -1"],
    "tutorials/stream": ["15000 rows", "True", "['spam']"],
    "tutorials/separability": ["separable: class 1 lies", "not separable: rows", "False\nTrue\n"],
    "tutorials/features": ["8 8 features were asked for", "no separator was found for"],
    "howto/from_scikit_learn": ["CERTIFIED True\nTrue\nTrue"],
    "howto/stop_a_fit": ["MAX_TIME", "INTERRUPTED"],
    "howto/not_certified": ["STALLED", "CERTIFIED", "MAX_ITER"],
    "howto/export": ["solver_type L2R_L2LOSS_SVC"],
    "howto/adding_an_algorithm": ["dynamic-margin(epsilon=0.5)  CONVERGED", "the same w: True"],
    "explanation/intercept": [f"10 to every feature? {same}" for same in (True, False)],
    "explanation/certificates": ["True True True", "[Fraction(0, 1), Fraction(0, 1), Fraction(0, 1)] 0"],
    "reference/algorithms": ["CERTIFIED CERTIFIED CONVERGED"],
}
# Rules of their own are compiled by these; the build of the documentation runs the first of them, too.
SLOW = {"reference/algorithms", "howto/adding_an_algorithm"}


def named(page):
    """Return the name of a page below the folder of the pages."""
    return page.relative_to(DOCS).with_suffix("").as_posix()


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (named(page) in SLOW)) for page in RUN_PAGES],
    ids=named,
)
def test_page_code_runs_and_prints_the_expected_words(page, agg_backend, monkeypatch, tmp_path, capsys):
    for package in PACKAGES:
        if any(f"import {package}" in block or f"from {package}" in block for block in blocks(page)):
            pytest.importorskip(package)
    if page.stem == "export":
        pytest.importorskip("skl2onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    previous = signal.getsignal(signal.SIGTERM)
    scope = {"__name__": "__main__"}
    try:
        for number, block in enumerate(blocks(page)):
            exec(compile(block, f"<{named(page)}, block {number + 1}>", "exec"), scope)
    finally:
        signal.signal(signal.SIGTERM, previous)
    printed = capsys.readouterr().out
    assert all(words in printed for words in WORDS.get(named(page), [])), printed


def exists(name, page):
    """Return whether a link or an entry of a table of contents names a page, a generated page or another file."""
    path = (DOCS / name[1:]) if name.startswith("/") else (page.parent / name)
    path = path.resolve()
    if path.is_relative_to(DOCS) and path.relative_to(DOCS).parts[0] in GENERATED:
        return True
    return path.exists() or path.with_name(f"{path.name}.md").exists()


@pytest.mark.parametrize(
    "page",
    [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_links_and_tables_of_contents_name_existing_pages(page):
    text = page.read_text(encoding="utf-8")
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    for name in [*links, *entries(text)]:
        assert not name or name.startswith("http") or exists(name, page), name
    for name in re.findall(r"gallery/(plot_\w+)", text):
        assert (EXAMPLES / f"{name}.py").exists(), name
    for name in re.findall(r"algorithm/([\w-]+)\)", text):
        assert name in {"index", *ALGORITHMS}, name


def test_the_page_of_results_has_short_tables_with_their_rows_beside_it():
    text = (DOCS / "measurements/index.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 3000
    for name, part in re.findall(r"<!-- (\w+) -->\n\n(.+?)\n\n<!-- end of \1 -->", text, re.S):
        assert 3 <= len(re.findall(r"^\|", part, re.M)) <= 17, name  # with the two lines of the table's head
        assert f"({name}.csv)" in part
        assert (DOCS / f"measurements/{name}.csv").exists()


def test_the_published_numbers_begin_with_one_short_table_and_fold_the_rest():
    head, *sections = (
        (ROOT / "reproduction/README.md").read_text(encoding="utf-8").split("<details>\n<summary>")
    )
    assert 3 <= len(re.findall(r"^\|", head, re.M)) <= 12  # with the two lines of the table's head
    for section in sections:
        text, end = section.split("\n\n</details>\n")
        assert not re.sub(r"<!-- \w+ -->", "", end).strip()
        assert re.match(r".+</summary>\n\n(?!#)", text)
        assert not re.search(r"^#", text, re.M)  # a section of the built page would end after the folded one


def entries(text):
    """Return the entries of the tables of contents of a page."""
    tables = re.findall(r"```\{toctree\}\n(.*?)```", text, re.S)
    lines = [line for table in tables for line in table.splitlines() if line.strip()]
    return [re.sub(r".*<(.*)>", r"\1", line) for line in lines if not line.startswith(":")]


def test_every_page_stands_in_one_table_of_contents():
    assert {*WORDS, *SLOW} <= {named(page) for page in RUN_PAGES}
    listed = sorted(
        (page.parent / f"{name}.md").resolve()
        for page in PAGES
        for name in entries(page.read_text(encoding="utf-8"))
        if not name.startswith("/") and name.split("/")[0] not in GENERATED
    )
    assert listed == sorted(page for page in PAGES if page != DOCS / "index.md")


def test_migration_pages_name_existing_options_and_parameters(monkeypatch):
    text = (DOCS / "howto/from_liblinear.md").read_text(encoding="utf-8")
    flags = set(re.findall(r"(--[A-Za-z][\w-]*)", text))
    monkeypatch.setenv("COLUMNS", "300")
    options = set(re.findall(r"--[A-Za-z][\w-]*", run("fit --help").stdout))
    assert {"--tol", "--loss", "--no-intercept", "--norm-power"} <= flags <= options
    text = (DOCS / "howto/from_scikit_learn.md").read_text(encoding="utf-8")
    calls = re.findall(r"`(MaxMarginClassifier|KernelMaxMarginClassifier)\((.*?)\)`", text)
    for name, arguments in calls:
        named = set(re.findall(r"(\w+)=", arguments))
        assert set() < named <= inspect.signature(getattr(maxmargin, name)).parameters.keys()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_docstrings_of_algorithms_have_the_required_sections(name):
    text = inspect.getdoc(ALGORITHMS[name])
    assert re.search(r"^Guarantee[^:]*:", text, re.M)
    assert "References\n----------" in text
    rule = "Condition:" in text and "Update:" in text
    assert rule or re.search(r"^Iteration:", text, re.M)


EXAMPLE_FILES = sorted(EXAMPLES.glob("plot_*.py"))


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
