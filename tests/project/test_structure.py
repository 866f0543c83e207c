"""One guard of the size of the project: its limits may only fall. A feature is paid for with another one's lines."""

from __future__ import annotations

import ast
import gc
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from effort import interpreted
from processes import run_python

import maxmargin as mm

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "maxmargin"

# What the design asks for in the end stands behind a limit that is above it.
LIMITS = {
    "code lines of the package": 16_505,  # 16,000
    "modules": 145,  # 140
    "lines of the longest module": 700,
    "modules in the longest chain of imports": 16,  # 16
    "import circles": 0,
    "named numbers": 87,  # 120
    "public names": 26,  # 28
    "modules loaded with MaxMarginClassifier": 21,
    "code lines of tests": 13_061,  # 10,500
    "code lines of benchmarks": 2_478,
    "code lines of reproduction": 1_370,  # 1,200
    "files of tools": 1,
    "words of documentation": 23_395,  # 24,000
    "words of the page of results": 3_000,
    "words of the changelog": 600,
    "lines of the checker": 150,
}
# functions and files that a call enters; the design asks for (80, 20), (110, 24) and (50, 14)
ENTERED = {"linear fit": (96, 20), "kernel fit": (131, 23), "separate": (50, 14)}
PAGES = ("explanation", "howto", "reference", "tutorials")
# folders of tests that may import the folder of the package of their name
OPEN_FOLDERS = ("engine", "numerics")


def code_lines(path: Path) -> int:
    """Count lines without blank lines, comments and docstrings."""
    text, documented = path.read_text(encoding="utf-8"), set()
    for node in ast.walk(ast.parse(text)):
        definition = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if definition and ast.get_docstring(node, clean=False) is not None:
            documented |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return sum(bool(line) and number not in documented and line[0] != "#" for number, line in lines)


def total(folder: str) -> int:
    return sum(code_lines(path) for path in (ROOT / folder).rglob("*.py"))


def words(*patterns: str) -> int:
    paths = [path for pattern in patterns for path in ROOT.glob(pattern)]
    return sum(len(path.read_text(encoding="utf-8").split()) for path in paths)


def imports(path: Path, package: str) -> Iterator[str]:
    """Yield the dotted names that a module imports, but for those of type checkers; `package` is its folder."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and id(node) not in typing:
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and id(node) not in typing:
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            home = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{home}.{alias.name}" for alias in node.names)


@cache
def graph() -> dict[str, frozenset[str]]:
    """The modules of the package, and those that each imports, also within functions."""
    paths = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in PACKAGE.rglob("*.py")
    }
    found = {}
    for name, path in paths.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        targets = {one if one in paths else one.rpartition(".")[0] for one in imports(path, package)}
        found[name] = frozenset(targets & paths.keys() - {name, "maxmargin"})
    return found


def chains() -> tuple[int, int]:
    """The number of modules in the longest chain of imports, and the number of circles."""
    depths: dict[str, int] = {}
    circles = 0

    def depth(name: str, above: tuple[str, ...] = ()) -> int:
        nonlocal circles
        if name in above:
            circles += 1
            return 0
        if name not in depths:
            depths[name] = 1 + max((depth(other, (*above, name)) for other in graph()[name]), default=0)
        return depths[name]

    return max(depth(name) for name in graph() if name != "maxmargin"), circles


def loaded() -> int:
    """The number of modules of the package that the import of a classifier loads: neither a compiler nor readers."""
    code = """
import sys
from maxmargin import MaxMarginClassifier
print(*sys.modules)
MaxMarginClassifier().fit([[0.0], [1.0]], [0, 1]).predict([[0.0]])
assert not {"dask", "distributed"} & sys.modules.keys()
"""
    names = run_python("-c", code).split()
    heavy = ("numba", *(f"maxmargin.{name}" for name in ("readers", "data", "partitions", "algorithms")))
    assert [name for name in names if name.startswith(heavy)] == []
    return sum(name.startswith("maxmargin") for name in names)


def test_nothing_has_grown():
    longest, circles = chains()
    texts = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    # tolerances, sizes, shares and limits; ranges of indices do not count
    numbers = [re.findall(r"(?m)^([A-Z_][A-Z_0-9, ]*) = -?\d", text) for text in texts]
    measured = {
        "code lines of the package": total("src"),
        "modules": len(graph()),
        "lines of the longest module": max(text.count("\n") for text in texts),
        "modules in the longest chain of imports": longest,
        "import circles": circles,
        "named numbers": sum(names.count(",") + 1 for found in numbers for names in found),
        "public names": len(mm.__all__),
        "modules loaded with MaxMarginClassifier": loaded(),
        "code lines of tests": total("tests"),
        "code lines of benchmarks": total("benchmarks"),
        "code lines of reproduction": total("reproduction"),
        "files of tools": len(list((ROOT / "tools").glob("*.py"))),
        "words of documentation": words(
            "README.md", "CONTRIBUTING.md", "docs/*.md", *(f"docs/{name}/*.md" for name in PAGES)
        ),
        "words of the page of results": words("docs/measurements/index.md"),
        "words of the changelog": words("CHANGELOG.md"),
        "lines of the checker": len((ROOT / "checker/check.py").read_text(encoding="utf-8").splitlines()),
    }
    assert measured.keys() == LIMITS.keys()
    assert {what: size for what, size in measured.items() if size > LIMITS[what]} == {}


def test_every_folder_is_a_layer():
    """The layers contract of pyproject.toml names each folder, so that none escapes it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    named = {name.strip() for line in layers for name in line.split("|")}
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert named == {*folders, "sklearn"}


def test_tests_import_public_names_only():
    public = {"maxmargin", "maxmargin.algorithms", "maxmargin.algorithms.bounds", "maxmargin.sklearn"}
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / "tests").rglob("*.py")
        if path.relative_to(ROOT / "tests").parts[0] not in OPEN_FOLDERS
        for name in imports(path, "")
        if name.startswith("maxmargin.") and not {name, name.rpartition(".")[0]} & public
    }
    assert found == set()


@interpreted
@pytest.mark.parametrize("what", ENTERED)
def test_calls_enter_few_functions_and_files(what):
    """Comprehensions and lambdas are not counted, nor what a first call initialises."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0.0, 1, 0)
    call = {
        "linear fit": lambda: mm.MaxMarginClassifier(loss="hinge").fit(X, y),
        "kernel fit": lambda: mm.KernelMaxMarginClassifier(loss="hinge").fit(X[:40], y[:40]),
        "separate": lambda: mm.separate(X, y),
    }[what]
    call()
    seen: set[tuple[str, str, int]] = set()

    def note(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)) and code.co_name[0] != "<":
            seen.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    gc.collect()  # otherwise generators of earlier calls might be closed, and counted, during this call
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    functions, files = len(seen), len({file for file, _, _ in seen})
    # the rounding of another processor may enter a few functions more
    assert functions <= 1.05 * ENTERED[what][0]
    assert files <= ENTERED[what][1] + 1


def test_every_mutation_changes_one_place_of_the_code():
    rows = tomllib.loads((ROOT / "tests/mutations/table.toml").read_text(encoding="utf-8"))["mutation"]
    for row in rows:
        assert (PACKAGE / row["file"]).read_text(encoding="utf-8").count(row["old"]) == 1, row["what"]
