"""Metadata of the package: version, public names for type checkers, py.typed."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import sklearn

import maxmargin
from interop.scikit_learn_tests import PAGE, Difference, compared, differences

ROOT = Path(__file__).resolve().parents[2]


def test_versions_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert [project["version"]] == cited == [maxmargin.__version__]
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", maxmargin.__version__)


def test_type_checking_imports_name_exactly_the_public_names():
    """Type checkers see the imports under TYPE_CHECKING, and no __getattr__ that accepts any name."""
    tree = ast.parse(Path(maxmargin.__file__).read_text())
    assert Path(maxmargin.__file__).with_name("py.typed").is_file()
    branches = [node for node in tree.body if isinstance(node, ast.If)]
    typed, untyped = branches
    assert ast.unparse(typed.test) == "TYPE_CHECKING"
    assert ast.unparse(untyped.test) == "not TYPE_CHECKING"
    found = {alias.name: node.module for node in typed.body for alias in node.names}
    assert sorted(found) == sorted(maxmargin.__all__)
    for name, module in found.items():
        assert getattr(import_module(f"maxmargin.{module}"), name) is getattr(maxmargin, name)
    assert "__getattr__" not in {getattr(node, "name", None) for node in tree.body}
    with pytest.raises(ImportError, match="Nonsense"):
        exec("from maxmargin import Nonsense")


def test_expected_failures_of_scikit_learns_tests_have_reasons_and_others_are_reported(monkeypatch):
    listed = tomllib.loads((ROOT / "interop" / "differences.toml").read_text())
    monkeypatch.setattr(sklearn, "__version__", f"{listed['scikit-learn']}.0")
    *shown, _ = re.findall(
        r"(?m)^\| \d+ \| (?:yes|no)? ?\| ([^|]*) \|$", PAGE.read_text()
    )  # the last row counts the others
    assert set() < set(shown) <= {one.reason for one in differences()}
    for one in differences():
        assert one.tests
        assert re.compile(one.says).pattern
    for test, outcome, said, words in (
        ("a::b[1]", "failed", "no such parameter", []),
        ("a::b[1]", "failed", "another message", ["fails for another reason", "no such test failed"]),
        ("a::b[1]", "passed", "", ["passes, and is on the list: that is why", "no such test failed"]),
        ("a::c", "failed", "no such parameter", ["and is not on the list", "no such test failed"]),
    ):
        expected = [Difference("that is why", ["a::b"], "no such")]
        lines = compared({test: {"outcome": outcome, "said": said}}, expected)
        assert len(lines) == len(words)
        assert all(word in line for word, line in zip(words, lines, strict=True))
